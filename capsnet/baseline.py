"""A plain convolutional network: what capsule networks are compared with."""

from dataclasses import dataclass

from torch import Tensor, nn

from capsnet.functional import at_least_float32
from capsnet.layers import EfficientTrunk, at_least_one
from capsnet.recognizer import ModelInfo, Recognizer


@dataclass
class CNNOutput:
    """lengths (B, K) in [0, 1], which are the softmax of logits (B, K) here: they stand where capsules have lengths."""

    lengths: Tensor
    logits: Tensor


class CNN(Recognizer):
    """The twin of Efficient-CapsNet: its trunk and depthwise convolution, then two fully connected layers.

    It has no poses and draws nothing.

    Args:
        name, class_names: see `ModelInfo`.
        kind: "baseline".
        input_size: side of the square images.
        in_channels: 1 to 3.
        units: of the hidden fully connected layer.
        rejection_threshold: see `Recognizer`.
    Raises:
        ValueError: sizes that fit no network.
    """

    def __init__(
        self,
        *,
        name: str = "cnn",
        kind: str = "baseline",
        class_names: list[str] | None = None,
        input_size: int = 28,
        in_channels: int = 1,
        units: int = 148,
        rejection_threshold: float | None = None,
    ):
        config = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        class_names = list("0123456789" if class_names is None else class_names)
        at_least_one(units=units)
        super().__init__(config, ModelInfo(name, kind, input_size, in_channels, class_names, pose_size=0))
        self.trunk = EfficientTrunk(in_channels)
        side, channels = self.trunk.map_size(input_size), self.trunk.channels
        if side < 1:
            raise ValueError(f"input_size is {input_size}; this network needs at least 13.")
        self.head = nn.Sequential(
            nn.Conv2d(channels, channels, side, groups=channels),  # as large as the map: (B, channels, 1, 1)
            nn.Flatten(),
            nn.ReLU(),
            nn.Linear(channels, units),
            nn.ReLU(),
            nn.Linear(units, len(class_names)),
        )

    def forward(self, images: Tensor) -> CNNOutput:
        """Recognise images (B, C, H, W), values in [0, 1], ink 1 on paper 0.

        Raises:
            ValueError: images of another shape.
        """
        self.info.check(images)
        logits = at_least_float32(self.head(self.trunk(images)))
        return CNNOutput(logits.softmax(1), logits)
