"""α-entmax: relatives of softmax that give exact zeros, computed exactly, by sorting.

Peters, Niculae, Martins 2019, "Sparse Sequence-to-Sequence Models". https://arxiv.org/abs/1905.05702
Martins, Astudillo 2016, "From Softmax to Sparsemax" (α = 2). https://arxiv.org/abs/1602.02068

    p_i = [(α − 1) x_i − τ]₊ ^ (1 / (α − 1)),  with τ so that Σ p = 1

α → 1 is softmax, α = 2 the Euclidean projection of x onto the simplex. Of the entries sorted, some first k make up
the support; once it is known, Σ p = 1 is an equation of first (α = 2) or second degree (α = 1.5) in τ. Only the
choice of the support is no differentiable step: it happens outside the graph, and autograd does the rest.
"""

import torch
from torch import Tensor

from capsnet.functional import at_least_float32

ALPHAS = (1, 1.5, 2)


def entmax(x: Tensor, alpha: float = 1.5, dim: int = -1, top_k: int | None = None) -> Tensor:
    """α-entmax of x along a dimension.

    Args:
        x: any shape; −∞ leaves an entry out, as in softmax.
        alpha: 1 (softmax), 1.5, or 2 (sparsemax); the higher, the more zeros.
        dim: along which the result sums to 1.
        top_k: only that many largest entries take part, the others are zero; None is all.
    Returns:
        The shape of x, in [0, 1], float32 or float64.
    Raises:
        ValueError: another alpha, or top_k below 1.
    """
    if alpha not in ALPHAS:
        raise ValueError(f"alpha is {alpha}; choose 1 (softmax), 1.5 or 2 (sparsemax).")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k is {top_k}; at least 1 entry must take part.")
    x = at_least_float32(x)
    if top_k is not None and top_k < x.shape[dim]:
        largest, where = x.topk(top_k, dim)
        return torch.zeros_like(x).scatter(dim, where, entmax(largest, alpha, dim))
    if alpha == 1:
        return torch.softmax(x, dim)
    z = (alpha - 1) * x.movedim(dim, -1)
    z = z - z.amax(-1, keepdim=True).detach()  # p stays the same, and the support within [−1, 0]: small squares
    support = _support(z.detach(), alpha)
    k = support.sum(-1, keepdim=True, dtype=z.dtype)
    mean = torch.where(support, z, 0).sum(-1, keepdim=True) / k
    if alpha == 2:
        p = z - (mean - 1 / k)
    else:
        spread = torch.where(support, z - mean, 0).square().sum(-1, keepdim=True)  # at most 1 − 1/k
        p = z - (mean - ((1 - spread) / k).sqrt())
    p = torch.where(support, p, 0).clamp_min(0)
    return (p if alpha == 2 else p.square()).movedim(-1, dim)


def _support(z: Tensor, alpha: float) -> Tensor:
    """Where p is above zero, for z (..., N) whose largest entry is 0."""
    ordered = z.contiguous().sort(-1, descending=True).values
    k = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    mean = ordered.cumsum(-1) / k
    if alpha == 2:
        inside = ordered > mean - 1 / k
    else:
        spread = ordered.square().cumsum(-1) - k * mean.square()
        inside = ordered >= mean - ((1 - spread) / k).clamp_min(0).sqrt()
    size = inside.sum(-1, keepdim=True)  # comparisons with −∞ and NaN, beyond the support, are false
    return z >= ordered.gather(-1, size - 1)
