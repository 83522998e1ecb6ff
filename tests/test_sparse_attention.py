import math

import pytest
import textbook
import torch

from capsnet.entmax import entmax
from capsnet.functional import lengths, squash
from capsnet.layers import Capsules
from capsnet.losses import margin_loss
from capsnet.routing.dynamic import STORED_VOTES_UP_TO
from capsnet.routing.sparse_attention import SparseAttentionRouting, keep, orthogonal

TYPES, GRID, A, J, D = 4, (1, 3), 3, 4, 5
CHILDREN = TYPES * 3
STORED, FACTORED = 2, 5  # batch sizes that take either evaluation of the votes


def capsules(batch=STORED, dtype=torch.float64, seed=0, grid=GRID, children=CHILDREN):
    generator = torch.Generator().manual_seed(seed)
    poses = squash(2 * torch.randn(batch, children, A, dtype=dtype, generator=generator)).requires_grad_()
    return Capsules(poses, lengths(poses), grid)


def layer(dtype=torch.float64, **options):
    """A layer as training might leave it: attention and coupling are far from uniform."""
    torch.manual_seed(1)
    routing = SparseAttentionRouting(CHILDREN, A, J, D, **options).to(dtype)
    with torch.no_grad():
        for weight in (routing.query.weight, routing.key.weight):
            weight.copy_(3 * torch.randn(A, A))
        routing.weight.mul_(8)
        if routing.bias is not None:
            routing.bias.add_(0.1 * torch.randn(J, D))
    return routing


def looped(routing, u, grid):
    """One capsule after the other: poses (B, J, D), coupling (B, I, J), kept (B, I), attention (B, P, T, T)."""
    places = grid[0] * grid[1] if grid else 1
    types = u.shape[1] // places
    W_Q, W_K, W_V = routing.query.weight, routing.key.weight, routing.value.weight
    after, kept, attention = [], [], []
    for sample in u:
        new, stays, rows = {}, {}, []
        for place in range(places):
            here = [sample[t * places + place] for t in range(types)]
            near = [[math.nan] * types for _ in here]
            for t in range(types):
                stays[t, place] = True
                for other in range(types):
                    longer = here[other].norm() > here[t].norm()
                    near[t][other] = torch.dot(here[t], here[other]) / (here[t].norm() * here[other].norm())
                    if longer and routing.max_cosine < 1 and near[t][other] > routing.max_cosine:
                        stays[t, place] = False
            for t in range(types):
                scores = [W_Q @ here[t] @ (W_K @ other) / math.sqrt(A) for other in here]
                if not stays[t, place]:  # no query: all scores are zero
                    scores = [torch.zeros_like(score) for score in scores]
                scores = torch.stack(
                    [s if stays[o, place] else -math.inf * torch.ones_like(s) for o, s in enumerate(scores)]
                )
                weights = entmax(scores, routing.alpha, top_k=routing.top_k)
                rows.append(weights)
                seen = sum(weights[other] * (W_V @ here[other]) for other in range(types) if stays[other, place])
                s = here[t] + seen
                new[t, place] = (1 - torch.exp(-s.norm())) * s / s.norm() if stays[t, place] else torch.zeros_like(s)
        order = [(t, place) for t in range(types) for place in range(places)]
        after.append(torch.stack([new[key] for key in order]))
        kept.append([stays[key] for key in order])
        attention.append(torch.stack(rows).view(places, types, types))
    votes = textbook.votes(torch.stack(after), routing.weight)  # (B, I, J, D)
    coupling = []
    for sample in votes:
        for vote in sample:
            agreement = [vote[j] @ sample[:, j].sum(0) / math.sqrt(D) for j in range(J)]
            coupling.append(entmax(torch.stack(agreement), routing.alpha))
    coupling = torch.stack(coupling).view(votes.shape[:3])
    s = (coupling[..., None] * votes).sum(1) + (0 if routing.bias is None else routing.bias)
    return textbook.squash(s), coupling, torch.tensor(kept), torch.stack(attention)


