"""The student: a small convolutional network with a pose for each class, which a capsule network taught."""

from dataclasses import dataclass

from torch import Tensor, nn

from capsnet.functional import at_least_float32, lengths, squash
from capsnet.layers import EfficientTrunk, at_least_one
from capsnet.recognizer import ModelInfo
from capsnet.redrawer import Redrawer

STRIDES = (1, 2, 1, 2)  # 28 → 24 → 11 → 9 → 4: a quarter of the multiplications of Efficient-CapsNet's trunk


@dataclass
class StudentOutput:
    """lengths (B, K) in [0, 1); poses (B, K, P), whose lengths they are."""

    lengths: Tensor
    poses: Tensor


class Student(Redrawer):
    """A few convolutions and two fully connected layers that give a pose for each class. Nothing routes or votes.

    It learns lengths and poses from a capsule network, its teacher, see `capsnet.distillation`, and draws with the
    teacher's decoder, which never learns: training puts the teacher's weights there.

    Args:
        name, kind, class_names: see `ModelInfo`.
        teacher: which network taught it, or is to teach it: a name in weights/ or a folder.
        input_size: side of the square images.
        in_channels: 1 to 3.
        channels: of the four convolutions, as in `EfficientTrunk`.
        units: of the hidden fully connected layer.
        pose_size: size of the pose of a class; the teacher's.
        decoder_hidden: units of the decoder's two hidden layers; the teacher's.
        rejection_threshold: see `Recognizer`.
    Raises:
        ValueError: sizes that fit no network.
    """

    def __init__(
        self,
        *,
        name: str = "student",
        kind: str = "digit",
        teacher: str = "capsnet",
        class_names: list[str] | None = None,
        input_size: int = 28,
        in_channels: int = 1,
        channels: list[int] | None = None,
        units: int = 256,
        pose_size: int = 16,
        decoder_hidden: list[int] | None = None,
        rejection_threshold: float | None = None,
    ):
        config = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        class_names = list("0123456789" if class_names is None else class_names)
        at_least_one(units=units, pose_size=pose_size)
        super().__init__(config, ModelInfo(name, kind, input_size, in_channels, class_names, pose_size))
        self.trunk = EfficientTrunk(in_channels, tuple(channels or (32, 64, 64, 64)), STRIDES)
        side = self.trunk.map_size(input_size)
        if side < 1:
            raise ValueError(f"input_size is {input_size}; this network needs at least 19.")
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(self.trunk.channels * side**2, units),
            nn.ReLU(),
            nn.Linear(units, len(class_names) * pose_size),
        )
        self._add_decoder(decoder_hidden)
        self.decoder.requires_grad_(False)

    def forward(self, images: Tensor) -> StudentOutput:
        """Recognise images (B, C, H, W), values in [0, 1], ink 1 on paper 0.

        Raises:
            ValueError: images of another shape.
        """
        self.info.check(images)
        numbers = at_least_float32(self.head(self.trunk(images)))  # squash stays in float32 under autocast
        poses = squash(numbers.unflatten(1, (-1, self.info.pose_size)))
        return StudentOutput(lengths(poses), poses)
