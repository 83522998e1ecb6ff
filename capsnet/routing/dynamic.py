"""Dynamic routing by agreement.

Sabour, Frosst, Hinton 2017, "Dynamic Routing Between Capsules", procedure 1. https://arxiv.org/abs/1710.09829

    û_j|i = W_ij u_i                      a vote: the pose that child i expects of parent j
    b_ij = 0                              routing logits, anew for every sample and call
    r times:
        c_ij = softmax_j(b_ij)            coupling: each child divides itself among the parents
        s_j = Σ_i c_ij û_j|i + bias_j     (the bias is in the authors' code, not in the paper)
        v_j = squash(s_j)
        b_ij += û_j|i · v_j               agreement; not needed after the last iteration

The votes are 16 numbers for each of the 11,520 pairs (i, j), 720 KB an image. A batch does without them, exactly:

    s_j = Σ_i (c_ij u_i) W_ij             one matrix product a parent; with c uniform one for all of them
    û_j|i · v_j = u_i · (W_ij v_j)

which holds (B, J, I, 8) instead of (B, I, J, 16). For a few images stored votes are faster, since each pass of the
factored form reads all of W again.

Two more measures of agreement: the cosine of the angle between û and v, and −|û − v|², their squared distance.
Two ablations are settings: iterations = 1 is uniform coupling, and with it shared = True the affine capsules of
Gu, Tresp 2020 (https://arxiv.org/abs/1911.07968), which are hard to beat.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.functional import at_least_float32, directions, lengths, squash
from capsnet.layers import Capsules, Routed, traced

STORED_VOTES_UP_TO = 4  # images; measured by train/benchmark.py
AGREEMENTS = ("dot", "cosine", "distance")


class DynamicRouting(nn.Module):
    """Route I capsules of `in_dim` to J capsules of `out_dim`.

    Gradients flow through all iterations, as in the authors' code. Taking the coupling coefficients for constants is
    faster, but made more errors in short trainings.

    Args:
        in_capsules, in_dim: I and A.
        out_capsules, out_dim: J and D.
        iterations: r ≥ 1; 1 is uniform coupling.
        temperature: T > 0; coupling is softmax(b / T). 1 is the paper, ∞ uniform coupling. A step size η on the
            agreement is the same as T = 1/η.
        leaky: each child may also send part of itself nowhere (a parent whose logit stays zero, as in the authors'
            code); coupling then sums to less than 1 over the J parents.
        bias: learn the bias of s_j; without it routing cannot tell a pose from its negative (Peer et al. 2021).
        agreement: "dot" is the paper; "cosine" and "distance" (squared, negative) weigh each vote by its direction
            alone or by its place.
        shared: all children have one transformation W_j in common.
    Shapes:
        Capsules (B, I, A) → Routed with capsules (B, J, D) and coupling (B, I, J).
    """

    def __init__(
        self,
        in_capsules: int,
        in_dim: int,
        out_capsules: int = 10,
        out_dim: int = 16,
        iterations: int = 3,
        temperature: float = 1.0,
        leaky: bool = False,
        bias: bool = True,
        agreement: str = "dot",
        shared: bool = False,
    ):
        super().__init__()
        if iterations < 1:
            raise ValueError(f"iterations is {iterations}; routing needs at least 1.")
        if not temperature > 0:
            raise ValueError(f"temperature is {temperature}; it must be above 0.")
        if agreement not in AGREEMENTS:
            raise ValueError(f"there is no agreement {agreement!r}; choose one of {', '.join(AGREEMENTS)}.")
        self.iterations, self.temperature, self.leaky, self.agreement = iterations, temperature, leaky, agreement
        self.in_capsules = in_capsules
        transformations = 1 if shared else in_capsules
        self.weight = nn.Parameter(torch.empty(transformations, in_dim, out_capsules, out_dim))  # (I or 1, A, J, D)
        self.bias = nn.Parameter(torch.full((out_capsules, out_dim), 0.1)) if bias else None
        # At a standard deviation of 1 all lengths start at 0.99, at 0.01 at 0.01: routing learns from neither.
        nn.init.trunc_normal_(self.weight, std=0.1, a=-0.2, b=0.2)

    def forward(self, capsules: Capsules, trace: bool = False) -> Routed:
        u = capsules.poses
        children, dim = self.in_capsules, self.weight.shape[1]
        if u.shape[1:] != (children, dim):
            given = tuple(u.shape[1:])
            raise ValueError(f"this layer routes {children} capsules of {dim} numbers, but was given {given}.")
        with _float32(u.device.type):
            Votes = StoredVotes if len(u) <= STORED_VOTES_UP_TO else FactoredVotes
            W = at_least_float32(self.weight).expand(children, -1, -1, -1)
            votes = Votes(at_least_float32(u), W)
            steps: list[tuple[Tensor, Tensor]] = []
            b: Tensor | None = None
            for _ in range(self.iterations - 1):
                c, v = self._iterate(votes, b)
                steps.append((c, v))
                agreement = self._agreement(votes, v)
                b = agreement if b is None else b + agreement
            c, v = self._iterate(votes, b)
        coupling, iterations = c.transpose(1, 2), None  # (B, I, J)
        if trace:
            with torch.no_grad(), _float32(u.device.type):
                iterations = [traced(c, v, votes.dot(directions(v))) for c, v in [*steps, (c, v)]]
        return Routed(Capsules(v, lengths(v)), coupling, iterations)

    def _iterate(self, votes: "StoredVotes | FactoredVotes", b: Tensor | None) -> tuple[Tensor, Tensor]:
        """Coupling (B, J, I) from the logits b (B, J, I), None for all zero, and the capsules (B, J, D) it gives."""
        children, parents = self.in_capsules, self.weight.shape[2]
        bias = self.weight.new_zeros(()) if self.bias is None else at_least_float32(self.bias)
        if b is None:
            share = 1 / (parents + self.leaky)
            s = votes.uniform_sum(share, bias)
            c = s.new_full((), share).expand(len(s), parents, children)
        else:
            if self.temperature != 1:
                b = b / self.temperature
            if self.leaky:
                b = F.pad(b, (0, 0, 0, 1))  # the parent "nowhere": (B, J + 1, I)
            c = torch.softmax(b, dim=1)  # over the parents
            if self.leaky:
                c = c[:, :-1]
            s = votes.weighted_sum(c, bias)
        return c, squash(s)

    def _agreement(self, votes: "StoredVotes | FactoredVotes", v: Tensor) -> Tensor:
        """How well each child's vote agrees with the capsules v (B, J, D): (B, J, I)."""
        dot = votes.dot(v)
        if self.agreement == "dot":
            return dot
        squares, square = votes.squares, v.square().sum(-1, keepdim=True)  # |û|² (B, J, I), |v|² (B, J, 1)
        if self.agreement == "cosine":
            return dot / (squares * square).clamp_min(1e-24).sqrt()  # the order keeps the gradient at zero finite
        return 2 * dot - squares - square


