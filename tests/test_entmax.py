import math

import pytest
import torch

from capsnet.entmax import ALPHAS, entmax

SPARSE = (1.5, 2)


def numbers(*shape, dtype=torch.float64, seed=0, scale=2.0):
    return scale * torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def bisected(row, alpha):
    """One row, τ between the two values at which the largest entry alone would be 1 and 1/N, halved 100 times."""
    z = [(alpha - 1) * x for x in row]
    low, high = max(z) - 1, max(z) - (1 / len(z)) ** (alpha - 1)
    for _ in range(100):
        tau = (low + high) / 2
        p = [max(x - tau, 0) ** (1 / (alpha - 1)) for x in z]
        low, high = (tau, high) if sum(p) > 1 else (low, tau)
    return p


@pytest.mark.parametrize(
    ("alpha", "x", "p"),
    [
        # The projection onto the simplex: two entries stay, τ = (1 + 0.5 − 1) / 2 = 0.25; a third one at τ is zero.
        (2, [1, 0.5, -1], [0.75, 0.25, 0]),
        (2, [0.5, 0.25, 1], [0.25, 0, 0.75]),
        (2, [3, 1, 2], [1, 0, 0]),
        # All three stay: τ = (0.9 − 1) / 3.
        (2, [0.2, 0.5, 0.2], [0.7 / 3, 1.6 / 3, 0.7 / 3]),
        # p = (x/2 − τ)²: with τ = −0.6 the roots are 0.8 and 0.6; a third entry at 2τ is zero.
        (1.5, [0.4, 0, -1.2], [0.64, 0.36, 0]),
        (1.5, [-7, 10.4, 10], [0, 0.64, 0.36]),
        (1.5, [2, 0, 0], [1, 0, 0]),
        (1, [math.log(3), 0], [0.75, 0.25]),
    ],
)
def test_by_hand(alpha, x, p):
    given = torch.tensor(x, dtype=torch.float64)
    torch.testing.assert_close(entmax(given, alpha), torch.tensor(p, dtype=torch.float64), rtol=0, atol=1e-15)


def test_gradient_by_hand():
    """With r = √p it is diag(r) − r rᵀ / Σr for α = 1.5, and diag(1) − 1/k among the k that stay for α = 2."""
    for alpha, x, gradient in (
        (1.5, [0.4, 0, -3], [0.8 - 0.64 / 1.4, -0.48 / 1.4, 0]),
        (2, [1, 0.5, -1], [0.5, -0.5, 0]),
    ):
        given = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        entmax(given, alpha)[0].backward()
        torch.testing.assert_close(given.grad, torch.tensor(gradient, dtype=torch.float64))


@pytest.mark.parametrize("alpha", SPARSE)
@pytest.mark.parametrize("scale", [0.01, 1, 30])
def test_equals_bisection(alpha, scale):
    for size in (1, 2, 5, 40):
        x = numbers(6, size, scale=scale)
        expected = torch.tensor([bisected(row, alpha) for row in x.tolist()], dtype=torch.float64)
        torch.testing.assert_close(entmax(x, alpha), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradcheck(alpha):
    x = numbers(3, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: entmax(x, alpha), x)
    assert torch.autograd.gradcheck(lambda x: entmax(x, alpha, dim=0, top_k=2), x)


def test_alpha_one_is_softmax():
    x = numbers(4, 5)
    assert torch.equal(entmax(x, 1), torch.softmax(x, -1))


@pytest.mark.parametrize("alpha", SPARSE)
def test_sums_to_one_with_exact_zeros(alpha):
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        for shape, scale in (((50, 10), 1), ((4, 1152), 3), ((2, 1152), 1e-4)):
            p = entmax(numbers(*shape, scale=scale, dtype=dtype), alpha)
            assert (p.sum(-1) - 1).abs().max() < tolerance and p.min() >= 0
            if scale >= 1:
                assert 0.1 < (p == 0).double().mean() < 0.999
    # More zeros than α = 1.5, which has more than softmax.
    x = numbers(50, 10)
    zeros = [(entmax(x, a) == 0).sum() for a in ALPHAS]
    assert zeros[0] == 0 < zeros[1] < zeros[2]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_order_and_shift_do_not_matter(alpha):
    x, order = numbers(4, 9), torch.randperm(9)
    torch.testing.assert_close(entmax(x[:, order], alpha), entmax(x, alpha)[:, order])
    torch.testing.assert_close(entmax(x + 1000, alpha), entmax(x, alpha), rtol=0, atol=1e-10)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_dimension(alpha, dim):
    x = numbers(3, 4, 5)
    columns = torch.stack([entmax(column, alpha) for column in x.movedim(dim, -1).reshape(-1, x.shape[dim])])
    rest = x.movedim(dim, -1).shape
    torch.testing.assert_close(entmax(x, alpha, dim).movedim(dim, -1).reshape(rest), columns.view(rest))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_finite_everywhere(alpha):
    inf = math.inf
    x = torch.tensor([[0, 0, 0], [1e30, -1e30, 0], [0.5, -inf, 0.5], [-inf, 7, -inf], [3e38, 3e38, -3e38]])
    x.requires_grad_()
    p = entmax(x, alpha)
    expected = torch.tensor([[1 / 3] * 3, [1, 0, 0], [0.5, 0, 0.5], [0, 1, 0], [0.5, 0.5, 0]])
    torch.testing.assert_close(p, expected)
    (p * torch.arange(3)).sum().backward()
    assert x.grad.isfinite().all() and (x.grad[[0, 2]] != 0).any()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_top_k(alpha):
    x = numbers(20, 6, scale=0.2)
    assert torch.equal(entmax(x, alpha, top_k=6), entmax(x, alpha))
    assert torch.equal(entmax(x, alpha, top_k=7), entmax(x, alpha))
    assert torch.equal(entmax(x, alpha, top_k=1), torch.eye(6, dtype=x.dtype)[x.argmax(-1)])
    p = entmax(x, alpha, top_k=3)
    for row, given in zip(p.tolist(), x.tolist(), strict=True):
        third = sorted(given)[-3]
        expected = entmax(torch.tensor([value if value >= third else -math.inf for value in given]), alpha)
        assert row == pytest.approx(expected.tolist(), abs=1e-6) and row.count(0) >= 3
    assert (entmax(torch.zeros(4, 6), alpha, top_k=2) > 0).sum() == 8  # of equals, no more than k


def test_top_k_by_hand():
    x = torch.tensor([math.log(3), -1, 0], dtype=torch.float64)
    torch.testing.assert_close(entmax(x, 1, top_k=2), torch.tensor([0.75, 0, 0.25], dtype=torch.float64))


def test_half_precision_becomes_float32():
    assert all(entmax(numbers(2, 3).bfloat16(), alpha).dtype == torch.float32 for alpha in ALPHAS)


def test_compiled_equals_eager():
    x = numbers(4, 6)
    for alpha in SPARSE:
        compiled = torch.compile(lambda x, alpha=alpha: entmax(x, alpha, top_k=4), backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), entmax(x, alpha, top_k=4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 3}, "alpha is 3; choose 1 (softmax), 1.5 or 2 (sparsemax)."),
        ({"alpha": math.nan}, "alpha is nan; choose 1 (softmax), 1.5 or 2 (sparsemax)."),
        ({"top_k": 0}, "top_k is 0; at least 1 entry must take part."),
    ],
)
def test_impossible_settings(options, message):
    with pytest.raises(ValueError) as error:
        entmax(torch.zeros(3), **options)
    assert str(error.value) == message
