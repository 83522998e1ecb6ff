import math

import pytest
import textbook
import torch

from capsnet.functional import lengths, squash
from capsnet.layers import Capsules
from capsnet.losses import margin_loss
from capsnet.models import create_model
from capsnet.routing.dynamic import STORED_VOTES_UP_TO, DynamicRouting
from capsnet.routing.windowed import WindowedRouting

TYPES, GRID, A, J, D = 2, (4, 6), 3, 4, 5
CHILDREN = TYPES * 24
STORED, FACTORED = 2, 5  # batch sizes that take either evaluation of the votes


def capsules(batch=STORED, dtype=torch.float64, seed=0, grid=GRID, children=CHILDREN):
    generator = torch.Generator().manual_seed(seed)
    poses = torch.randn(batch, children, A, dtype=dtype, generator=generator)
    return Capsules(poses.requires_grad_(), lengths(poses), grid)


def layer(dtype=torch.float64, kind=WindowedRouting, children=CHILDREN, **options):
    """A layer whose votes are long enough for the coupling to leave the uniform one far behind."""
    torch.manual_seed(1)
    routing = kind(children, A, J, D, **options).to(dtype)
    with torch.no_grad():
        routing.weight.mul_(4)
        if routing.bias is not None:
            routing.bias.add_(0.1 * torch.randn(J, D))
    return routing


def looped(routing, u, grid, **options):
    """One window after the other: poses (B, J, D) and coupling (B, I, J)."""
    votes = textbook.votes(u, routing.weight.expand(u.shape[1], -1, -1, -1))  # (B, I, J, D)
    total, count = torch.zeros_like(votes[..., 0]), torch.zeros(u.shape[1], 1)
    for top in range(0, grid[0] - routing.window + 1, routing.stride):
        for left in range(0, grid[1] - routing.window + 1, routing.stride):
            inside = [
                (t * grid[0] + row) * grid[1] + column
                for t in range(TYPES)
                for row in range(top, top + routing.window)
                for column in range(left, left + routing.window)
            ]
            _, coupling = textbook.route(votes[:, inside], bias=routing.bias, **options)
            total[:, inside] += coupling
            count[inside] += 1
    coupling = total / count
    s = (coupling[..., None] * votes).sum(1) + (0 if routing.bias is None else routing.bias)
    return textbook.squash(s), coupling


OPTIONS = [
    {"window": 2},
    {"window": 2, "stride": 1, "iterations": 2},
    {"window": 4, "stride": 2},
    {"window": 1, "leaky": True},
    {"window": 2, "iterations": 1},
    {"window": 2, "temperature": 0.5, "bias": False},
    {"window": 2, "agreement": "cosine", "iterations": 4},
    {"window": 4, "stride": 1, "agreement": "distance", "shared": True},
]


