"""EM routing of matrix capsules.

Hinton, Sabour, Frosst 2018, "Matrix capsules with EM routing", procedure 1. https://openreview.net/forum?id=HJWLfGWRb

    V_ij = M_i W_ij                          a vote: the 4×4 pose that child i expects of parent j
    R_ij = 1 / number of parents of i        responsibilities: each child divides itself among the parents that see it
    for t = 0 … r − 1, with h = 1 … 16:
        M step, each parent over the children it sees:
            R'_ij = R_ij a_i
            S_j = Σ_i R'_ij                              the amount of data
            μ_jh = Σ_i R'_ij V_ijh / S_j                 its pose: the mean of the votes
            σ²_jh = Σ_i R'_ij (V_ijh − μ_jh)² / S_j      their spread
            a_j = sigmoid(λ_t (β_a − Σ_h (β_u + ln σ_jh) S_j))        its activation
        E step, not needed after the last iteration:
            ln p_ij = −Σ_h [(V_ijh − μ_jh)² / 2σ²_jh + ½ ln(2π σ²_jh)]
            R_ij = softmax_j(ln a_j + ln p_ij)

λ_t = 0.01 (1 − 0.95^(t+1)) is the authors' schedule (their comments on OpenReview). How many children a parent has
differs between layers, and no λ fits them all (Gritzman 2019, https://arxiv.org/abs/1907.00652). So S_j is divided by
what uniform coupling would bring if every child were active, and that counts as 100 children. β_a is in the same unit:

    a_j = sigmoid(1600 λ_t (β_a − mean_h(β_u + ln σ_jh) S_j))

which is the formula above for S_j → 100 S_j and β_a → 1600 β_a. W starts around the identity: poses near the identity
then keep their size from layer to layer, and the votes' spread is known. β_u starts at −1 − ln of it, so that data make
a parent active: at −ln of it a trained network had found the inverse, a class that is there when all children leave its
capsule. β_a starts at −½ and activations so around ½ in every layer, where children are half active. These starts are
ours.

Gradients flow through all iterations. What the steps need of the votes is in `capsnet.routing.gaussians`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.functional import at_least_float32
from capsnet.layers import Capsules, Routed
from capsnet.matrix import POSE, SIDE
from capsnet.routing.gaussians import FactoredVotes, StoredVotes

DATA = 100  # children that uniform coupling counts as
NOISE = 0.5  # standard deviation of W around the identity
START_SPREAD = 0.4  # σ of the votes that such W leave with a parent after an iteration or two


def e_step(distances: Tensor, variance: Tensor, log_activations: Tensor) -> Tensor:
    """Logits of the responsibilities: ln a_j + ln p_ij, without the ½ ln 2π that all parents have in common.

    Args:
        distances: Σ_h (V − μ)² / 2σ², (..., J, I).
        variance: σ², (..., J, D).
        log_activations: ln a, (..., J).
    Returns:
        (..., J, I), to be normalised over all parents of child i.
    """
    return (log_activations - 0.5 * variance.log().sum(-1))[..., None] - distances


def share_among_windows(logits: Tensor, children: Tensor, grid: tuple[int, int], kernel: int, stride: int) -> Tensor:
    """Softmax over all parents, of any position and type, whose window holds the child.

    Args:
        logits: (B, P, J, I) for the parent of type j at position p and the i-th child in its window.
        children: (P, I), which child that is; from `windows`.
        grid: (H, W) of the children.
    Returns:
        (B, P, J, I), sums to 1 over all that belongs to one child.
    """
    here = torch.logsumexp(logits, 2)  # (B, P, I), over the types at one position; now over the positions
    with torch.no_grad():  # the largest of each child keeps exp in range, and cancels
        top = here.new_full((len(here), children.shape[1] // kernel**2 * grid[0] * grid[1]), -math.inf)  # (B, N)
        top = top.scatter_reduce(1, children.flatten().expand(len(here), -1), here.flatten(1), "amax")[:, children]
    total = F.fold(torch.exp(here - top).mT, grid, kernel, stride=stride).flatten(1)[:, children]  # (B, P, I)
    return torch.exp(logits - (top + total.log())[:, :, None])


def windows(types: int, grid: tuple[int, int], kernel: int, stride: int) -> Tensor:
    """Which children each window holds: (H', W', types·kernel²), those in the order (type, row, column)."""
    H, W = grid
    inside = torch.arange(kernel)
    rows = torch.arange(0, H - kernel + 1, stride)[:, None] + inside  # (H', kernel)
    columns = torch.arange(0, W - kernel + 1, stride)[:, None] + inside  # (W', kernel)
    places = W * rows[:, None, None, :, None] + columns[:, None, None, :]  # (H', W', 1, kernel, kernel)
    return (H * W * torch.arange(types)[:, None, None] + places).flatten(2)


class _EM(nn.Module, ABC):
    """All but who sees whom through which W. J types of parents at each of P positions see I children."""

    def __init__(self, weights: int, in_types: int, out_types: int, iterations: int, inverse_temperature: float):
        super().__init__()
        if iterations < 1:
            raise ValueError(f"iterations is {iterations}; routing needs at least 1.")
        if not 0 < inverse_temperature < math.inf:
            raise ValueError(f"inverse_temperature is {inverse_temperature}; it must be above 0 and finite.")
        self.in_types, self.iterations, self.inverse_temperature = in_types, iterations, inverse_temperature
        noise = NOISE * torch.randn(weights, out_types, SIDE, SIDE)
        self.weight = nn.Parameter(torch.eye(SIDE) + noise)  # (types, J, 4, 4), or (types·kernel², J, 4, 4)
        self.beta_u = nn.Parameter(torch.full((out_types,), -1 - math.log(START_SPREAD)))
        self.beta_a = nn.Parameter(torch.full((out_types,), -0.5))

    def forward(self, capsules: Capsules, trace: bool = False) -> Routed:
        M, grid = capsules.poses, capsules.grid or (1, 1)
        if M.shape[1:] != (self.in_types * grid[0] * grid[1], POSE):
            routes = f"{self.in_types} × {grid[0]} × {grid[1]} capsules of {POSE} numbers"
            raise ValueError(f"this layer routes {routes}, but was given {tuple(M.shape[1:])}.")
        children, out_grid = self._children(grid)  # (P, I)
        children = children.to(M.device)
        with torch.autocast(M.device.type, enabled=False):  # softmax, logarithms and spreads want the precision
            M, W = at_least_float32(M).unflatten(-1, (SIDE, SIDE)), at_least_float32(self.weight)  # (B, N, 4, 4)
            a = at_least_float32(capsules.activations)[:, children]  # (B, P, I)
            votes = self._votes(M, W, children, capsules.grid)
            steps = self._iterate(votes, a, lambda logits: self._share(logits, children, grid))

        def scatter(x: Tensor) -> Tensor:
            """(B, P, J, I) → (B, N, J·P), zero for parents that do not see the child."""
            J, places = x.shape[2], torch.arange(len(children), device=M.device)[:, None]
            whole = x.new_zeros(*capsules.activations.shape, J, len(children))
            whole.mT[:, children, places] = x.mT
            return whole.flatten(2)

        def parents(poses: Tensor, activations: Tensor) -> Capsules:
            return Capsules(poses.transpose(1, 2).flatten(1, 2), activations.mT.flatten(1), out_grid)

        R, poses, activations, _ = steps[-1]
        out = Routed(parents(poses, activations), scatter(R))
        if trace:
            with torch.no_grad():
                out.trace = [
                    {
                        "coupling": scatter(R),
                        "capsules": parents(poses.detach(), activations.detach()),
                        "evidence": scatter(R * a[:, :, None] * worth[..., None]),
                    }
                    for R, poses, activations, worth in steps
                ]
        return out

    @abstractmethod
    def _children(self, grid: tuple[int, int]) -> tuple[Tensor, tuple[int, int] | None]:
        """Which children parents at each position see, (P, I), and the grid of these positions."""

    @abstractmethod
    def _votes(
        self, M: Tensor, W: Tensor, children: Tensor, grid: tuple[int, int] | None
    ) -> StoredVotes | FactoredVotes:
        """Of poses M (B, N, 4, 4) through W, for the children that each parent sees."""

    @abstractmethod
    def _share(self, logits: Tensor, children: Tensor, grid: tuple[int, int]) -> Tensor:
        """Responsibilities from logits (B, P, J, I): each child divides itself among the parents that see it."""

    def _iterate(
        self, votes: StoredVotes | FactoredVotes, a: Tensor, share: Callable[[Tensor], Tensor]
    ) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Responsibilities (B, P, J, I), poses (B, P, J, 16) and activations (B, P, J) of each iteration.

        And (B, P, J), what a unit of data adds to the logit of the activation.
        """
        beta_u, beta_a = at_least_float32(self.beta_u), at_least_float32(self.beta_a)
        J = len(beta_u)
        # All types of parents get the same: one does for all.
        R = uniform = share(beta_u.new_zeros(1, a.shape[1], J, a.shape[2]))[:, :, :1]
        steps = []
        for t in range(self.iterations):
            weights = R * a[:, :, None]
            mean, variance, offsets = votes.fit(weights)
            scale = DATA * POSE * self.inverse_temperature * (1 - 0.95 ** (t + 1))
            worth = -scale * (beta_u + 0.5 * variance.log().mean(-1)) / uniform.sum(-1)
            logits = scale * beta_a + worth * weights.sum(-1)
            steps.append((R.expand(len(a), -1, J, -1), mean, logits.sigmoid(), worth))
            if t + 1 < self.iterations:
                R = share(e_step(votes.distances(offsets, variance), variance, F.logsigmoid(logits)))
        return steps


