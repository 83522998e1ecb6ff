"""Routing algorithms: one file each, by name in `ROUTING`.

Every layer is `layer(capsules, trace=False) -> Routed`, and is built from the layout of the capsules that come in:
`ROUTING[name](layout, out_capsules, out_dim, **options)`.
"""

from collections.abc import Callable

from torch import nn

from capsnet.layers import Layout
from capsnet.matrix import POSE
from capsnet.routing.dynamic import DynamicRouting
from capsnet.routing.em import EMConvRouting, EMRouting
from capsnet.routing.self_attention import MultiHeadAttentionRouting, SelfAttentionRouting
from capsnet.routing.sparse_attention import SparseAttentionRouting
from capsnet.routing.windowed import WindowedRouting


def _counted(layer: type[nn.Module]) -> Callable[..., nn.Module]:
    """A layer that asks how many capsules of which size come in, not where they are."""

    def build(layout: Layout, out_capsules: int, out_dim: int, **options) -> nn.Module:
        return layer(layout.count, layout.dim, out_capsules, out_dim, **options)

    return build


def _windowed(layout: Layout, out_capsules: int, out_dim: int, **options) -> nn.Module:
    layer = WindowedRouting(layout.count, layout.dim, out_capsules, out_dim, **options)
    layer.check_grid((layout.side, layout.side))
    return layer


def _matrix(layer: type[nn.Module]) -> Callable[..., nn.Module]:
    """A layer of matrix capsules, which asks for their types; poses are 4×4 on both sides."""

    def build(layout: Layout, out_capsules: int, out_dim: int, **options) -> nn.Module:
        if (layout.dim, out_dim) != (POSE, POSE):
            sizes = f"not from {layout.dim} to {out_dim}"
            raise ValueError(f'EM routing is for poses of {POSE} numbers, {sizes}; take primary="matrix" below it.')
        return layer(layout.types, out_capsules, **options)

    return build


ROUTING: dict[str, Callable[..., nn.Module]] = {
    "dynamic": _counted(DynamicRouting),
    "self-attention": _counted(SelfAttentionRouting),
    "multi-head-attention": _counted(MultiHeadAttentionRouting),
    "sparse-attention": _counted(SparseAttentionRouting),
    "windowed": _windowed,
    "em": _matrix(EMRouting),
    "em-conv": _matrix(EMConvRouting),  # between capsules on grids; `out_capsules` are the types of its own grid
}
