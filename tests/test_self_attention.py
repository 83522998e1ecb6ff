import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from capsnet.functional import exponential_squash, lengths
from capsnet.layers import Capsules, DepthwiseCapsules, EfficientTrunk
from capsnet.losses import margin_loss
from capsnet.routing.self_attention import MultiHeadAttentionRouting, SelfAttentionRouting

CHILDREN, A, J, D = 7, 3, 4, 6


def published(*sizes):
    return SelfAttentionRouting(*sizes)


def general(heads):
    def build(*sizes):
        return MultiHeadAttentionRouting(*sizes, heads=heads)

    return build


FORMS = pytest.mark.parametrize("form", [published, general(1), general(3)], ids=["published", "1 head", "3 heads"])


def capsules(batch=2, dtype=torch.float64, children=CHILDREN, seed=0):
    generator = torch.Generator().manual_seed(seed)
    poses = torch.randn(batch, children, A, dtype=dtype, generator=generator)
    return Capsules(poses.requires_grad_(), lengths(poses))


def layer(form, dtype=torch.float64):
    """A layer as training might leave it: votes long enough to matter, a prior, projections of no particular form."""
    torch.manual_seed(1)
    routing = form(CHILDREN, A, J, D).to(dtype)
    with torch.no_grad():
        routing.weight.copy_(0.4 * torch.randn_like(routing.weight))
        routing.prior.copy_(0.3 * torch.randn_like(routing.prior))
        for projection in (getattr(routing, "query", None), getattr(routing, "key", None)):
            if projection is not None:
                projection.copy_(torch.randn_like(projection) / 2)
    return routing


def looped(routing, u):
    """One number after the other: poses (B, J, D) and the coupling of each head (B, H, I, J)."""
    children, _, parents, dim = routing.weight.shape
    several = isinstance(routing, MultiHeadAttentionRouting)
    count = routing.query.shape[2] if several else 1
    poses, coupling = [], []
    for sample in u:
        votes = [[sample[i] @ routing.weight[i, :, j] for i in range(children)] for j in range(parents)]
        heads = []
        for h in range(count):
            logits = torch.zeros(children, parents, dtype=u.dtype)
            for j in range(parents):
                query = key = votes[j]
                if several:
                    query = [vote @ routing.query[j, :, h] for vote in votes[j]]
                    key = [vote @ routing.key[j, :, h] for vote in votes[j]]
                attention = torch.stack([torch.stack([q @ k for k in key]) for q in query]) / math.sqrt(dim / count)
                for i in range(children):
                    logits[i, j] = attention[i].sum() + (routing.prior[j, i] if several else 0)
            c = torch.stack([row.exp() / row.exp().sum() for row in logits])
            heads.append(c if several else c + routing.prior.T)
        mean = sum(heads) / count
        s = [sum(mean[i, j] * votes[j][i] for i in range(children)) for j in range(parents)]
        length = [x.square().sum().sqrt() for x in s]
        poses.append(torch.stack([(1 - torch.exp(-n)) * x / n for x, n in zip(s, length, strict=True)]))
        coupling.append(torch.stack(heads))
    return torch.stack(poses), torch.stack(coupling)


@pytest.mark.parametrize("batch", [1, 2])
@FORMS
def test_equals_the_looped_version_in_values_and_gradients(form, batch):
    routing, given = layer(form), capsules(batch)
    out = routing(given, trace=True)
    v, heads = looped(routing, given.poses)
    torch.testing.assert_close(out.capsules.poses, v, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(out.capsules.activations, v.square().sum(2).sqrt(), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(out.coupling, heads.mean(1), rtol=1e-10, atol=1e-12)
    inputs, pull = [given.poses, *routing.parameters()], torch.randn_like(v)
    ours = torch.autograd.grad((out.capsules.poses * pull).sum(), inputs)
    theirs = torch.autograd.grad((v * pull).sum(), inputs)
    for a, b in zip(ours, theirs, strict=True):
        assert b.abs().max() > 1e-3
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
    (step,) = out.trace
    torch.testing.assert_close(step["heads"], heads, rtol=1e-10, atol=1e-12)
    assert torch.equal(step["coupling"], out.coupling) and torch.equal(step["capsules"].poses, out.capsules.poses)
    assert torch.equal(step["capsules"].activations, out.capsules.activations)
    assert not any(t.requires_grad for t in (step["heads"], step["coupling"], step["capsules"].poses))
    assert routing(given).trace is None


def test_by_hand():
    # Three children vote 1, 1 and -1 for the first parent and 0 for the second. The votes sum to 1, so the logits for
    # the first parent are 1, 1 and -1: who disagrees with the rest sends less.
    routing = SelfAttentionRouting(3, 1, 2, 1).double()
    with torch.no_grad():
        routing.weight.copy_(torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]).view(3, 1, 2, 1))
    given = Capsules(torch.ones(1, 3, 1, dtype=torch.float64), torch.ones(1, 3))
    out, c = routing(given), math.e / (math.e + 1)
    assert out.coupling.flatten().tolist() == pytest.approx([c, 1 - c, c, 1 - c, 1 - c, c])
    assert out.capsules.poses.flatten().tolist() == pytest.approx([1 - math.exp(-(3 * c - 1)), 0])
    with torch.no_grad():
        routing.prior[0, 2] = -0.5  # first parent, third child
    out = routing(given)
    assert out.coupling[0, 2].tolist() == pytest.approx([0.5 - c, c])
    assert out.capsules.poses.flatten().tolist() == pytest.approx([1 - math.exp(-(3 * c - 0.5)), 0])


