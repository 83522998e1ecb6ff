"""CapsNet = trunk + primary capsules + routing + decoder; the named configurations, and how models are made of them."""

from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from torch import Tensor, nn

from capsnet.baseline import CNN
from capsnet.layers import (
    Capsules,
    ConvTrunk,
    DepthwiseCapsules,
    EfficientTrunk,
    Layout,
    PrimaryCapsules,
    Projection,
    at_least_one,
)
from capsnet.matrix import MatrixPrimaryCapsules
from capsnet.recognizer import ModelInfo
from capsnet.redrawer import Redrawer
from capsnet.routing import ROUTING
from capsnet.routing.em import EMRouting
from capsnet.student import Student

TRUNKS = {"conv": ConvTrunk, "efficient": EfficientTrunk}
PRIMARY = {"conv": PrimaryCapsules, "depthwise": DepthwiseCapsules, "matrix": MatrixPrimaryCapsules}

CONFIGS: dict[str, dict[str, Any]] = {
    # Sabour, Frosst, Hinton 2017: 8,215,568 parameters, and 160 of the routing bias in the authors' code.
    "capsnet": {},
    # The same at a fourteenth of the work: to try things out.
    "capsnet-small": {
        "trunk_options": {"channels": 64},
        "primary_options": {"types": 8},
        "decoder_hidden": [256, 512],
    },
    # Mazzia, Salvetti, Chiaberge 2021: 161,824 parameters, and the decoder.
    "efficient-capsnet": {"trunk": "efficient", "primary": "depthwise", "routing": "self-attention"},
}

# One network for all routing algorithms, so that only routing differs: 48 capsules, 12 types at 2×2 places, on the
# trunk of Efficient-CapsNet with 96 channels at its end. About as many parameters as that has: 180,000. The decoder is
# small, so that all of weights/ stays under 45 MB.
_TRUNK = {"trunk": "efficient", "trunk_options": {"channels": [32, 64, 64, 96]}}
_SMALL_DECODER = {"decoder_hidden": [256, 512]}
_COMMON = {**_TRUNK, **_SMALL_DECODER, "primary": "depthwise", "primary_options": {"kernel": 8}}
CONFIGS |= {
    "dynamic-capsnet": _COMMON,
    "uniform-capsnet": {**_COMMON, "routing_options": {"iterations": 1}},
    # Aff-CapsNet (Gu, Tresp 2020): one transformation for all children.
    "affine-capsnet": {**_COMMON, "routing_options": {"iterations": 1, "shared": True}},
    "attention-capsnet": {**_COMMON, "routing": "self-attention"},
    "multi-head-capsnet": {**_COMMON, "routing": "multi-head-attention"},
    "orth-capsnet": {**_COMMON, "routing": "sparse-attention"},
    # A window is one place: the 12 types there.
    "windowed-capsnet": {**_COMMON, "routing": "windowed", "routing_options": {"window": 1}},
    # Matrix capsules share their transformations over the places and can afford all of them: 16 types at 9×9.
    "em-capsnet": {
        **_TRUNK,
        **_SMALL_DECODER,
        "primary": "matrix",
        "primary_options": {"types": 16},
        "routing": "em",
        "routing_options": {"iterations": 2},
    },
}


# Two digits over each other on 36×36 pixels: 16 types of capsules at 3×3 places, routed as in the paper. Telling two
# digits apart takes a deeper and wider trunk than reading one.
CONFIGS["multi-capsnet"] = {
    "kind": "pair",
    "input_size": 36,
    "trunk": "efficient",
    "trunk_options": {"channels": [32, 64, 128, 256, 256], "strides": [1, 2, 1, 1, 1]},
    "primary_options": {"types": 16, "kernel": 4, "normalise": True},
    "decoder_hidden": [256, 320],
}

# The twin of Efficient-CapsNet: the same trunk and depthwise convolution, and two ordinary layers in the place of
# capsules and routing. 161,766 parameters.
CONFIGS["cnn"] = {"kind": "baseline", "units": 148}

# A small network that a capsule network teaches; see `capsnet.student`.
CONFIGS["student"] = {"teacher": "capsnet"}


@dataclass
class CapsNetOutput:
    """lengths (B, K) in [0, 1); poses (B, K, P); coupling (B, I, K); trace as in `Routed`.

    For matrix capsules, lengths are the activations: the length of a matrix says nothing.
    """

    lengths: Tensor
    poses: Tensor
    coupling: Tensor
    trace: list[dict[str, Any]] | None = None


