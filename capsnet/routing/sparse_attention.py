"""Sparse attention with orthogonal weights: prune, attend, read out.

Geng et al. 2024, "OrthCaps: An Orthogonal CapsNet with Sparse Attention Routing and Pruning" (CVPR).
https://arxiv.org/abs/2403.13351

    m_i  = 0 if a longer capsule points almost the same way, else 1     pruning
    C    = α-entmax(Q Kᵀ / √A),  Q = W_Q (m u),  K = W_K (m u)          attention with exact zeros
    u'   = g(u + C W_V u)                                               W_V orthogonal: it turns capsules and neither
                                                                        stretches them nor brings them closer together

There is no reference code. From the paper: the order of the steps, the mask that keeps the shape, α-entmax, and
Householder reflections for W_V alone. Our choices:

- Pruning and attention are among the capsules at one place of the grid, one of each type: parallel poses at two places
  are two pieces of evidence, and the work grows with I times the types, not I². Capsules without a grid form one set.
- A longer capsule masks others even when it is masked itself: the paper's single pass over the cosine matrix, without
  a loop, masks all but the longest of a chain of near-parallel capsules. Of equal lengths the first counts as longer.
- What is masked gets no attention and stays zero; the paper only sets it to zero, and attention would revive it.
- The shortcut u + …, as between the blocks of the paper's deep network: without it the first, nearly uniform attention
  makes all capsules of a place equal. g is the squash that leaves short capsules their length.
- The attention can be limited to the largest `top_k` weights of each capsule.
- The read-out to the J parents: votes and capsules as in dynamic routing, coupling as in Efficient-CapsNet with
  α-entmax in the place of softmax, so that a child can leave parents out:

    û_j|i = W_ij u'_i,  c_i = α-entmax_j(û_j|i · Σ_l û_j|l / √D),  v_j = squash(Σ_i c_ij û_j|i + bias_j)
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from capsnet.entmax import ALPHAS, entmax
from capsnet.functional import at_least_float32, directions, exponential_squash, lengths, squash
from capsnet.layers import Capsules, Routed, traced
from capsnet.routing.dynamic import STORED_VOTES_UP_TO, FactoredVotes, StoredVotes


class SparseAttentionRouting(nn.Module):
    """Route I capsules of `in_dim` to J capsules of `out_dim`, in one pass.

    Args:
        in_capsules, in_dim: I and A.
        out_capsules, out_dim: J and D.
        alpha: of α-entmax, for attention and coupling: 1 (softmax), 1.5, or 2, the sparsest.
        top_k: how many capsules each one attends to; None is all.
        max_cosine: the shorter of two capsules whose cosine is above this is masked; in (0, 1], 1 masks none.
        bias: learn the bias of v_j.
    Shapes:
        Capsules (B, I, A) → Routed with capsules (B, J, D) and coupling (B, I, J), which sums to 1 over J. The trace is
        a single step, which also has "kept" (B, I), False where a capsule is masked, and "attention" (B, P, T, T) among
        the T types at each of P places, row by row. A masked capsule has equal coupling to all parents and sends zero.
    """

    def __init__(
        self,
        in_capsules: int,
        in_dim: int,
        out_capsules: int = 10,
        out_dim: int = 16,
        alpha: float = 1.5,
        top_k: int | None = None,
        max_cosine: float = 0.9,
        bias: bool = True,
    ):
        super().__init__()
        if alpha not in ALPHAS:
            raise ValueError(f"alpha is {alpha}; choose 1 (softmax), 1.5 or 2 (sparsemax).")
        if top_k is not None and top_k < 1:
            raise ValueError(f"top_k is {top_k}; at least 1 capsule must be attended to.")
        if not 0 < max_cosine <= 1:
            raise ValueError(f"max_cosine is {max_cosine}; it must be above 0 and at most 1, which masks no capsule.")
        self.alpha, self.top_k, self.max_cosine = alpha, top_k, max_cosine
        self.query, self.key = (nn.Linear(in_dim, in_dim, bias=False) for _ in range(2))
        self.value = orthogonal(in_dim)
        self.weight = nn.Parameter(torch.empty(in_capsules, in_dim, out_capsules, out_dim))  # (I, A, J, D)
        self.bias = nn.Parameter(torch.full((out_capsules, out_dim), 0.1)) if bias else None
        nn.init.trunc_normal_(self.weight, std=0.1, a=-0.2, b=0.2)  # as in dynamic routing

    def forward(self, capsules: Capsules, trace: bool = False) -> Routed:
        u, (children, dim, _, out_dim) = capsules.poses, self.weight.shape
        if u.shape[1:] != (children, dim):
            given = tuple(u.shape[1:])
            raise ValueError(f"this layer routes {children} capsules of {dim} numbers, but was given {given}.")
        with torch.autocast(u.device.type, enabled=False):  # as all routing: softmax and squash want the precision
            u, kept, attention = self._attend(at_least_float32(u), capsules.grid)
            Votes = StoredVotes if len(u) <= STORED_VOTES_UP_TO else FactoredVotes
            votes = Votes(u, at_least_float32(self.weight))
            zero = u.new_zeros(())
            total = votes.uniform_sum(1, zero)  # Σ û, (B, J, D)
            coupling = entmax(votes.dot(total / math.sqrt(out_dim)).mT, self.alpha)  # (B, I, J)
            v = squash(votes.weighted_sum(coupling.mT, zero if self.bias is None else at_least_float32(self.bias)))
        routed = Routed(Capsules(v, lengths(v)), coupling)
        if trace:
            with torch.no_grad(), torch.autocast(u.device.type, enabled=False):
                step = traced(coupling.mT, v, votes.dot(directions(v)))
            routed.trace = [{**step, "kept": kept.transpose(1, 2).flatten(1), "attention": attention.detach()}]
        return routed

    def _attend(self, u: Tensor, grid: tuple[int, int] | None) -> tuple[Tensor, Tensor, Tensor]:
        """u (B, I, A) → u' (B, I, A); which are kept (B, P, T), attention (B, P, T, T)."""
        places = math.prod(grid or (1,))
        if grid and u.shape[1] % places:
            raise ValueError(f"{u.shape[1]} capsules are no whole number of types on a grid of {grid[0]}×{grid[1]}.")
        u = u.unflatten(1, (-1, places)).transpose(1, 2)  # (B, P, T, A)
        kept = keep(u, self.max_cosine)
        u = u * kept[..., None]
        q, k, value = (F.linear(u, at_least_float32(map.weight)) for map in (self.query, self.key, self.value))
        scores = (q @ k.mT / math.sqrt(u.shape[-1])).masked_fill(~kept[:, :, None], -math.inf)  # (B, P, T, T)
        attention = entmax(scores, self.alpha, top_k=self.top_k)
        u = exponential_squash(u + attention @ value) * kept[..., None]
        return u.transpose(1, 2).flatten(1, 2), kept, attention