class EMRouting(_EM):
    """EM routing to J capsules that see every child: the class capsules.

    There is one W for each type of child and each parent, shared by all positions. Where a child sits is told by
    coordinate addition instead: its row and column, from 0 to 1, are added to the upper two numbers of the right-hand
    column of its votes (3 and 7 of 0 … 15).

    Args:
        in_types: types of children; their number if they are on no grid.
        out_capsules: J.
        iterations: r ≥ 1; 3 in the paper.
        inverse_temperature: what λ_t rises to, 0.01 in the authors' schedule; with more, activations leave ½ sooner.
    Shapes:
        Capsules (B, in_types·H·W, 16) → Routed with capsules (B, J, 16) and coupling (B, I, J), the responsibilities.
    Raises:
        ValueError: settings out of range, or capsules of another shape.
    """

    def __init__(self, in_types: int, out_capsules: int = 10, iterations: int = 3, inverse_temperature: float = 0.01):
        super().__init__(in_types, in_types, out_capsules, iterations, inverse_temperature)

    def _children(self, grid: tuple[int, int]) -> tuple[Tensor, None]:
        return torch.arange(self.in_types * grid[0] * grid[1])[None], None

    def _votes(
        self, M: Tensor, W: Tensor, children: Tensor, grid: tuple[int, int] | None
    ) -> StoredVotes | FactoredVotes:
        if not grid:  # each child has a W of its own
            return StoredVotes(torch.einsum("birk,ijkc->bjirc", M, W).flatten(-2)[:, None])
        M = M.unflatten(1, (self.in_types, -1)).movedim(2, -1)  # (B, types, 4, 4, H·W)
        # The place as a fifth column of the pose, that W takes to the right-hand column of the vote.
        rows, columns = ((torch.arange(n, dtype=M.dtype, device=M.device) + 0.5) / n for n in grid)
        places = M.new_zeros(SIDE, 1, *grid)
        places[0], places[1] = rows[:, None], columns
        M = torch.cat([M, places.flatten(2).expand(*M.shape[:2], -1, -1, -1)], 3)
        right = W.new_zeros(SIDE)
        right[-1] = 1
        return FactoredVotes(M, torch.cat([W, right.expand(*W.shape[:2], 1, -1)], 2))

    def _share(self, logits: Tensor, children: Tensor, grid: tuple[int, int]) -> Tensor:
        return torch.softmax(logits, 2)