def _float32(device: str) -> AbstractContextManager:
    """No autocast: routing is a small part of the work, and its softmax and squash want the precision."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


class StoredVotes:
    """All votes û of u (B, I, A) through W (I, A, J, D), held in memory."""

    def __init__(self, u: Tensor, W: Tensor):
        self.shape = (len(u), *W.shape[2:])  # (B, J, D)
        votes = torch.bmm(u.transpose(0, 1), W.view(*W.shape[:2], -1))  # (I, B, J·D)
        self.votes = votes.view(len(W), -1, W.shape[3]).transpose(0, 1)  # (B·J, I, D); copying costs more than it saves

    def uniform_sum(self, share: float, bias: Tensor) -> Tensor:
        return torch.add(bias, self.votes.sum(1).view(self.shape), alpha=share)  # (B, J, D)

    def weighted_sum(self, c: Tensor, bias: Tensor) -> Tensor:
        return torch.bmm(c.flatten(0, 1)[:, None], self.votes).view(self.shape) + bias  # (B, J, D)

    def dot(self, v: Tensor) -> Tensor:
        return torch.bmm(v.flatten(0, 1)[:, None], self.votes.mT).view(*self.shape[:2], -1)  # (B, J, I)

    @cached_property
    def squares(self) -> Tensor:
        return self.votes.square().sum(-1).view(*self.shape[:2], -1)  # (B, J, I)


class FactoredVotes:
    """The same sums from u (B, I, A) and W (I, A, J, D), without the votes."""

    def __init__(self, u: Tensor, W: Tensor):
        # Children last: the products below then run along memory.
        self.u = u.mT.contiguous()  # (B, A, I)
        self.W = W.permute(2, 1, 0, 3).flatten(1, 2)  # (J, A·I, D)

    def uniform_sum(self, share: float, bias: Tensor) -> Tensor:
        parents, _, dim = self.W.shape
        total = (self.u.flatten(1) @ self.W.transpose(0, 1).flatten(1)).unflatten(1, (parents, dim))
        return torch.add(bias, total, alpha=share)  # (B, J, D)

    def weighted_sum(self, c: Tensor, bias: Tensor) -> Tensor:
        cu = c[:, :, None] * self.u[:, None]  # (B, J, A, I)
        return torch.bmm(cu.flatten(2).transpose(0, 1), self.W).transpose(0, 1) + bias  # (B, J, D)

    def dot(self, v: Tensor) -> Tensor:
        Wv = torch.bmm(v.transpose(0, 1), self.W.mT)  # (J, B, A·I)
        return (Wv.unflatten(2, self.u.shape[1:]) * self.u).sum(2).transpose(0, 1)  # (B, J, I)

    @cached_property
    def squares(self) -> Tensor:
        W = self.W.unflatten(1, self.u.shape[1:])  # (J, A, I, D)
        metric = torch.einsum("jaid,jcid->jiac", W, W)  # W Wᵀ of every pair
        return torch.einsum("bai,jiac,bci->bji", self.u, metric, self.u).clamp_min(0)  # |û|² = uᵀ (W Wᵀ) u: (B, J, I)