@torch.no_grad()
def keep(poses: Tensor, max_cosine: float) -> Tensor:
    """Which capsules of a set stay: those that no longer one of the set is near-parallel to.

    Args:
        poses: (..., N, D).
        max_cosine: up to which cosine two capsules count as different; 1 keeps all.
    Returns:
        (..., N), bool. The longest is always kept; of equally long ones, the first counts as the longest.
    """
    if max_cosine == 1:  # not left to rounding
        return torch.ones_like(poses[..., 0], dtype=torch.bool)
    rank = lengths(poses).argsort(dim=-1, descending=True, stable=True).argsort(-1)  # 0 is the longest
    direction = F.normalize(poses, dim=-1)
    masks = (direction @ direction.mT > max_cosine) & (rank[..., :, None] < rank[..., None, :])  # row masks column
    return ~masks.any(-2)


def orthogonal(dim: int) -> nn.Linear:
    """A linear map of `dim` numbers that stays orthogonal whatever an optimizer does: a product of reflections."""
    linear = nn.Linear(dim, dim, bias=False)
    parametrize.register_parametrization(linear, "weight", _Reflections())
    # With a trivialization, the map would be a buffer times reflections: in fp16 files it would not stay orthogonal.
    parametrizations.orthogonal(linear, orthogonal_map="householder", use_trivialization=False)
    return linear


class _Reflections(nn.Module):
    """What torch's Householder map reads: reflection vectors below the diagonal, signs on it, in float32.

    It takes the signs as integers. Weight decay or averaging would make them 0.99…, that is 0, and so the map.
    """

    def forward(self, X: Tensor) -> Tensor:
        X = at_least_float32(X)
        return X.tril(-1) + X.diagonal().sign().diag()
