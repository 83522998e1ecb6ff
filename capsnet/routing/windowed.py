"""Windowed routing: dynamic routing whose children agree within local windows of the grid.

    in every window w, r − 1 times:       dynamic routing among the children inside, their W_ij and the bias
        v_jw = squash(Σ_{i in w} c_ijw û_j|i + bias_j)
        b_ijw += û_j|i · v_jw,  c_iw = softmax_j(b_iw)
    c_ij = the mean of c_ijw over the windows that child i is in
    v_j  = squash(Σ_i c_ij û_j|i + bias_j)

So a child chooses its parents by what its neighbourhood agrees on, and only what the windows then send is summed over
the map; capsules outside a window do not change what it sends. Local windows are those of SegCaps
(LaLonde, Bagci 2018, "Capsules for Object Segmentation", https://arxiv.org/abs/1804.04241). Our choices:

- The windows' sums are added up to the digits without another transformation: a window as large as the map is dynamic
  routing, exactly. Competition is over the parents within a window; a child in n windows sends a n-th of itself
  through each.
- Transformations are not shared over windows. A digit capsule must know where a part was seen, to tell 6 from 9 and for
  its pose; shared ones (as in SegCaps, whose capsules stay on the grid) would sum that away. And so the parameters
  are those of dynamic routing: only the routing differs.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.functional import at_least_float32, directions, lengths, squash
from capsnet.layers import Capsules, Routed, traced
from capsnet.routing.dynamic import STORED_VOTES_UP_TO, DynamicRouting, FactoredVotes, StoredVotes


class WindowedRouting(DynamicRouting):
    """Route I capsules on a grid to J capsules of `out_dim`, coupling within windows.

    Args:
        in_capsules, in_dim, out_capsules, out_dim: see `DynamicRouting`.
        window: side of the square windows, in places of the grid.
        stride: from one window to the next, at most `window`; None is `window`, side by side.
        options: the other arguments of `DynamicRouting`.
    Shapes:
        Capsules (B, I, A) with a grid, which the windows must cover exactly → Routed with capsules (B, J, D) and
        coupling (B, I, J).
    """

    def __init__(
        self,
        in_capsules: int,
        in_dim: int,
        out_capsules: int = 10,
        out_dim: int = 16,
        window: int = 3,
        stride: int | None = None,
        **options: Any,
    ):
        super().__init__(in_capsules, in_dim, out_capsules, out_dim, **options)
        stride = window if stride is None else stride
        if not 1 <= stride <= window:
            raise ValueError(f"window is {window} and stride {stride}; the stride must be from 1 to the window's size.")
        self.window, self.stride = window, stride

    def forward(self, capsules: Capsules, trace: bool = False) -> Routed:
        u, grid = capsules.poses, self._checked_grid(capsules)
        with torch.autocast(u.device.type, enabled=False):  # as all routing: softmax and squash want the precision
            u, W = at_least_float32(u), at_least_float32(self.weight).expand(self.in_capsules, -1, -1, -1)
            windows = self._cut(u.transpose(0, 1), grid).transpose(1, 2), self._cut(W, grid)
            couplings = self._merge(torch.vmap(self._couplings)(*windows), grid)
            votes = FactoredVotes(u, W)
            bias = u.new_zeros(()) if self.bias is None else at_least_float32(self.bias)
            v = squash(votes.weighted_sum(couplings[-1], bias))  # (B, J, D)
            routed = Routed(Capsules(v, lengths(v)), couplings[-1].transpose(1, 2))
            if trace:
                with torch.no_grad():
                    steps = [(c, squash(votes.weighted_sum(c, bias))) for c in couplings]
                    routed.trace = [traced(c, v, votes.dot(directions(v))) for c, v in steps]
        return routed

    def _checked_grid(self, capsules: Capsules) -> tuple[int, int]:
        u, grid = capsules.poses, capsules.grid
        children, dim = self.in_capsules, self.weight.shape[1]
        if u.shape[1:] != (children, dim):
            given = tuple(u.shape[1:])
            raise ValueError(f"this layer routes {children} capsules of {dim} numbers, but was given {given}.")
        if grid is None:
            raise ValueError("windowed routing needs capsules on a grid, as primary capsules are; these have none.")
        size = f"{grid[0]}×{grid[1]}"
        if children % (grid[0] * grid[1]):
            raise ValueError(f"{children} capsules are no whole number of types on a grid of {size}.")
        self.check_grid(grid)
        return grid

    def check_grid(self, grid: tuple[int, int]) -> None:
        """Raises ValueError unless the windows cover a grid of (H, W) places exactly."""
        if any(side < self.window or (side - self.window) % self.stride for side in grid):
            windows = f"windows of {self.window}×{self.window}, every {self.stride} places"
            raise ValueError(f"{windows}, do not cover a grid of {grid[0]}×{grid[1]} exactly.")

    def _cut(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """x (I, ...) → (windows, C, ...): the C children inside each window, in the order (type, row, column)."""
        x = x.unflatten(0, (-1, *grid))  # (T, H, W, ...)
        x = x.unfold(1, self.window, self.stride).unfold(2, self.window, self.stride)  # (T, rows, columns, ..., h, w)
        x = x.movedim((1, 2, 0, -2, -1), (0, 1, 2, 3, 4))  # (rows, columns, T, h, w, ...)
        return x.flatten(2, 4).flatten(0, 1)

    def _couplings(self, u: Tensor, W: Tensor) -> Tensor:
        """Children u (B, C, A) and W (C, A, J, D) of one window → their coupling in every iteration, (r, B, J, C)."""
        votes = StoredVotes(u, W) if len(u) <= STORED_VOTES_UP_TO else FactoredVotes(u, W)
        b = u.new_zeros(len(u), W.shape[2], len(W))  # (B, J, C)
        c, v = self._iterate(votes, b)
        couplings = [c]
        for _ in range(self.iterations - 1):
            b = b + self._agreement(votes, v)
            c, v = self._iterate(votes, b)
            couplings.append(c)
        return torch.stack(couplings)

    def _merge(self, inside: Tensor, grid: tuple[int, int]) -> Tensor:
        """Couplings inside the windows (windows, r, B, J, C) → their mean at each child, (r, B, J, I)."""
        _, r, B, J, _ = inside.shape
        columns = inside.movedim(0, -1).flatten(0, 1).flatten(1, 2)  # (r·B, J·T·h·w, windows)
        total = F.fold(columns, grid, self.window, stride=self.stride)  # (r·B, J·T, H, W)
        windows = F.fold(torch.ones_like(columns[:1, : self.window**2]), grid, self.window, stride=self.stride)
        return (total / windows).view(r, B, J, -1)
