"""What EM routing needs of the votes: a Gaussian fitted to them for each parent, and how far each vote is from it.

With all votes in memory, or, for children that share their transformation with others of their type, without them.
Let M_i be a child's pose, M̄ the mean over its type, and W that type's transformation to parent j. Then

    V_ij − μ_j = (M_i − M̄) W + (M̄ W − μ_j)

where the first part depends on the child and the second, the offset, on its type alone. Its square is a polynomial of
second degree in the numbers of M_i − M̄. So the mean and the spread of the votes follow from the mean of those numbers
and of their products over the children of a type, and a child's distance to a parent is their sum with weights:
matrix products with 80 numbers a child, instead of some passes over the 16 numbers of its votes for every parent.
Because M̄ is taken off first, poses far from zero cost no digits. Where all data of a parent come from a few children
far from their type's mean, some are lost, in float32 far less than LEAST_VARIANCE for poses of order 1.
"""

from itertools import combinations_with_replacement

import torch
from torch import Tensor

LEAST_VARIANCE = 1e-4  # σ² where poses are of order 1: a single vote, or votes that are all the same, have none
LEAST_WEIGHT = 1e-12  # added to R': a parent that gets nothing takes the mean of all votes instead of 0 / 0


def shares(weights: Tensor) -> Tensor:
    """Which part of its data a parent has from each child: R' (..., J, I), to sum 1 over I."""
    share = weights + LEAST_WEIGHT
    return share / share.sum(-1, keepdim=True)


class StoredVotes:
    """All votes V (..., J, I, D), held in memory."""

    def __init__(self, votes: Tensor):
        self.votes = votes

    def fit(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Fit a Gaussian to the votes for each parent.

        Args:
            weights: R' = R a, (..., J, I) or (..., 1, I), the same for all parents. Normalised again over the parents
                they would lose a.
        Returns:
            μ (..., J, D), σ² (..., J, D), and what `distances` needs besides.
        """
        share = shares(weights)[..., None, :]  # (..., J, 1, I)
        mean = share @ self.votes  # (..., J, 1, D)
        squares = (self.votes - mean).square()
        variance = (share @ squares).clamp_min(LEAST_VARIANCE)
        return mean.squeeze(-2), variance.squeeze(-2), squares

    def distances(self, squares: Tensor, variance: Tensor) -> Tensor:
        """Σ_h (V_ijh − μ_jh)² / 2σ²_jh, (..., J, I).

        Args:
            squares: from `fit`, here (V − μ)², (..., J, I, D).
            variance: σ², (..., J, D).
        """
        return (squares @ (0.5 / variance)[..., None]).squeeze(-1)


class FactoredVotes:
    """The same for V = M W, without the votes, from M (B, T, R, K, n) of n children of each type and W (T, J, K, C).

    Votes have D = R·C numbers, and children the order (type, n). B comes with a dimension of one position behind it.
    """

    def __init__(self, M: Tensor, W: Tensor):
        middle = M.mean(-1, keepdim=True)
        M, columns = M - middle, range(W.shape[2])
        pairs = list(combinations_with_replacement(columns, 2))
        self.W, self.pairs = W, len(pairs)
        # The products of every two numbers of a row, then the numbers; children last, to run along memory.
        m, w = M.unbind(3), W.unbind(2)
        numbers = torch.stack([*(m[a] * m[b] for a, b in pairs), *m], 3)  # (B, T, R, pairs + K, n)
        self.numbers = numbers.flatten(2, 3)
        # Weights of the products in the squared vote, where that of two different numbers stands twice.
        self.W_squared = torch.stack([w[a] * w[b] * (1 if a == b else 2) for a, b in pairs], 2)  # (T, J, pairs, C)
        self.middle = torch.einsum("btrk,tjkc->btjrc", middle.squeeze(-1), W)  # M̄ W

    def fit(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `StoredVotes.fit`; what `distances` needs besides are the offsets M̄ W − μ, (B, T, J, R, C)."""
        types, rows = self.W.shape[0], self.middle.shape[3]
        share = shares(weights.squeeze(1)).unflatten(-1, (types, -1)).transpose(1, 2)  # (B, T, J, n)
        amount = share.sum(-1)[..., None, None]
        means = (self.numbers @ share.mT).mT.unflatten(-1, (rows, -1))  # (B, T, J, R, pairs + K), times the amount
        linear = torch.einsum("btjrk,tjkc->btjrc", means[..., self.pairs :], self.W)
        squared = torch.einsum("btjrp,tjpc->btjrc", means[..., : self.pairs], self.W_squared)
        mean = (amount * self.middle + linear).sum(1)  # (B, J, R, C)
        offsets = self.middle - mean[:, None]
        variance = (squared + (2 * linear + amount * offsets) * offsets).sum(1).clamp_min(LEAST_VARIANCE)
        return mean.flatten(2)[:, None], variance.flatten(2)[:, None], offsets

    def distances(self, offsets: Tensor, variance: Tensor) -> Tensor:
        """See `StoredVotes.distances`."""
        precision = (0.5 / variance.squeeze(1)).unflatten(-1, offsets.shape[3:])  # (B, J, R, C)
        squared = torch.einsum("bjrc,tjpc->btjrp", precision, self.W_squared)
        pull = offsets * precision[:, None]
        linear = torch.einsum("btjrc,tjkc->btjrk", 2 * pull, self.W)
        constant = (pull * offsets).sum((-1, -2))[..., None]
        distances = torch.cat([squared, linear], -1).flatten(3) @ self.numbers + constant  # (B, T, J, n)
        return distances.transpose(1, 2).flatten(2)[:, None]