def test_one_head_starts_as_the_published_algorithm():
    torch.manual_seed(0)
    first, second = SelfAttentionRouting(CHILDREN, A, J, D), MultiHeadAttentionRouting(CHILDREN, A, J, D, heads=1)
    first.weight.data.normal_()
    second.weight.data.copy_(first.weight)
    given = capsules(dtype=torch.float32)
    torch.testing.assert_close(second(given).capsules.poses, first(given).capsules.poses)
    torch.testing.assert_close(second(given).coupling, first(given).coupling)
    assert (first(given).coupling - 1 / J).abs().max() > 0.1


def test_heads_start_with_a_slice_of_the_pose_each():
    routing, given = MultiHeadAttentionRouting(CHILDREN, A, J, D, heads=3).double(), capsules()
    routing.weight.data.normal_()
    votes = torch.einsum("bia,iajd->bijd", given.poses, routing.weight)
    heads = routing(given, trace=True).trace[0]["heads"]
    for h in range(3):
        part = votes[..., 2 * h : 2 * h + 2]
        logits = (part * part.sum(1, keepdim=True)).sum(3) / math.sqrt(2)
        torch.testing.assert_close(heads[:, h], torch.softmax(logits, 2))


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_explains_the_coupling(heads):
    routing, given = layer(general(heads)), capsules()
    attention = routing.attention(given)
    assert attention.shape == (2, heads, J, CHILDREN, CHILDREN)
    logits = attention.sum(4) + routing.prior  # (B, H, J, I)
    expected = routing(given, trace=True).trace[0]["heads"]
    torch.testing.assert_close(torch.softmax(logits, 2).mT, expected)
    vote = {i: given.poses[1, i] @ routing.weight[i, :, 3] for i in (2, 5)}
    query, key = vote[2] @ routing.query[3, :, 0], vote[5] @ routing.key[3, :, 0]
    torch.testing.assert_close(attention[1, 0, 3, 2, 5], query @ key / math.sqrt(D / heads))


class Largest(TorchDispatchMode):
    """Notes the number of elements of the largest tensor computed."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.elements = max(self.elements, out.numel())
        return out


@pytest.mark.parametrize("form", [published, general(2)], ids=["published", "2 heads"])
def test_no_matrix_of_children_by_children(form):
    routing, u = form(100, 2, 3, 4), torch.randn(1, 100, 2)
    with Largest() as largest:
        routing(Capsules(u, lengths(u))).capsules.poses.sum().backward()
    assert largest.elements < 100 * 100
    if form is not published:
        with Largest() as largest:
            routing.attention(Capsules(u, lengths(u)))
        assert largest.elements == 2 * 3 * 100 * 100


def test_coupling_of_the_published_form_sums_to_one_and_the_priors():
    routing, given = layer(published), capsules()
    coupling = routing(given).coupling
    assert coupling.shape == (2, CHILDREN, J)
    torch.testing.assert_close(coupling.sum(2), (1 + routing.prior.sum(0)).expand(2, -1))
    with torch.no_grad():
        routing.prior.zero_()
    coupling = routing(given).coupling
    torch.testing.assert_close(coupling.sum(2), torch.ones(2, CHILDREN, dtype=torch.float64))
    assert (coupling.sum(1) - CHILDREN / J).abs().max() > 0.1  # and over the children to nothing in particular


@pytest.mark.parametrize("heads", [1, 2, 6])
def test_coupling_of_the_general_form_sums_to_one(heads):
    out = layer(general(heads))(capsules(), trace=True)
    one = torch.ones(2, heads, CHILDREN, dtype=torch.float64)
    torch.testing.assert_close(out.trace[0]["heads"].sum(3), one)
    torch.testing.assert_close(out.coupling.sum(2), one[:, 0])
    assert (out.coupling > 0).all() and (out.coupling - 1 / J).abs().max() > 0.1


@FORMS
def test_order_of_parents_and_children_does_not_matter(form):
    given, routing, shuffled = capsules(), layer(form), layer(form)
    children, parents = torch.randperm(CHILDREN), torch.randperm(J)
    with torch.no_grad():
        shuffled.weight.copy_(routing.weight[children][:, :, parents])
        shuffled.prior.copy_(routing.prior[parents][:, children])
        if form is not published:
            shuffled.query.copy_(routing.query[parents])
            shuffled.key.copy_(routing.key[parents])
    a = routing(given)
    b = shuffled(Capsules(given.poses[:, children], given.activations[:, children]))
    torch.testing.assert_close(b.capsules.poses, a.capsules.poses[:, parents])
    torch.testing.assert_close(b.coupling, a.coupling[:, children][:, :, parents])


@FORMS
def test_each_sample_is_routed_by_itself_and_every_time_alike(form):
    routing, given = layer(form), capsules(3)
    whole = routing(given)
    assert torch.equal(routing(given).capsules.poses, whole.capsules.poses)
    others = given.poses.detach().clone()
    others[1:] = 10 * torch.randn_like(others[1:])
    for u in (others, given.poses[:1]):
        out = routing(Capsules(u, lengths(u)))
        torch.testing.assert_close(out.capsules.poses[0], whole.capsules.poses[0])
        torch.testing.assert_close(out.coupling[0], whole.coupling[0])


@FORMS
def test_gradcheck(form):
    routing = layer(form)
    assert torch.autograd.gradcheck(lambda u: routing(Capsules(u, lengths(u))).capsules.poses, capsules(1).poses)


@FORMS
def test_start(form):
    """Weights with Keras' fan: 10 · 16 · 8 inputs, not the 16 · 8 · 16 of PyTorch, whose deviation is 0.031."""
    torch.manual_seed(0)
    routing = form(16, 8, 10, 15)
    std = math.sqrt(2 / 1280)
    assert routing.weight.std().item() == pytest.approx(std, rel=0.03)
    assert routing.weight.abs().max() <= 2 * std / 0.8796
    assert routing.prior.shape == (10, 16) and (routing.prior == 0).all()


