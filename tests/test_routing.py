import math

import pytest
import textbook
import torch

from capsnet.functional import lengths, squash
from capsnet.layers import Capsules, Layout
from capsnet.losses import margin_loss
from capsnet.routing import ROUTING, DynamicRouting, dynamic

CHILDREN, A, J, D = 7, 3, 4, 5
STORED, FACTORED = 2, 6  # batch sizes that take either evaluation


def capsules(batch=STORED, dtype=torch.float64, children=CHILDREN, dim=A, seed=0):
    generator = torch.Generator().manual_seed(seed)
    poses = torch.randn(batch, children, dim, dtype=dtype, generator=generator)
    return Capsules(poses.requires_grad_(), lengths(poses))


def layer(dtype=torch.float64, **options):
    """A layer whose votes are long enough for the coupling to leave the uniform one far behind."""
    torch.manual_seed(1)
    routing = DynamicRouting(CHILDREN, A, J, D, **options).to(dtype)
    with torch.no_grad():
        routing.weight.mul_(6)
        if routing.bias is not None:
            routing.bias.add_(0.1 * torch.randn(J, D))
    return routing


def test_registry_builds_a_layer_for_the_capsules_that_come_in():
    routing = ROUTING["dynamic"](Layout(types=2, side=3, dim=4), 5, 6, iterations=2)
    assert isinstance(routing, DynamicRouting) and routing.iterations == 2
    assert routing.weight.shape == (2 * 3 * 3, 4, 5, 6)


def test_batch_sizes_take_both_evaluations():
    assert STORED <= dynamic.STORED_VOTES_UP_TO < FACTORED


def test_by_hand():
    # One child with u = 1 votes 2 for the first parent and 0 for the second.
    routing = DynamicRouting(1, 1, 2, 1, iterations=2, bias=False).double()
    with torch.no_grad():
        routing.weight.copy_(torch.tensor([2.0, 0.0]).view(1, 1, 2, 1))
    out = routing(Capsules(torch.ones(1, 1, 1, dtype=torch.float64), torch.ones(1, 1)), trace=True)
    # First: c = 1/2, s = 1, v = 1/2. Agreement 2 · 1/2 = 1, so c = e/(e + 1), s = 2c, v = s²/(1 + s²).
    c = math.e / (math.e + 1)
    assert out.trace[0]["capsules"].poses.flatten().tolist() == pytest.approx([0.5, 0])
    assert out.coupling.flatten().tolist() == pytest.approx([c, 1 - c])
    assert out.capsules.poses.flatten().tolist() == pytest.approx([4 * c**2 / (1 + 4 * c**2), 0])


OPTIONS = [
    *({"iterations": r} for r in (1, 2, 3, 5)),
    {"bias": False},
    {"leaky": True},
    {"leaky": True, "iterations": 1},
    {"temperature": 0.5},
    {"temperature": 4.0, "iterations": 5},
    {"leaky": True, "temperature": 0.7, "bias": False, "iterations": 2},
    {"agreement": "cosine", "temperature": 0.3},
    {"agreement": "distance", "temperature": 3.0},
    {"shared": True},
    {"shared": True, "agreement": "distance", "iterations": 2, "leaky": True},
]