@pytest.mark.parametrize("batch", [1, FACTORED])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_loops_in_values_and_gradients(options, batch):
    assert STORED <= STORED_VOTES_UP_TO < FACTORED
    routing, given = layer(**options), capsules(batch)
    out = routing(given, trace=True)
    how = {"temperature": routing.temperature, "leaky": routing.leaky, "agreement": routing.agreement}
    assert len(out.trace) == routing.iterations
    for r, step in enumerate(out.trace, 1):
        v, coupling = looped(routing, given.poses, GRID, iterations=r, **how)
        torch.testing.assert_close(step["capsules"].poses, v, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(step["coupling"], coupling, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(out.capsules.poses, v, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(out.capsules.activations, textbook.length(v), rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(out.coupling, coupling, rtol=1e-9, atol=1e-11)
    inputs, pull = [given.poses, *routing.parameters()], torch.randn_like(v)
    ours = torch.autograd.grad((out.capsules.poses * pull).sum(), inputs)
    theirs = torch.autograd.grad((v * pull).sum(), inputs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("batch", [1, STORED, FACTORED])
@pytest.mark.parametrize("options", [{}, {"leaky": True}, {"iterations": 1}, {"agreement": "cosine"}], ids=str)
def test_a_window_as_large_as_the_map_is_dynamic_routing(options, batch):
    local = layer(window=4, children=32, **options)
    whole = layer(kind=DynamicRouting, children=32, **options)
    assert all(torch.equal(a, b) for a, b in zip(local.parameters(), whole.parameters(), strict=True))
    results = []
    for routing in (local, whole):
        given = capsules(batch, grid=(4, 4), children=32)
        out = routing(given, trace=True)
        grads = torch.autograd.grad(out.capsules.poses.pow(3).sum(), [given.poses, *routing.parameters()])
        trace = [x for step in out.trace for x in (step["coupling"], step["capsules"].poses)]
        results.append([out.capsules.poses, out.capsules.activations, out.coupling, *trace, *grads])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
    small = layer(window=2, children=32, **options)(capsules(batch, grid=(4, 4), children=32))
    difference = (small.coupling - results[1][2]).abs().max()
    assert difference == 0 if options == {"iterations": 1} else difference > 0.05  # and smaller ones are another thing


@pytest.mark.parametrize("stride", [2, 1])
def test_capsules_outside_a_window_do_not_change_what_it_sends(stride):
    """The corner capsules are in one window alone: two by two places at the top left."""
    routing, given = layer(window=2, stride=stride), capsules()
    corner = (slice(None), slice(None), 0, 0)
    poses = given.poses.detach().view(STORED, TYPES, *GRID, A)
    before = routing(given).coupling.view(STORED, TYPES, *GRID, J)
    others, neighbour = (5 * torch.randn_like(poses) for _ in range(2))
    others[:, :, :2, :2] = poses[:, :, :2, :2]
    inside = poses.clone()
    inside[:, :, 1, 1] = neighbour[:, :, 1, 1]
    after = {}
    for name, changed in (("outside", others), ("inside", inside)):
        out = routing(Capsules(changed.flatten(1, 3), None, GRID))
        after[name] = out.coupling.view(STORED, TYPES, *GRID, J)
    torch.testing.assert_close(after["outside"][corner], before[corner], rtol=1e-12, atol=1e-14)
    assert (after["outside"] - before).abs().max() > 0.1
    assert (after["inside"][corner] - before[corner]).abs().max() > 0.01


def test_a_window_sends_its_share_of_the_sum():
    """Before the squash, the digits are the bias and what each window sends, and each child sends a whole."""
    routing, given = layer(window=2), capsules()
    out = routing(given)
    sent = out.coupling[..., None] * textbook.votes(given.poses, routing.weight)  # (B, I, J, D)
    windows = sent.view(STORED, TYPES, 2, 2, 3, 2, J, D).sum((1, 3, 5)).flatten(1, 2)  # (B, 6 windows, J, D)
    torch.testing.assert_close(squash(windows.sum(1) + routing.bias), out.capsules.poses)
    for overlapping in (layer(window=2), layer(window=3, stride=1), layer(window=4, stride=2)):
        sums = overlapping(given).coupling.sum(2)
        torch.testing.assert_close(sums, torch.ones(STORED, CHILDREN, dtype=torch.float64))


def test_default_windows_are_side_by_side():
    assert (layer().window, layer().stride, layer(window=2).stride) == (3, 3, 2)


# As every routing layer


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_each_sample_is_routed_alone(batch):
    routing, given = layer(window=2), capsules(batch)
    whole = routing(given)
    assert torch.equal(routing(given).capsules.poses, whole.capsules.poses)
    alone = routing(Capsules(given.poses[:1], given.activations[:1], GRID))
    torch.testing.assert_close(alone.capsules.poses, whole.capsules.poses[:1])
    torch.testing.assert_close(alone.coupling, whole.coupling[:1])


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_gradients_are_finite_for_zero_capsules(batch):
    for options in ({"window": 2}, {"window": 2, "bias": False}, {"window": 2, "bias": False, "agreement": "cosine"}):
        routing = WindowedRouting(CHILDREN, A, J, D, **options)
        u = torch.zeros(batch, CHILDREN, A, requires_grad=True)
        out = routing(Capsules(u, lengths(u), GRID)).capsules
        margin_loss(out.activations, torch.zeros(batch, dtype=torch.long)).backward()
        assert out.poses.isfinite().all() and u.grad.isfinite().all()
        assert all(p.grad.isfinite().all() for p in routing.parameters())


def test_trains():
    torch.manual_seed(0)
    routing = WindowedRouting(8, 4, 3, 8, window=1)
    optimizer = torch.optim.Adam(routing.parameters(), lr=0.01)
    u, labels = squash(2 * torch.randn(12, 8, 4)), torch.arange(12) % 3
    losses = []
    for _ in range(20):
        loss = margin_loss(routing(Capsules(u, lengths(u), (2, 2))).capsules.activations, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_autocast_routes_in_float32(batch):
    routing, given = layer(torch.float32, window=2), capsules(batch, torch.float32)
    plain = routing(given)
    with torch.autocast("cpu", torch.bfloat16):
        out = routing(given)
    assert torch.equal(out.capsules.poses, plain.capsules.poses) and torch.equal(out.coupling, plain.coupling)
    assert routing(Capsules(given.poses.bfloat16(), None, GRID)).capsules.poses.dtype == torch.float32


def test_compiled_equals_eager():
    routing, given = layer(window=2), capsules()
    out = torch.compile(routing, backend="aot_eager", fullgraph=True)(given)
    torch.testing.assert_close(out.capsules.poses, routing(given).capsules.poses)


def test_channels_last_changes_nothing():
    routing, given = layer(window=2), capsules()
    before = routing(given).capsules.poses
    torch.testing.assert_close(routing.to(memory_format=torch.channels_last)(given).capsules.poses, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window is 0 and stride 0; the stride must be from 1 to the window's size."),
        ({"window": 2, "stride": 3}, "window is 2 and stride 3; the stride must be from 1 to the window's size."),
        ({"window": 2, "stride": 0}, "window is 2 and stride 0; the stride must be from 1 to the window's size."),
        ({"window": 2, "temperature": math.nan}, "temperature is nan; it must be above 0."),
    ],
)
def test_impossible_settings(options, message):
    with pytest.raises(ValueError) as error:
        WindowedRouting(CHILDREN, A, **options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (capsules(children=8), "this layer routes 48 capsules of 3 numbers, but was given (8, 3)."),
        (capsules(grid=None), "windowed routing needs capsules on a grid, as primary capsules are; these have none."),
        (capsules(grid=(5, 5)), "48 capsules are no whole number of types on a grid of 5×5."),
        (capsules(), "windows of 3×3, every 2 places, do not cover a grid of 4×6 exactly."),
        (capsules(grid=(2, 24)), "windows of 3×3, every 2 places, do not cover a grid of 2×24 exactly."),
    ],
)
def test_other_capsules(given, message):
    with pytest.raises(ValueError) as error:
        layer(window=3, stride=2)(given)
    assert str(error.value) == message


def test_windows_that_do_not_fit_are_refused_when_the_network_is_built():
    with pytest.raises(ValueError) as error:
        create_model("capsnet-small", routing="windowed", routing_options={"window": 4})
    assert str(error.value) == "windows of 4×4, every 4 places, do not cover a grid of 6×6 exactly."
    create_model("capsnet-small", routing="windowed", routing_options={"window": 4, "stride": 2})
