import math

import pytest
import slow_em
import torch

from capsnet.layers import Capsules
from capsnet.losses import spread_loss
from capsnet.matrix import MatrixPrimaryCapsules
from capsnet.routing.em import EMConvRouting, EMRouting, e_step, windows
from capsnet.routing.gaussians import LEAST_VARIANCE, StoredVotes

TYPES, J = 2, 3


def capsules(grid=(4, 5), batch=2, types=TYPES, dtype=torch.float64, seed=0):
    """Poses around the identity, activations from 0.1 to 0.9."""
    generator = torch.Generator().manual_seed(seed)
    count = types * math.prod(grid or (1, 1))
    poses = torch.eye(4).flatten() + 0.5 * torch.randn(batch, count, 16, dtype=dtype, generator=generator)
    activations = 0.1 + 0.8 * torch.rand(batch, count, dtype=dtype, generator=generator)
    return Capsules(poses.requires_grad_(), activations.requires_grad_(), grid)


def layer(kernel=None, stride=1, types=TYPES, dtype=torch.float64, **options):
    """The layer of class capsules, or with a kernel the convolutional one, with β that differ between types."""
    torch.manual_seed(1)
    routing = (
        EMConvRouting(types, J, kernel, stride, **options) if kernel is not None else EMRouting(types, J, **options)
    )
    with torch.no_grad():
        routing.beta_u.copy_(torch.tensor([0.5, 0.9, 1.3]))
        routing.beta_a.copy_(torch.tensor([-0.2, 0.1, 0.4]))
    return routing.to(dtype)


BOTH = pytest.mark.parametrize("kernel", [None, 3])


# --- Values ---


def test_e_step_by_hand():
    variance = torch.tensor([[0.5, 2.0]])
    distances = StoredVotes(torch.zeros(1, 1, 2)).distances(torch.tensor([[[1.0, 6.0]]]), variance)
    assert distances.item() == 1 / (2 * 0.5) + 6 / (2 * 2)
    logits = e_step(distances, variance, torch.tensor([0.25]).log())  # the spreads' logarithms cancel
    assert logits.item() == pytest.approx(math.log(0.25) - 2.5)


def test_e_step_is_activation_times_density():
    votes, weights = torch.randn(4, 5, 16, dtype=torch.float64), torch.rand(4, 5, dtype=torch.float64)
    a = torch.rand(4, dtype=torch.float64)
    stored = StoredVotes(votes)
    mean, variance, squares = stored.fit(weights)
    R = e_step(stored.distances(squares, variance), variance, a.log()).softmax(0)
    normal = torch.distributions.Normal(mean[:, None], variance.sqrt()[:, None])
    p = a[:, None] * normal.log_prob(votes).sum(-1).exp()
    torch.testing.assert_close(R, p / p.sum(0))


def test_layer_by_hand():
    # Two children, one parent, W = 1: votes of all 0 and all 3 with activations 1 and 1/2.
    routing = EMRouting(2, 1, iterations=1).double()
    with torch.no_grad():
        routing.weight.copy_(torch.eye(4))
        routing.beta_u.fill_(0.1)
        routing.beta_a.fill_(0.2)
    poses = torch.tensor([0.0, 3.0], dtype=torch.float64)[None, :, None].expand(1, 2, 16)
    out = routing(Capsules(poses, torch.tensor([[1, 0.5]], dtype=torch.float64)))
    # μ = 1.5 / 1.5, σ² = (1 · 1 + 0.5 · 4) / 1.5 = 2; S = 1.5 of 2, so 75 of 100; λ = 0.01 · 0.05.
    cost = 16 * (0.1 + math.log(math.sqrt(2))) * 75
    a = 1 / (1 + math.exp(-0.0005 * (1600 * 0.2 - cost)))
    torch.testing.assert_close(out.capsules.poses, torch.ones(1, 1, 16, dtype=torch.float64), rtol=1e-6, atol=0)
    assert out.capsules.activations.item() == pytest.approx(a)
    assert out.coupling.flatten().tolist() == [1, 1] and out.capsules.grid is None


