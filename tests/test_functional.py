import math

import pytest
import torch

from capsnet.functional import at_least_float32, exponential_squash, lengths, squash


def test_squash_by_hand():
    # |(3, 4)| = 5: length 25/26, direction (0.6, 0.8).
    out = squash(torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert out.tolist() == pytest.approx([25 / 26 * 0.6, 25 / 26 * 0.8])


def test_lengths_by_hand():
    assert lengths(torch.tensor([[3.0, 4.0], [0.0, -2.0]])).tolist() == [5, 2]


def test_the_last_dimension_is_the_pose():
    s = torch.randn(2, 3, 4, 5)
    assert squash(s).shape == s.shape and lengths(s).shape == (2, 3, 4)
    torch.testing.assert_close(squash(s)[1, 2, 3], squash(s[1, 2, 3]))
    torch.testing.assert_close(lengths(s)[1, 2, 3], s[1, 2, 3].square().sum().sqrt())


def test_squash_keeps_direction_and_maps_length_n_to_n2_over_1_plus_n2():
    s = torch.randn(50, 8, dtype=torch.float64) * torch.logspace(-6, 4, 50, dtype=torch.float64)[:, None]
    n = s.square().sum(1).sqrt()
    v = squash(s)
    torch.testing.assert_close(lengths(v), n**2 / (1 + n**2))
    torch.testing.assert_close(torch.cosine_similarity(v, s, eps=0), torch.ones_like(n))
    assert (lengths(v) < 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_zero_vectors_have_finite_gradients(dtype):
    s = torch.zeros(2, 4, dtype=dtype, requires_grad=True)
    v = squash(s)
    assert (v == 0).all()
    (v.sum() + lengths(v).sum() + lengths(s).sum()).backward()
    assert (s.grad == 0).all()


def test_gradients():
    s = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(squash, s)
    assert torch.autograd.gradcheck(lengths, s)


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_at_least_float32(given, becomes):
    out = at_least_float32(torch.full((2,), 1.5, dtype=given))
    assert out.dtype == becomes and out.tolist() == [1.5, 1.5]


def test_compiled_equals_eager():
    s = torch.randn(3, 4)
    torch.testing.assert_close(torch.compile(squash, backend="aot_eager", fullgraph=True)(s), squash(s))


def test_exponential_squash_by_hand():
    out = exponential_squash(torch.tensor([[3.0, 4.0], [0.0, -math.log(2)]], dtype=torch.float64))
    # |(3, 4)| = 5: length 1 − e⁻⁵, direction (0.6, 0.8). The other has length ln 2: 1 − 1/2.
    assert out.flatten().tolist() == pytest.approx([0.6 * (1 - math.exp(-5)), 0.8 * (1 - math.exp(-5)), 0, -0.5])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exponential_squash_keeps_direction_and_maps_length_n_to_1_minus_exp_minus_n(dtype):
    n = torch.logspace(-15, 2, 60, dtype=torch.float64)
    s = torch.nn.functional.normalize(torch.randn(60, 8, dtype=torch.float64), dim=1) * n[:, None]
    v = exponential_squash(s.to(dtype)).double()
    expected = n - n**2 / 2 + n**3 / 6  # where 1 − e⁻ⁿ would lose the digits
    expected = torch.where(n < 1e-4, expected, 1 - torch.exp(-n))
    tolerance = {"rtol": 1e-5 if dtype == torch.float32 else 1e-10, "atol": 0}
    torch.testing.assert_close(lengths(v), expected, **tolerance)
    torch.testing.assert_close(torch.cosine_similarity(v, s, eps=0), torch.ones_like(n), rtol=0, atol=1e-6)
    assert (lengths(v) <= 1 + torch.finfo(dtype).eps).all()  # rounded


@pytest.mark.parametrize("size", [0.0, 1e-40, 1e-30, 1e-18])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_exponential_squash_has_slope_1_at_zero(size, dtype):
    """Also where the squared length is below the smallest number."""
    s = torch.full((3,), size, dtype=dtype)
    assert torch.equal(exponential_squash(s), s)
    jacobian = torch.autograd.functional.jacobian(exponential_squash, s)
    torch.testing.assert_close(jacobian, torch.eye(3, dtype=dtype))


def test_exponential_squash_gradients():
    s = torch.randn(4, 5, dtype=torch.float64)
    s[0] = 0
    s[1] *= 1e-3
    s[2] *= 20
    assert torch.autograd.gradcheck(exponential_squash, s.requires_grad_())


def test_exponential_squash_compiled_equals_eager():
    s = torch.randn(3, 4)
    s[0] = 0
    out = torch.compile(exponential_squash, backend="aot_eager", fullgraph=True)(s)
    torch.testing.assert_close(out, exponential_squash(s))