@pytest.mark.parametrize("batch", [1, STORED, FACTORED])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_textbook_in_values_and_gradients(options, batch):
    routing, given = layer(**options), capsules(batch)
    out = routing(given)
    kept = {name: getattr(routing, name) for name in ("iterations", "temperature", "leaky", "agreement")}
    W = routing.weight.repeat(CHILDREN, 1, 1, 1) if options.get("shared") else routing.weight
    v, c = textbook.route(textbook.votes(given.poses, W), bias=routing.bias, **kept)
    torch.testing.assert_close(out.capsules.poses, v, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(out.capsules.activations, textbook.length(v), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(out.coupling, c, rtol=1e-10, atol=1e-12)
    inputs, pull = [given.poses, *routing.parameters()], torch.randn_like(v)
    ours = torch.autograd.grad((out.capsules.poses * pull).sum(), inputs)
    theirs = torch.autograd.grad((v * pull).sum(), inputs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_gradients_flow_through_all_iterations(batch):
    """With the coupling as a constant they are others."""
    routing, given = layer(), capsules(batch)
    out = routing(given)
    (ours,) = torch.autograd.grad(out.capsules.poses.sum(), routing.weight)
    votes = textbook.votes(given.poses, routing.weight)
    v = squash(torch.einsum("bij,bijd->bjd", out.coupling.detach(), votes) + routing.bias)
    (last,) = torch.autograd.grad(v.sum(), routing.weight)
    torch.testing.assert_close(v, out.capsules.poses)
    assert (ours - last).abs().max() > 0.01 * ours.abs().max()


@pytest.mark.parametrize(
    "options", [{}, {"leaky": True}, {"iterations": 1}, {"agreement": "cosine"}, {"agreement": "distance"}], ids=str
)
def test_stored_equals_factored(options, monkeypatch):
    routing, given = layer(**options), capsules(5)
    results = []
    for limit in (0, 100):
        monkeypatch.setattr(dynamic, "STORED_VOTES_UP_TO", limit)
        out = routing(given, trace=True)
        grads = torch.autograd.grad(out.capsules.poses.pow(3).sum(), [given.poses, *routing.parameters()])
        results.append([out.capsules.poses, out.coupling, *(step["coupling"] for step in out.trace), *grads])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_coupling_of_every_child_sums_to_one_over_the_parents(batch):
    coupling = layer()(capsules(batch)).coupling
    assert coupling.shape == (batch, CHILDREN, J)
    torch.testing.assert_close(coupling.sum(2), torch.ones(batch, CHILDREN, dtype=torch.float64))
    assert (coupling.sum(1) - CHILDREN / J).abs().max() > 0.1  # and over the children to nothing in particular


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_leaky_children_send_part_of_themselves_nowhere(batch):
    assert (layer(leaky=True)(capsules(batch)).coupling.sum(2) < 1).all()
    first = layer(leaky=True, iterations=1)(capsules(batch)).coupling
    torch.testing.assert_close(first, torch.full_like(first, 1 / (J + 1)))


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_order_of_parents_and_children_does_not_matter(batch):
    given, routing, shuffled = capsules(batch), layer(), layer()
    children, parents = torch.randperm(CHILDREN), torch.randperm(J)
    with torch.no_grad():
        shuffled.weight.copy_(routing.weight[children][:, :, parents])
        shuffled.bias.copy_(routing.bias[parents])
    a = routing(given)
    b = shuffled(Capsules(given.poses[:, children], given.activations[:, children]))
    torch.testing.assert_close(b.capsules.poses, a.capsules.poses[:, parents])
    torch.testing.assert_close(b.coupling, a.coupling[:, children][:, :, parents])


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_logits_start_at_zero_for_every_call(batch):
    routing, given = layer(), capsules(batch)
    first = routing(given)
    routing(capsules(batch, seed=9))
    again = routing(given)
    assert torch.equal(first.capsules.poses, again.capsules.poses) and torch.equal(first.coupling, again.coupling)


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_logits_are_each_samples_own(batch):
    routing, given = layer(), capsules(batch)
    whole = routing(given)
    others = given.poses.detach().clone()
    others[1:] = 10 * torch.randn_like(others[1:])
    changed = routing(Capsules(others, lengths(others)))
    alone = routing(Capsules(given.poses[:1], given.activations[:1]))
    for out in (changed, alone):
        torch.testing.assert_close(out.capsules.poses[0], whole.capsules.poses[0])
        torch.testing.assert_close(out.coupling[0], whole.coupling[0])


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_one_iteration_is_a_linear_map(batch):
    routing, given = layer(iterations=1), capsules(batch)
    matrix = routing.weight.reshape(CHILDREN * A, J * D)
    s = (given.poses.flatten(1) @ matrix).view(batch, J, D) / J + routing.bias
    out = routing(given)
    torch.testing.assert_close(out.capsules.poses, squash(s))
    torch.testing.assert_close(out.coupling, torch.full((batch, CHILDREN, J), 1 / J, dtype=torch.float64))


@pytest.mark.parametrize(
    "options", [{}, {"iterations": 1}, *({"agreement": a} for a in ("cosine", "distance"))], ids=str
)
def test_gradcheck(options):
    routing = layer(**options)

    def poses(u):
        return routing(Capsules(u, lengths(u))).capsules.poses

    for batch in (STORED, FACTORED):
        assert torch.autograd.gradcheck(poses, capsules(batch).poses)


@pytest.mark.parametrize("batch", [STORED, FACTORED])
@pytest.mark.parametrize("leaky", [False, True])
def test_temperature(batch, leaky):
    given = capsules(batch)
    out = {T: layer(temperature=T, leaky=leaky)(given) for T in (0.01, 1.0, math.inf)}
    uniform = layer(iterations=1, leaky=leaky)(given)
    torch.testing.assert_close(out[math.inf].coupling, uniform.coupling)
    torch.testing.assert_close(out[math.inf].capsules.poses, uniform.capsules.poses)
    paper = layer(leaky=leaky)(given)
    assert torch.equal(out[1.0].coupling, paper.coupling)
    if not leaky:  # there the coldest children choose one parent, here perhaps none
        spread = {T: o.coupling.amax(2).mean().item() for T, o in out.items()}
        assert spread[0.01] > 0.95 > spread[1.0] > spread[math.inf]


@pytest.mark.parametrize("batch", [STORED, FACTORED])
@pytest.mark.parametrize("agreement", dynamic.AGREEMENTS)
def test_a_step_on_the_agreement_is_the_inverse_of_the_temperature(agreement, batch):
    """b += η · agreement with softmax(b) is what temperature 1/η gives: one knob, not two."""
    eta, given = 2.5, capsules(batch)
    out = layer(temperature=1 / eta, agreement=agreement)(given)
    routing = layer()
    u_hat = textbook.votes(given.poses, routing.weight)
    b = torch.zeros(batch, CHILDREN, J, dtype=torch.float64)
    for _ in range(3):
        c = torch.softmax(b, 2)
        v = squash(torch.einsum("bij,bijd->bjd", c, u_hat) + routing.bias)
        measures = {
            "dot": (u_hat * v[:, None]).sum(-1),
            "cosine": (u_hat * v[:, None]).sum(-1) / (lengths(u_hat) * lengths(v)[:, None]),
            "distance": -(u_hat - v[:, None]).square().sum(-1),
        }
        b = b + eta * measures[agreement]
    torch.testing.assert_close(out.coupling, c)
    torch.testing.assert_close(out.capsules.poses, v)


def test_agreement_by_hand():
    # One child, u = 1, votes (3, 4) for the first parent and (0, 0) for the second. First s = (1.5, 2), |s| = 2.5,
    # v = 25/29 · (0.6, 0.8); û·v = 125/29, the cosine is 1, −|û − v|² = −(5 − 25/29)² = −(120/29)².
    expected = {"dot": 125 / 29, "cosine": 1.0, "distance": -((120 / 29) ** 2)}
    for name, agreement in expected.items():
        routing = DynamicRouting(1, 1, 2, 2, iterations=2, bias=False, agreement=name).double()
        with torch.no_grad():
            routing.weight.copy_(torch.tensor([3.0, 4.0, 0.0, 0.0]).view(1, 1, 2, 2))
        for batch in (STORED, FACTORED):
            given = Capsules(torch.ones(batch, 1, 1, dtype=torch.float64), torch.ones(batch, 1))
            c = 1 / (1 + math.exp(-agreement))  # the second parent's agreement is 0: its vote and capsule are zero
            assert routing(given).coupling[0].flatten().tolist() == pytest.approx([c, 1 - c])


def test_shared_transformation():
    """Uniform coupling of one transformation for all is the sum of the children, transformed."""
    routing, given = layer(shared=True, iterations=1), capsules(FACTORED)
    assert routing.weight.shape == (1, A, J, D)
    s = torch.einsum("ba,ajd->bjd", given.poses.sum(1), routing.weight[0]) / J + routing.bias
    torch.testing.assert_close(routing(given).capsules.poses, squash(s))


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_without_bias_a_pose_and_its_negative_are_one(batch):
    given = capsules(batch)
    negative = Capsules(-given.poses, given.activations)
    a, b = (layer(bias=False)(x) for x in (given, negative))
    torch.testing.assert_close(b.capsules.poses, -a.capsules.poses)
    torch.testing.assert_close(b.coupling, a.coupling)
    a, b = (layer()(x) for x in (given, negative))
    assert (a.coupling - b.coupling).abs().max() > 1e-3


def test_bias_starts_at_a_tenth_and_can_be_left_out():
    assert (DynamicRouting(CHILDREN, A).bias == 0.1).all() and DynamicRouting(CHILDREN, A).bias.shape == (10, 16)
    assert [name for name, _ in DynamicRouting(CHILDREN, A, bias=False).named_parameters()] == ["weight"]


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_trace(batch):
    routing, given = layer(), capsules(batch)
    out = routing(given, trace=True)
    assert routing(given).trace is None
    assert len(out.trace) == 3
    for r, step in enumerate(out.trace, 1):
        v, c = textbook.route(textbook.votes(given.poses, routing.weight), iterations=r, bias=routing.bias)
        torch.testing.assert_close(step["coupling"], c)
        torch.testing.assert_close(step["capsules"].poses, v)
        torch.testing.assert_close(step["capsules"].activations, textbook.length(v))
        assert not step["capsules"].poses.requires_grad and not step["coupling"].requires_grad
    torch.testing.assert_close(out.trace[-1]["coupling"], out.coupling)


def test_start_lengths_leave_room_to_learn():
    """At the paper's size; with W at a standard deviation of 1 they are 0.99, at 0.01 they are 0.01."""
    torch.manual_seed(0)
    u = squash(torch.randn(2, 1152, 8))
    for bias in (True, False):
        mean = DynamicRouting(1152, 8, bias=bias)(Capsules(u, lengths(u))).capsules.activations.mean()
        assert 0.05 < mean < 0.9


@pytest.mark.parametrize("batch", [STORED, FACTORED])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("agreement", dynamic.AGREEMENTS)
def test_gradients_are_finite_for_zero_capsules(batch, bias, agreement):
    routing = DynamicRouting(CHILDREN, A, J, D, bias=bias, agreement=agreement)
    u = torch.zeros(batch, CHILDREN, A, requires_grad=True)
    out = routing(Capsules(u, lengths(u))).capsules
    margin_loss(out.activations, torch.zeros(batch, dtype=torch.long)).backward()
    assert out.poses.isfinite().all() and u.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in routing.parameters())


def test_layers_stack():
    """Three routing layers in a row train, and stay finite."""
    torch.manual_seed(0)
    stack = [DynamicRouting(12, 4, 8, 6), DynamicRouting(8, 6, 6, 6), DynamicRouting(6, 6, 3, 8)]
    optimizer = torch.optim.Adam([p for routing in stack for p in routing.parameters()], lr=0.01)
    u, labels = squash(torch.randn(12, 12, 4)), torch.arange(12) % 3
    losses = []
    for _ in range(20):
        out = Capsules(u, lengths(u))
        for routing in stack:
            out = routing(out).capsules
        loss = margin_loss(out.activations, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        assert all(p.grad.isfinite().all() and p.isfinite().all() for r in stack for p in r.parameters())
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_autocast_routes_in_float32(batch):
    routing, given = layer(torch.float32), capsules(batch, torch.float32)
    plain = routing(given)
    with torch.autocast("cpu", torch.bfloat16):
        out = routing(given)
    assert out.capsules.poses.dtype == out.coupling.dtype == torch.float32
    assert torch.equal(out.capsules.poses, plain.capsules.poses)


def test_half_precision_capsules_become_float32():
    u = capsules(dtype=torch.float32).poses.detach().bfloat16()
    assert layer(torch.float32)(Capsules(u, lengths(u))).capsules.poses.dtype == torch.float32


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_compiled_equals_eager(batch):
    routing, given = layer(), capsules(batch)
    out = torch.compile(routing, backend="aot_eager")(given)
    torch.testing.assert_close(out.capsules.poses, routing(given).capsules.poses)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations is 0; routing needs at least 1."),
        ({"temperature": 0}, "temperature is 0; it must be above 0."),
        ({"temperature": -1.0}, "temperature is -1.0; it must be above 0."),
        ({"temperature": math.nan}, "temperature is nan; it must be above 0."),
        ({"agreement": "l2"}, "there is no agreement 'l2'; choose one of dot, cosine, distance."),
    ],
)
def test_impossible_settings(options, message):
    with pytest.raises(ValueError) as error:
        DynamicRouting(CHILDREN, A, **options)
    assert str(error.value) == message


def test_capsules_of_another_shape():
    with pytest.raises(ValueError) as error:
        layer()(capsules(children=8))
    assert str(error.value) == "this layer routes 7 capsules of 3 numbers, but was given (8, 3)."
