"""A graph read-out: capsules as nodes, coupling as edges, poses as features, two graph convolutions."""

import torch
from torch import Tensor, nn

from capsnet.functional import at_least_float32


class GraphConvolution(nn.Module):
    """H' = Â H W + b on the graph between children and parents, whose edges are the coupling coefficients.

    Â = D^−½ (A + 1) D^−½ with the nodes' edges A, both ways, and D their sums. A child's or parent's own row of Â comes
    to its features by its own edge, so that nothing larger than the coupling is formed.

    Source: Kipf, Welling 2017 (*Semi-Supervised Classification with Graph Convolutional Networks*,
    https://arxiv.org/abs/1609.02907), eq. 2.
    """

    def __init__(self, features: int, units: int):
        super().__init__()
        self.linear = nn.Linear(features, units)

    def forward(self, children: Tensor, parents: Tensor, coupling: Tensor) -> tuple[Tensor, Tensor]:
        """(B, I, F), (B, J, F), (B, I, J) in [0, 1] → (B, I, U), (B, J, U)."""
        child, parent = 1 + coupling.sum(2, keepdim=True), 1 + coupling.sum(1)[..., None]  # (B, I, 1), (B, J, 1)
        near_children, near_parents = children / child.sqrt(), parents / parent.sqrt()
        children = children / child + coupling @ near_parents / child.sqrt()
        parents = parents / parent + coupling.mT @ near_children / parent.sqrt()
        return self.linear(children), self.linear(parents)


class GraphReadout(nn.Module):
    """Lengths of the class capsules from the graph of all capsules, in the place of the norms of their poses.

    Args:
        child_dim, parent_dim: numbers of the poses of the children and of the class capsules.
        parents: class capsules.
        units: features of a node.
    """

    def __init__(self, child_dim: int, parents: int, parent_dim: int, units: int = 32):
        super().__init__()
        self.child = nn.Linear(child_dim, units)
        # Each class has a pose space of its own, so each pose comes in through a map of its own.
        self.parent = nn.Parameter(torch.randn(parents, parent_dim, units) * parent_dim**-0.5)
        self.first, self.second = GraphConvolution(units, units), GraphConvolution(units, units)
        self.out = nn.Linear(units, 1)

    def forward(self, children: Tensor, parents: Tensor, coupling: Tensor) -> Tensor:
        """Poses (B, I, A) and (B, J, D), coupling (B, I, J) → lengths (B, J) in (0, 1)."""
        with torch.autocast(children.device.type, enabled=False):
            children, parents, coupling = map(at_least_float32, (children, parents, coupling))
            nodes = self.child(children), torch.einsum("bjd,jdu->bju", parents, self.parent)
            nodes = self.first(*map(torch.relu, nodes), coupling)
            nodes = self.second(*map(torch.relu, nodes), coupling)
            return self.out(torch.relu(nodes[1])).squeeze(-1).sigmoid()
