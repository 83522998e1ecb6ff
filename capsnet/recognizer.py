"""What every network that reads images has: facts about it, what rebuilds it, and the threshold of what it rejects."""

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class ModelInfo:
    """What a program needs to know about a model.

    Attributes:
        name: the configuration's name.
        kind: "digit" (one digit an image), "pair" (two) or "baseline" (no capsules).
        input_size: side of the square input in pixels.
        in_channels: 1 to 3.
        class_names: a word for each class.
        pose_size: numbers in the pose of a digit capsule; 0 = no pose.
    """

    name: str
    kind: str
    input_size: int
    in_channels: int
    class_names: list[str]
    pose_size: int

    def __post_init__(self) -> None:
        """Raises ValueError for classes or channels that no model has."""
        if len(set(self.class_names)) < max(len(self.class_names), 2):
            raise ValueError(f"class_names are {self.class_names}; give at least two, each another word.")
        if not 1 <= self.in_channels <= 3:
            raise ValueError(f"in_channels is {self.in_channels}; images have 1 to 3 channels.")

    def check(self, images: Tensor) -> None:
        """Raises ValueError for images of another shape than (B, C, H, W) of this model."""
        expected = (self.in_channels, self.input_size, self.input_size)
        if images.ndim != 4 or images.shape[1:] != expected:
            reads = ", ".join(map(str, expected))
            raise ValueError(f"images have shape {tuple(images.shape)}; this model reads (batch, {reads}).")


class Recognizer(nn.Module):
    """A network that reads images.

    Args:
        config: what rebuilds it, config.json; its rejection_threshold is what is stranger to the model, see
            `capsnet.rejection`, than a digit, and its presence_threshold the length above which a capsule of a model
            that reads several digits says that its digit is there; None or missing where that was not measured.
    Raises:
        ValueError: a threshold is not above 0.
    """

    def __init__(self, config: dict[str, Any], info: ModelInfo):
        super().__init__()
        self.config = {key: value for key, value in config.items() if value is not None}
        self.info = info
        for name in ("rejection_threshold", "presence_threshold"):
            if name in self.config and not 0 < self.config[name] < math.inf:
                raise ValueError(f"{name} is {self.config[name]}; it must be a number above 0.")

    @property
    def rejection_threshold(self) -> float | None:
        """What is stranger than this to the model, see `capsnet.rejection`, is no digit; None: nobody measured it."""
        return self.config.get("rejection_threshold")

    @rejection_threshold.setter
    def rejection_threshold(self, threshold: float) -> None:
        self.config["rejection_threshold"] = threshold

    @property
    def presence_threshold(self) -> float | None:
        """A capsule longer than this says that its digit is there, see `capsnet.overlap`; None: nobody measured it."""
        return self.config.get("presence_threshold")

    @presence_threshold.setter
    def presence_threshold(self, threshold: float) -> None:
        self.config["presence_threshold"] = threshold