class CapsNet(Redrawer):
    """Capsule network with a reconstruction decoder.

    Args:
        name, kind, class_names: see `ModelInfo`.
        input_size: side of the square images.
        in_channels: 1 to 3.
        trunk, trunk_options: a name in `TRUNKS`, and keyword arguments of that module, e.g. {"channels": 256}.
        primary, primary_options: likewise, in `PRIMARY`, e.g. {"types": 32, "dim": 8}. Depthwise kernels are, unless
            something else is said, as large as the map of the trunk.
        projection: numbers left of each primary capsule's pose by one linear map; None leaves the pose as it is.
        hidden: layers of capsules between primary and digit capsules, each {"routing": a name in `ROUTING`,
            "capsules": how many, "pose_size": of how many numbers, "options": keyword arguments of that layer}.
        routing, routing_options: likewise, in `capsnet.routing.ROUTING`, e.g. {"iterations": 3}.
        pose_size: size of a digit capsule's pose.
        decoder_hidden: units of the decoder's two hidden layers.
        rejection_threshold, presence_threshold: see `Recognizer`.
    Source: Sabour, Frosst, Hinton 2017, section 4.
    """

    trunk: ConvTrunk | EfficientTrunk
    primary: PrimaryCapsules | DepthwiseCapsules | MatrixPrimaryCapsules
    projection: Projection | nn.Identity

    def __init__(
        self,
        *,
        name: str = "capsnet",
        kind: str = "digit",
        class_names: list[str] | None = None,
        input_size: int = 28,
        in_channels: int = 1,
        trunk: str = "conv",
        trunk_options: dict[str, Any] | None = None,
        primary: str = "conv",
        primary_options: dict[str, Any] | None = None,
        projection: int | None = None,
        hidden: list[dict[str, Any]] | None = None,
        routing: str = "dynamic",
        routing_options: dict[str, Any] | None = None,
        pose_size: int = 16,
        decoder_hidden: list[int] | None = None,
        rejection_threshold: float | None = None,
        presence_threshold: float | None = None,
    ):
        config = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        class_names = list("0123456789" if class_names is None else class_names)
        at_least_one(pose_size=pose_size)
        super().__init__(config, ModelInfo(name, kind, input_size, in_channels, class_names, pose_size))
        K = len(class_names)
        self.trunk = _named(TRUNKS, "trunk", trunk)(in_channels, **(trunk_options or {}))
        whole = {"kernel": max(self.trunk.map_size(input_size), 1)} if primary == "depthwise" else {}
        options = {**whole, **(primary_options or {})}
        self.primary = _named(PRIMARY, "primary", primary)(self.trunk.channels, **options)
        layout = Layout(self.primary.types, self._grid(input_size), self.primary.dim)
        self.projection = nn.Identity()
        if projection is not None:
            self.projection = Projection(layout.dim, projection)
            layout = replace(layout, dim=projection)
        self.hidden = nn.ModuleList()
        for settings in hidden or []:
            layer, layout = _routing_layer(layout, **settings)
            self.hidden.append(layer)
        self.routing, layout = _routing_layer(layout, routing, K, pose_size, routing_options)
        if layout.count != K:
            raise ValueError(f"routing {routing!r} leaves {layout.count} capsules for {K} classes; use it hidden.")
        self._add_decoder(decoder_hidden)

    @property
    def matrices(self) -> bool:
        return isinstance(self.routing, EMRouting)

    def _grid(self, input_size: int) -> int:
        """Side of the grid of primary capsules."""

        def side(size: int) -> int:
            return self.primary.map_size(self.trunk.map_size(size))

        if side(input_size) < 1:
            least = next(size for size in count(max(input_size, 1)) if side(size) >= 1)
            raise ValueError(f"input_size is {input_size}; this network needs at least {least}.")
        return side(input_size)

    def forward(self, images: Tensor, trace: bool = False) -> CapsNetOutput:
        """Recognise images (B, C, H, W), values in [0, 1], ink 1 on paper 0.

        Raises:
            ValueError: images of another shape.
        """
        routed = self.routing(self.encode(images), trace=trace)
        return CapsNetOutput(routed.capsules.activations, routed.capsules.poses, routed.coupling, routed.trace)

    def encode(self, images: Tensor) -> Capsules:
        """The capsules below the class capsules, as `forward` routes them."""
        self.info.check(images)
        capsules = self.projection(self.primary(self.trunk(images)))
        for layer in self.hidden:
            capsules = layer(capsules).capsules
        return capsules


def _routing_layer(
    layout: Layout, routing: str, capsules: int, pose_size: int, options: dict[str, Any] | None = None
) -> tuple[nn.Module, Layout]:
    """The layer that routes the capsules of that layout, and the layout of what it gives."""
    at_least_one(capsules=capsules, pose_size=pose_size)
    layer = _named(ROUTING, "routing", routing)(layout, capsules, pose_size, **(options or {}))
    side = layer.map_size(layout.side) if hasattr(layer, "map_size") else 1
    if side < 1:
        raise ValueError(f"routing {routing!r} needs a larger grid than {layout.side}×{layout.side}.")
    return layer, Layout(capsules, side, pose_size)


def _named(choices: dict[str, Any], what: str, name: str) -> Any:
    if name not in choices:
        raise ValueError(f"there is no {what} {name!r}; choose one of {', '.join(choices)}.")
    return choices[name]


Network = CapsNet | CNN | Student


def build(config: dict[str, Any]) -> Network:
    """The untrained model that a config.json describes.

    It is a `CNN` if its kind is "baseline", a `Student` if it has a teacher, else a `CapsNet`.

    Raises:
        TypeError, ValueError: it describes none.
    """
    if not isinstance(config, dict):
        raise TypeError(f"a {type(config).__name__} in the place of named settings")
    if config.get("kind") == "baseline":
        return CNN(**config)
    return Student(**config) if "teacher" in config else CapsNet(**config)


def create_model(name: str, **overrides: Any) -> Network:
    """A new, untrained model of a named configuration, with some of its settings replaced.

    The options of a trunk, primary or routing that is replaced by another go with it.

    Raises:
        ValueError: no such configuration.
    """
    config = _named(CONFIGS, "configuration", name)
    replaced = [f"{part}_options" for part in ("trunk", "primary", "routing") if part in overrides]
    config = {key: value for key, value in config.items() if key not in replaced}
    return build({"name": name, **config, **overrides})