def count(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


def test_published_network():
    trunk, primary, routing = EfficientTrunk(1), DepthwiseCapsules(), SelfAttentionRouting(16, 8)
    assert count(trunk, primary, routing) == 161_824
    assert count(routing) == 20_480 + 160
    assert count(MultiHeadAttentionRouting(16, 8)) == 20_480 + 160 + 2 * 10 * 16 * 16
    network = torch.nn.Sequential(trunk, primary, routing).eval()
    out = network(torch.rand(2, 1, 28, 28))
    assert out.capsules.poses.shape == (2, 10, 16) and out.coupling.shape == (2, 16, 10)
    assert out.capsules.activations.max() < 1


@FORMS
def test_gradients_are_finite_for_zero_capsules(form):
    routing, u = form(CHILDREN, A, J, D), torch.zeros(2, CHILDREN, A, requires_grad=True)
    out = routing(Capsules(u, lengths(u))).capsules
    margin_loss(out.activations, torch.zeros(2, dtype=torch.long)).backward()
    assert (out.poses == 0).all() and u.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in routing.parameters())


@pytest.mark.parametrize("form", [published, general(2)], ids=["published", "2 heads"])
def test_layers_stack(form):
    """Three routing layers in a row train from their short start vectors, and stay finite."""
    torch.manual_seed(0)
    stack = torch.nn.ModuleList([form(12, 4, 8, 6), form(8, 6, 6, 6), form(6, 6, 3, 8)])
    optimizer = torch.optim.Adam(stack.parameters(), lr=0.02)
    u, labels = exponential_squash(torch.randn(12, 12, 4)), torch.arange(12) % 3
    losses = []
    for _ in range(40):
        out = Capsules(u, lengths(u))
        for routing in stack:
            out = routing(out).capsules
        loss = margin_loss(out.activations, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        assert all(p.grad.isfinite().all() and p.isfinite().all() for p in stack.parameters())
    assert losses[-1] < 0.5 * losses[0]


@FORMS
def test_autocast_routes_in_float32(form):
    routing, given = layer(form, torch.float32), capsules(dtype=torch.float32)
    plain = routing(given)
    with torch.autocast("cpu", torch.bfloat16):
        out = routing(given)
        if form is not published:
            assert routing.attention(given).dtype == torch.float32
    assert out.capsules.poses.dtype == out.coupling.dtype == torch.float32
    assert torch.equal(out.capsules.poses, plain.capsules.poses)
    half = given.poses.detach().bfloat16()
    assert routing.bfloat16()(Capsules(half, lengths(half))).capsules.poses.dtype == torch.float32


@FORMS
def test_compiled_equals_eager(form):
    routing, given = layer(form), capsules()
    out = torch.compile(routing, backend="aot_eager", fullgraph=True)(given)
    torch.testing.assert_close(out.capsules.poses, routing(given).capsules.poses)
    torch.testing.assert_close(out.coupling, routing(given).coupling)


@FORMS
def test_capsules_of_another_shape(form):
    with pytest.raises(ValueError) as error:
        layer(form)(capsules(children=8))
    assert str(error.value) == "this layer routes 7 capsules of 3 numbers, but was given (8, 3)."


@pytest.mark.parametrize("heads", [0, 5, -2])
def test_impossible_heads(heads):
    with pytest.raises(ValueError) as error:
        MultiHeadAttentionRouting(CHILDREN, A, J, 16, heads=heads)
    assert str(error.value) == f"heads is {heads}; poses of 16 numbers need a divisor of 16."