class EMConvRouting(_EM):
    """EM routing to J types of capsules at each position of a smaller grid, each seeing a window of children.

    There is one W for each type of child, place in the window and type of parent, shared by all windows, as in a
    convolution. Children in several windows divide themselves among the parents of all of them; children in none,
    at the lower and right edge where the stride leaves a rest, send nothing.

    Args:
        in_types, out_types: types of children and of parents.
        kernel, stride: side of the windows, and how far apart they are.
        iterations, inverse_temperature: see `EMRouting`.
    Shapes:
        Capsules (B, in_types·H·W, 16) with their grid → Routed with capsules (B, out_types·H'·W', 16), in the order
        (type, row, column), and coupling (B, I, out_types·H'·W'), zero for parents that do not see the child.
        H' = ⌊(H − kernel) / stride⌋ + 1, W' likewise.
    Raises:
        ValueError: settings out of range, capsules of another shape, or a grid smaller than the window.
    """

    def __init__(
        self,
        in_types: int,
        out_types: int,
        kernel: int = 3,
        stride: int = 1,
        iterations: int = 3,
        inverse_temperature: float = 0.01,
    ):
        super().__init__(in_types * kernel**2, in_types, out_types, iterations, inverse_temperature)
        for name, value in (("kernel", kernel), ("stride", stride)):
            if value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1.")
        self.kernel, self.stride = kernel, stride

    def map_size(self, side: int) -> int:
        """Side of the parents' grid above one of `side`; nothing is left below 1."""
        return (side - self.kernel) // self.stride + 1

    def _children(self, grid: tuple[int, int]) -> tuple[Tensor, tuple[int, int]]:
        if min(grid) < self.kernel:
            raise ValueError(f"windows of {self.kernel}×{self.kernel} do not fit a grid of {grid[0]}×{grid[1]}.")
        held = windows(self.in_types, grid, self.kernel, self.stride)
        return held.flatten(0, 1), (held.shape[0], held.shape[1])

    def _votes(self, M: Tensor, W: Tensor, children: Tensor, grid: tuple[int, int] | None) -> StoredVotes:
        return StoredVotes(torch.einsum("bpirk,ijkc->bpjirc", M[:, children], W).flatten(-2))

    def _share(self, logits: Tensor, children: Tensor, grid: tuple[int, int]) -> Tensor:
        return share_among_windows(logits, children, grid, self.kernel, self.stride)