OPTIONS = [
    {},
    {"alpha": 1, "max_cosine": 1},
    {"alpha": 2, "max_cosine": 0.5},
    {"alpha": 1, "top_k": 2, "max_cosine": 0.3},
    {"top_k": 3, "bias": False},
]


@pytest.mark.parametrize("batch", [1, FACTORED])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_loops_in_values_and_gradients(options, batch):
    assert STORED <= STORED_VOTES_UP_TO < FACTORED
    routing, given = layer(**options), capsules(batch)
    out = routing(given, trace=True)
    v, coupling, kept, attention = looped(routing, given.poses, GRID)
    (step,) = out.trace
    for ours, theirs in (
        (out.capsules.poses, v),
        (out.capsules.activations, textbook.length(v)),
        (out.coupling, coupling),
        (step["attention"], attention),
        (step["coupling"], coupling),
        (step["capsules"].poses, v),
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)
    assert torch.equal(step["kept"], kept) and kept.all() == (routing.max_cosine == 1)
    inputs, pull = [given.poses, *routing.parameters()], torch.randn_like(v)
    ours = torch.autograd.grad((out.capsules.poses * pull).sum(), inputs)
    theirs = torch.autograd.grad((v * pull).sum(), inputs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
        assert a.abs().max() > 0


@pytest.mark.parametrize("grid", [None, (1, 1)])
def test_without_a_grid_all_capsules_form_one_set(grid):
    routing, given = layer(), capsules(grid=grid)
    out = routing(given, trace=True)
    v, coupling, kept, attention = looped(routing, given.poses, grid)
    assert attention.shape == (STORED, 1, CHILDREN, CHILDREN)
    torch.testing.assert_close(out.trace[0]["attention"], attention)
    torch.testing.assert_close(out.capsules.poses, v)
    torch.testing.assert_close(out.coupling, coupling)


def test_attention_and_pruning_are_among_the_types_at_one_place():
    routing, given = layer(), capsules()
    before = routing(given, trace=True).trace[0]
    changed = given.poses.detach().clone().view(STORED, TYPES, 3, A)
    changed[:, :, 1] = squash(2 * torch.randn(STORED, TYPES, A, dtype=torch.float64))
    after = routing(Capsules(changed.flatten(1, 2), None, GRID), trace=True).trace[0]
    same = [0, 2]
    assert torch.equal(after["attention"][:, same], before["attention"][:, same])
    assert (after["attention"][:, 1] - before["attention"][:, 1]).abs().max() > 0.1


# Pruning


def test_pruning_by_hand():
    # Cosines: a and b 0.96, a and c 0, b and c 0.28.
    a, b, c = [1.0, 0], [0.96, 0.28], [0, 1.0]
    three = torch.tensor([[a, b, c], [[2.0, 0], b, c], [a, [1.92, 0.56], c]])
    assert keep(three, 0.9).tolist() == [[True, False, True], [True, False, True], [False, True, True]]
    assert keep(three, 0.97).all() and keep(three, 1).all()
    assert keep(three[1:], 0.2).tolist() == [[True, False, False], [False, True, False]]  # b masks c, masked or not


def test_pruning_of_equal_and_of_zero_capsules():
    same = torch.tensor([[0.6, 0.8], [0.6, 0.8], [0.6, 0.8]])
    assert keep(same, 0.99).tolist() == [True, False, False]  # of equal lengths, the first
    assert keep(same, 1).all()  # not even these, and though rounding makes some cosines 1.0000001
    assert keep(torch.zeros(3, 2), 0.1).all()
    assert keep(torch.tensor([[0.0, 0], [1, 0], [-2, 0]]), 0.1).all()  # opposite is not parallel


def test_the_longest_is_always_kept():
    poses = torch.randn(50, 20, 2)
    kept = keep(poses, 0.05)
    assert kept.gather(1, lengths(poses).argmax(1, keepdim=True)).all() and kept.double().mean() < 0.2


def test_a_masked_capsule_has_no_effect():
    """Nobody attends to it, it sends nothing, and no gradient reaches it."""
    routing, given = layer(max_cosine=0.5), capsules()
    out = routing(given, trace=True)
    kept, attention = out.trace[0]["kept"], out.trace[0]["attention"]
    assert 0.1 < kept.double().mean() < 0.9
    columns = attention.amax(2).transpose(1, 2).flatten(1)  # the most that anyone attends to each, (B, I)
    assert (columns[~kept] == 0).all() and columns[kept].mean() > 0.3
    torch.testing.assert_close(out.coupling[~kept], torch.full_like(out.coupling[~kept], 1 / J))
    (gradient,) = torch.autograd.grad(out.capsules.poses.pow(3).sum(), given.poses)
    assert (gradient[~kept] == 0).all() and (gradient[kept].abs().amax(-1) > 0).all()
    shorter = Capsules(torch.where(kept[..., None], given.poses, 0.9 * given.poses), None, GRID)
    assert torch.equal(routing(shorter).capsules.poses, out.capsules.poses)


# Orthogonality


def off(W):
    return (W.mT @ W - torch.eye(len(W))).abs().max().item()


def test_orthogonal_is_a_product_of_reflections():
    torch.manual_seed(0)
    linear = orthogonal(5).double()
    raw = linear.parametrizations.weight.original.detach()
    expected = torch.diag(raw.diagonal().sign())
    for i in reversed(range(5)):
        b = torch.zeros(5, dtype=torch.float64)
        b[i], b[i + 1 :] = 1, raw[i + 1 :, i]
        expected = expected - 2 * torch.outer(b, b @ expected) / (b @ b)
    torch.testing.assert_close(linear.weight, expected)


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_orthogonal_after_optimizer_steps(decay):
    """Weight decay too: it would shrink the signs that torch's map rounds to integers."""
    torch.manual_seed(0)
    routing = layer(torch.float32)
    optimizer = torch.optim.AdamW(routing.parameters(), lr=0.1, weight_decay=decay)
    first = routing.value.weight.detach().clone()
    for _ in range(5):
        loss = margin_loss(routing(capsules(dtype=torch.float32)).capsules.activations, torch.tensor([0, 1]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    W = routing.value.weight.detach()
    assert off(W) < 1e-5 and (W - first).abs().max() > 0.1
    assert off(routing.query.weight.detach()) > 0.1  # and queries are free
    u = capsules(dtype=torch.float32).poses.detach()[0]
    values = routing.value(u)
    torch.testing.assert_close(lengths(values), lengths(u))  # neither stretched
    torch.testing.assert_close(values @ values.mT, u @ u.mT)  # nor brought closer together


def test_orthogonal_in_half_precision_files():
    routing, copy = layer(torch.float32), layer(torch.float32)
    with torch.no_grad():
        routing.value.parametrizations.weight.original.add_(torch.randn(A, A).tril(-1))
    copy.load_state_dict({name: tensor.half() for name, tensor in routing.state_dict().items()})
    assert off(copy.value.weight.detach()) < 1e-6
    torch.testing.assert_close(copy.value.weight, routing.value.weight, rtol=0, atol=2e-3)
    assert routing.half()(capsules(dtype=torch.float32)).capsules.poses.dtype == torch.float32


# Sparsity


def test_sparsity_of_attention_and_coupling():
    given = capsules(FACTORED)
    zeros = {}
    for alpha in (1, 1.5, 2):
        out = layer(alpha=alpha, max_cosine=1)(given, trace=True)
        zeros[alpha] = [(x == 0).sum().item() for x in (out.coupling, out.trace[0]["attention"])]
        torch.testing.assert_close(out.coupling.sum(2), torch.ones(FACTORED, CHILDREN, dtype=torch.float64))
    assert zeros[1] == [0, 0]
    assert all(0 < a < b for a, b in zip(zeros[1.5], zeros[2], strict=True))


def test_top_k_limits_the_attention():
    given = capsules()
    dense, all_of_them, one = (layer(top_k=k, max_cosine=1)(given, trace=True) for k in (None, TYPES, 1))
    assert torch.equal(dense.capsules.poses, all_of_them.capsules.poses)
    assert sorted(one.trace[0]["attention"].unique().tolist()) == [0, 1]
    assert (one.coupling > 0).sum() > CHILDREN * STORED  # the coupling is free


# As every routing layer


@pytest.mark.parametrize("batch", [STORED, FACTORED])
def test_each_sample_is_routed_alone(batch):
    routing, given = layer(), capsules(batch)
    whole = routing(given)
    assert torch.equal(routing(given).capsules.poses, whole.capsules.poses)
    alone = routing(Capsules(given.poses[:1], given.activations[:1], GRID))
    torch.testing.assert_close(alone.capsules.poses, whole.capsules.poses[:1])
    torch.testing.assert_close(alone.coupling, whole.coupling[:1])


@pytest.mark.parametrize("batch", [STORED, FACTORED])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("alpha", [1, 1.5, 2])
def test_gradients_are_finite_for_zero_capsules(batch, bias, alpha):
    routing = SparseAttentionRouting(CHILDREN, A, J, D, alpha=alpha, top_k=2, bias=bias)
    u = torch.zeros(batch, CHILDREN, A, requires_grad=True)
    out = routing(Capsules(u, lengths(u), GRID)).capsules
    margin_loss(out.activations, torch.zeros(batch, dtype=torch.long)).backward()
    assert out.poses.isfinite().all() and u.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in routing.parameters())


def test_start_lengths_leave_room_to_learn():
    torch.manual_seed(0)
    u = squash(torch.randn(2, 288, 8))
    out = SparseAttentionRouting(288, 8)(Capsules(u, lengths(u), (6, 6)))
    assert 0.05 < out.capsules.activations.mean() < 0.9
    assert (out.coupling > 0).double().mean() > 0.9  # and nobody has chosen yet


def test_layers_stack_and_train():
    torch.manual_seed(0)
    stack = [SparseAttentionRouting(12, 4, 8, 6), SparseAttentionRouting(8, 6, 3, 8)]
    optimizer = torch.optim.Adam([p for routing in stack for p in routing.parameters()], lr=0.01)
    u, labels = squash(2 * torch.randn(12, 12, 4)), torch.arange(12) % 3
    losses = []
    for _ in range(20):
        out = Capsules(u, lengths(u), (2, 2))
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
    assert torch.equal(out.capsules.poses, plain.capsules.poses) and torch.equal(out.coupling, plain.coupling)
    assert routing(Capsules(given.poses.bfloat16(), None, GRID)).capsules.poses.dtype == torch.float32


def test_compiled_equals_eager():
    routing, given = layer(), capsules()
    out = torch.compile(routing, backend="aot_eager", fullgraph=True)(given)
    torch.testing.assert_close(out.capsules.poses, routing(given).capsules.poses)


def test_channels_last_changes_nothing():
    routing, given = layer(), capsules()
    before = routing(given).capsules.poses
    torch.testing.assert_close(routing.to(memory_format=torch.channels_last)(given).capsules.poses, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 3}, "alpha is 3; choose 1 (softmax), 1.5 or 2 (sparsemax)."),
        ({"top_k": 0}, "top_k is 0; at least 1 capsule must be attended to."),
        ({"max_cosine": 0}, "max_cosine is 0; it must be above 0 and at most 1, which masks no capsule."),
        ({"max_cosine": 1.1}, "max_cosine is 1.1; it must be above 0 and at most 1, which masks no capsule."),
        ({"max_cosine": math.nan}, "max_cosine is nan; it must be above 0 and at most 1, which masks no capsule."),
    ],
)
def test_impossible_settings(options, message):
    with pytest.raises(ValueError) as error:
        SparseAttentionRouting(CHILDREN, A, **options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (capsules(children=8), "this layer routes 12 capsules of 3 numbers, but was given (8, 3)."),
        (capsules(grid=(5, 2)), "12 capsules are no whole number of types on a grid of 5×2."),
    ],
)
def test_other_capsules(given, message):
    with pytest.raises(ValueError) as error:
        layer()(given)
    assert str(error.value) == message