CASES = [
    *({"grid": (2, 3), "iterations": r} for r in (1, 2, 3)),
    {"grid": None, "types": 7},
    {"grid": (3, 2), "inverse_temperature": 0.05},
    *({"grid": (4, 5), "kernel": 3, "iterations": r} for r in (1, 2, 3)),
    {"grid": (5, 4), "kernel": 2, "stride": 2},
    {"grid": (6, 4), "kernel": 3, "stride": 2, "inverse_temperature": 0.03},
    {"grid": (2, 3), "kernel": 1},
    {"grid": (5, 5), "kernel": 2, "stride": 3},
    {"grid": (3, 3), "kernel": 3},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_the_slow_version(case):
    options = dict(case)
    given = capsules(options.pop("grid"), types=options.get("types", TYPES))
    routing = layer(**options)
    out = routing(given)
    for sample in range(2):
        poses, activations, coupling = slow_em.route(routing, given, sample)
        torch.testing.assert_close(out.capsules.poses[sample], poses, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(out.capsules.activations[sample], activations, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(out.coupling[sample], coupling, rtol=1e-5, atol=1e-6)


def test_windows_by_hand():
    # Children 0 1 2 / 3 4 5 and of the second type 6 7 8 / 9 10 11.
    held = windows(2, (2, 3), 2, 1)
    assert held.tolist() == [[[0, 1, 3, 4, 6, 7, 9, 10], [1, 2, 4, 5, 7, 8, 10, 11]]]
    assert windows(1, (5, 4), 2, 2).tolist() == [[[0, 1, 4, 5], [2, 3, 6, 7]], [[8, 9, 12, 13], [10, 11, 14, 15]]]


def test_parents_are_on_a_grid_in_the_order_type_row_column():
    out = layer(3, 2)(capsules((6, 4))).capsules
    assert out.grid == (2, 1) and out.poses.shape == (2, J * 2, 16) and out.activations.shape == (2, J * 2)


def test_a_window_as_large_as_the_grid_is_the_class_layer_without_a_grid():
    given, conv, full = capsules((3, 3)), layer(3), layer(types=TYPES * 9)
    full.load_state_dict(conv.state_dict())
    a, b = conv(given), full(Capsules(given.poses, given.activations))
    torch.testing.assert_close(a.capsules.poses, b.capsules.poses)
    torch.testing.assert_close(a.capsules.activations, b.capsules.activations)
    torch.testing.assert_close(a.coupling, b.coupling)


def test_coordinates_are_added_to_the_right_hand_column():
    """With one active child the parents' poses are its vote."""
    routing, given = layer(iterations=1), capsules((4, 5))
    activations = torch.zeros_like(given.activations)
    activations[:, 20 + 2 * 5 + 3] = 1  # second type, row 2 of 4, column 3 of 5
    out = routing(Capsules(given.poses, activations, (4, 5))).capsules.poses
    product = given.poses[:, 33].view(2, 1, 4, 4) @ routing.weight[1]  # (B, J, 4, 4)
    added = torch.zeros(4, 4, dtype=torch.float64)
    added[0, 3], added[1, 3] = 2.5 / 4, 3.5 / 5
    torch.testing.assert_close(out.unflatten(-1, (4, 4)), product + added, rtol=1e-5, atol=1e-5)


# --- Traps ---


@pytest.mark.parametrize(("kernel", "grid"), [(None, (4, 5)), (3, (5, 5)), (2, (4, 4))])
def test_coupling_of_every_child_sums_to_one_over_all_its_parents(kernel, grid):
    coupling = layer(kernel, stride=2 if kernel == 3 else 1)(capsules(grid)).coupling
    torch.testing.assert_close(coupling.sum(2), torch.ones(coupling.shape[:2], dtype=torch.float64))
    assert (coupling.sum(1) - coupling.shape[1] / coupling.shape[2]).abs().max() > 0.1
    if kernel:  # at one position, a child that others see too gets less than all
        assert coupling.unflatten(2, (J, -1)).sum(2).amax(2).min() < 0.9


def test_children_that_no_window_holds_send_nothing():
    given = capsules((4, 4))
    coupling = layer(3, 2)(given).coupling.view(2, TYPES, 4, 4, J)  # a single window, of rows and columns 0 to 2
    assert (coupling[:, :, 3] == 0).all() and (coupling[:, :, :, 3] == 0).all()
    torch.testing.assert_close(coupling[:, :, :3, :3].sum(-1), torch.ones(2, TYPES, 3, 3, dtype=torch.float64))


@BOTH
@pytest.mark.parametrize("iterations", [1, 2])
def test_a_childs_activation_counts(kernel, iterations):
    """Responsibilities that are normalised again after the multiplication by a_i lose it."""
    routing, given = layer(kernel, iterations=iterations), capsules((3, 3))
    more = given.activations.detach().clone()
    more[:, 4] += 0.3
    a, b = routing(given).capsules, routing(Capsules(given.poses, more, given.grid)).capsules
    assert ((a.poses - b.poses).abs().amax(2) > 1e-4).all()
    assert ((a.activations - b.activations).abs() > 1e-5).all()


@BOTH
def test_half_the_activation_is_half_the_data(kernel):
    """The mean and the spread stay, the cost halves."""
    routing, given = layer(kernel, iterations=1), capsules((3, 3))
    with torch.no_grad():
        routing.beta_a.zero_()
    a, b = (routing(Capsules(given.poses, given.activations * f, given.grid)).capsules for f in (1, 0.5))
    torch.testing.assert_close(a.poses, b.poses, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(a.activations.logit(), 2 * b.activations.logit(), rtol=1e-5, atol=1e-6)


def test_parents_with_votes_closer_together_are_more_active():
    """σ² is the spread: the votes' own size, common to all, does not count."""
    routing = layer(types=6, iterations=1)
    with torch.no_grad():
        routing.beta_u.zero_(), routing.beta_a.zero_()
        routing.weight.copy_(torch.eye(4) * torch.tensor([0.5, 1, 2])[:, None, None])
    offsets = torch.randn(1, 6, 16, dtype=torch.float64)
    a = routing(Capsules(offsets, torch.ones(1, 6))).capsules
    b = routing(Capsules(offsets + 50, torch.ones(1, 6))).capsules
    assert a.activations[0, 0] > a.activations[0, 1] > a.activations[0, 2]
    torch.testing.assert_close(a.activations, b.activations, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        b.poses - a.poses, (50 * torch.tensor([[0.5, 1, 2]]).double())[..., None].expand(1, 3, 16)
    )


@BOTH
def test_inverse_temperature_follows_its_schedule(kernel):
    """A parent without data has a = sigmoid(1600 λ_t β_a)."""
    given = capsules((3, 3))
    out = layer(kernel, iterations=4)(Capsules(given.poses, torch.zeros_like(given.activations), (3, 3)), trace=True)
    for step, lam in zip(out.trace, (0.0005, 0.000975, 0.00142625, 0.0018549375), strict=True):
        expected = torch.tensor([-0.2, 0.1, 0.4], dtype=torch.float64) * 1600 * lam
        torch.testing.assert_close(step["capsules"].activations, expected.sigmoid().expand(2, 3))


@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("types", [4, 16])
def test_about_half_of_the_parents_start_active(types, iterations):
    """In every layer of a stack, though parents have from 36 to 400 children."""
    torch.manual_seed(0)
    out = MatrixPrimaryCapsules(32, types)(torch.relu(torch.randn(2, 32, 9, 9)))
    stack = [EMConvRouting(types, types, 3, 2, iterations), EMConvRouting(types, types, 2, 1, iterations)]
    for routing in [*stack, EMRouting(types, 10, iterations)]:
        out = routing(out).capsules
        assert 0.35 < out.activations.mean() < 0.8
        assert 0.2 < out.activations.min() and out.activations.max() < 0.999
        assert 0.04 < out.poses.std(1).mean()  # parents differ


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_data_make_a_new_layers_parents_active(iterations):
    """Else training may find the inverse: the right class is the one whose capsule the children leave."""
    torch.manual_seed(0)
    given = MatrixPrimaryCapsules(32, 8)(torch.relu(torch.randn(4, 32, 9, 9)))
    for step in EMRouting(8, 10, iterations)(given, trace=True).trace:
        assert (step["evidence"].sum(1) > 0.1).all()


def test_order_of_parents_and_children_does_not_matter():
    given, routing, shuffled = capsules(None, types=9), layer(types=9), layer(types=9)
    children, parents = torch.randperm(9), torch.randperm(J)
    with torch.no_grad():
        shuffled.weight.copy_(routing.weight[children][:, parents])
        shuffled.beta_u.copy_(routing.beta_u[parents])
        shuffled.beta_a.copy_(routing.beta_a[parents])
    a, b = routing(given), shuffled(Capsules(given.poses[:, children], given.activations[:, children]))
    torch.testing.assert_close(b.capsules.poses, a.capsules.poses[:, parents])
    torch.testing.assert_close(b.capsules.activations, a.capsules.activations[:, parents])
    torch.testing.assert_close(b.coupling, a.coupling[:, children][:, :, parents])


@BOTH
def test_parameters_are_saved_and_counted(kernel):
    routing = EMConvRouting(8, 16, 3) if kernel else EMRouting(8, 10)
    shapes = {name: tuple(tensor.shape) for name, tensor in routing.state_dict().items()}
    if kernel:
        assert shapes == {"weight": (72, 16, 4, 4), "beta_u": (16,), "beta_a": (16,)}
    else:  # none for positions
        assert shapes == {"weight": (8, 10, 4, 4), "beta_u": (10,), "beta_a": (10,)}
    assert set(shapes) == {name for name, _ in routing.named_parameters()}


@BOTH
def test_gradients_reach_everything(kernel):
    routing, given = layer(kernel, dtype=torch.float32), capsules((4, 4), dtype=torch.float32)
    spread_loss(routing(given).capsules.activations[:, :J], torch.tensor([0, 2]), 0.9).backward()
    for tensor in (given.poses, given.activations, *routing.parameters()):
        assert tensor.grad.isfinite().all() and tensor.grad.abs().max() > 1e-6
    assert (routing.beta_u.grad != 0).all() and (routing.beta_a.grad != 0).all()


@pytest.mark.parametrize(("kernel", "grid"), [(None, (1, 2)), (2, (2, 3))])
def test_gradients_flow_through_all_iterations(kernel, grid):
    routing, given = layer(kernel, types=1), capsules(grid, batch=1, types=1)

    def results(poses, activations, *_):
        out = routing(Capsules(poses, activations, grid))
        return out.capsules.poses, out.capsules.activations, out.coupling

    assert torch.autograd.gradcheck(results, (given.poses, given.activations, *routing.parameters()), fast_mode=True)


def degenerate(name, grid):
    given = capsules(grid, dtype=torch.float32)
    poses, activations = given.poses.detach(), given.activations.detach()
    if name == "no activation":
        activations.zero_()
    elif name == "one active child":
        activations.zero_()[:, 1] = 1
    elif name == "same poses":
        poses.copy_(torch.eye(4).flatten())
    elif name == "zero poses":
        poses.zero_()
    elif name == "large poses":
        poses.mul_(1e4)
    return Capsules(poses.requires_grad_(), activations.requires_grad_(), grid)


NAMES = ["no activation", "one active child", "same poses", "zero poses", "large poses"]


@BOTH
@pytest.mark.parametrize("name", NAMES)
def test_degenerate_capsules_stay_finite(name, kernel):
    routing, given = layer(kernel, dtype=torch.float32), degenerate(name, (3, 4))
    if "poses" in name and name != "large poses":  # all votes for a parent are the same, but for coordinates
        with torch.no_grad():
            routing.weight.copy_(torch.eye(4))
    out = routing(given)
    a = out.capsules.activations
    (out.capsules.poses.sum() + a.pow(3).sum() + out.coupling.square().sum()).backward()
    assert out.capsules.poses.isfinite().all() and ((a >= 0) & (a <= 1)).all()
    torch.testing.assert_close(out.coupling.sum(2), torch.ones(out.coupling.shape[:2]), rtol=0, atol=1e-4)
    assert all(x.grad.isfinite().all() for x in (given.poses, given.activations, *routing.parameters()))


@pytest.mark.parametrize("kernel", [None, 1])
def test_one_child_is_its_parents_pose(kernel):
    """Its variance is zero, whose logarithm is not taken."""
    routing, given = layer(kernel, types=1, dtype=torch.float32), capsules(None, types=1, dtype=torch.float32)
    out = routing(given)
    votes = given.poses.view(2, 1, 4, 4) @ routing.weight[0]
    torch.testing.assert_close(out.capsules.poses, votes.flatten(2), rtol=1e-5, atol=1e-5)
    mean, variance, _ = StoredVotes(votes.flatten(2)[:, :, None]).fit(torch.ones(2, J, 1))
    assert (variance == LEAST_VARIANCE).all()
    out.capsules.activations.sum().backward()
    assert all(x.grad.isfinite().all() for x in (given.poses, *routing.parameters()))


def test_votes_far_from_every_parent_are_shared_in_log_space():
    """Densities of e^-1000 and less, which exp turns into 0 / 0."""
    distances = torch.tensor([[[1000.0], [1001.0]]])  # (1, J = 2, I = 1)
    logits = e_step(distances, torch.ones(1, 2, 1), torch.zeros(1, 2))
    assert logits.softmax(1).flatten().tolist() == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)])
    given = capsules((5, 5), dtype=torch.float32)
    with torch.no_grad():
        given.poses[:, ::3] += 100  # far from the others, in windows of its own and shared ones
    coupling = layer(3, dtype=torch.float32)(given).coupling
    torch.testing.assert_close(coupling.sum(2), torch.ones(2, 50))


# --- What every routing layer keeps ---


@BOTH
def test_samples_do_not_meet(kernel):
    routing, given = layer(kernel), capsules(batch=3)
    whole = routing(given)
    others = given.poses.detach().clone()
    others[1:] = torch.randn_like(others[1:])
    changed = routing(Capsules(others, given.activations, given.grid))
    alone = routing(Capsules(given.poses[:1], given.activations[:1], given.grid))
    for out in (changed, alone):
        torch.testing.assert_close(out.capsules.poses[0], whole.capsules.poses[0])
        torch.testing.assert_close(out.capsules.activations[0], whole.capsules.activations[0])
        torch.testing.assert_close(out.coupling[0], whole.coupling[0])


@BOTH
def test_nothing_is_kept_between_calls(kernel):
    routing, given = layer(kernel), capsules()
    first = routing(given)
    routing(capsules(seed=9))
    again = routing(given)
    assert torch.equal(first.capsules.poses, again.capsules.poses) and torch.equal(first.coupling, again.coupling)


@BOTH
def test_trace(kernel):
    given = capsules()
    out = layer(kernel)(given, trace=True)
    assert layer(kernel)(given).trace is None and len(out.trace) == 3
    for r, step in enumerate(out.trace, 1):
        expected = layer(kernel, iterations=r)(given)
        torch.testing.assert_close(step["coupling"], expected.coupling)
        torch.testing.assert_close(step["capsules"].poses, expected.capsules.poses)
        torch.testing.assert_close(step["capsules"].activations, expected.capsules.activations)
        assert not step["coupling"].requires_grad and not step["capsules"].poses.requires_grad
    assert out.capsules.poses.requires_grad


@BOTH
def test_autocast_routes_in_float32(kernel):
    routing, given = layer(kernel, dtype=torch.float32), capsules(dtype=torch.float32)
    plain = routing(given)
    with torch.autocast("cpu", torch.bfloat16):
        out = routing(given)
    assert out.capsules.poses.dtype == out.capsules.activations.dtype == out.coupling.dtype == torch.float32
    assert torch.equal(out.capsules.poses, plain.capsules.poses)


@BOTH
def test_half_precision_becomes_float32(kernel):
    given = capsules(dtype=torch.float32)
    half = Capsules(given.poses.bfloat16(), given.activations.bfloat16(), given.grid)
    out = layer(kernel, dtype=torch.bfloat16)(half).capsules
    assert out.poses.dtype == out.activations.dtype == torch.float32 and out.poses.isfinite().all()


def test_compiled_equals_eager():
    routing, given = layer(3, iterations=2), capsules()
    out = torch.compile(routing, backend="aot_eager")(given)
    torch.testing.assert_close(out.capsules.poses, routing(given).capsules.poses)


def test_layers_stack_and_learn():
    torch.manual_seed(0)
    stack = torch.nn.ModuleList([EMConvRouting(2, 4, 2, 1, 2), EMConvRouting(4, 4, 2, 1, 2), EMRouting(4, 3, 2)])
    optimizer = torch.optim.Adam(stack.parameters(), lr=0.01)
    given, labels, losses = capsules((4, 4), batch=9, dtype=torch.float32), torch.arange(9) % 3, []
    for _ in range(30):
        out = given
        for routing in stack:
            out = routing(out).capsules
        loss = spread_loss(out.activations, labels, 0.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        assert all(p.grad.isfinite().all() for p in stack.parameters())
    assert losses[-1] < 0.5 * losses[0]


# --- Wrong use ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations is 0; routing needs at least 1."),
        ({"inverse_temperature": 0}, "inverse_temperature is 0; it must be above 0 and finite."),
        ({"inverse_temperature": math.nan}, "inverse_temperature is nan; it must be above 0 and finite."),
        ({"kernel": 3, "stride": 0}, "stride is 0; it must be at least 1."),
        ({"kernel": -1}, "kernel is -1; it must be at least 1."),
    ],
)
def test_impossible_settings(options, message):
    with pytest.raises(ValueError) as error:
        layer(**options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("kernel", "given", "message"),
    [
        (None, capsules(types=3), "this layer routes 2 × 4 × 5 capsules of 16 numbers, but was given (60, 16)."),
        (
            None,
            Capsules(torch.zeros(1, 2, 8), torch.zeros(1, 2)),
            "this layer routes 2 × 1 × 1 capsules of 16 numbers, but was given (2, 8).",
        ),
        (3, capsules((2, 5)), "windows of 3×3 do not fit a grid of 2×5."),
    ],
    ids=["types", "pose", "grid"],
)
def test_capsules_of_another_shape(kernel, given, message):
    with pytest.raises(ValueError) as error:
        layer(kernel)(given)
    assert str(error.value) == message
