"""What capsule networks are built from, besides routing."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.convolution import Conv2d
from capsnet.functional import at_least_float32, lengths, squash


@dataclass
class Capsules:
    """What every capsule layer takes and gives.

    Attributes:
        poses: (B, N, D).
        activations: (B, N), in [0, 1]: the lengths of vector capsules.
        grid: (H, W) when N = types × H × W in that order, else None.
    """

    poses: Tensor
    activations: Tensor
    grid: tuple[int, int] | None = None


@dataclass
class Routed:
    """What a routing layer gives.

    Attributes:
        capsules: the output capsules, (B, J, D).
        coupling: (B, I, J), how much of input capsule i goes to output capsule j; sums to 1 over J.
        trace: per iteration a dict with that iteration's "coupling" and "capsules"; None unless asked for.
    """

    capsules: Capsules
    coupling: Tensor
    trace: list[dict[str, Any]] | None = None


class ConvTrunk(nn.Module):
    """Convolution and ReLU: the features below the primary capsules.

    (B, C, H, W) → (B, channels, H − kernel + 1, W − kernel + 1).
    Source: Sabour, Frosst, Hinton 2017, section 4: 256 channels of 9×9.
    """

    def __init__(self, in_channels: int, channels: int = 256, kernel: int = 9):
        super().__init__()
        self.conv = Conv2d(in_channels, channels, kernel)

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.conv(images), inplace=True)


class PrimaryCapsules(nn.Module):
    """One convolution whose channels are `types` × `dim`; each position of each type is a capsule, squashed.

    (B, in_channels, H, W) → Capsules of poses (B, types·H'·W', dim), in the order (type, row, column).
    Source: Sabour, Frosst, Hinton 2017, section 4: 32 types of 8 dimensions, 9×9, stride 2.
    """

    def __init__(self, in_channels: int, types: int = 32, dim: int = 8, kernel: int = 9, stride: int = 2):
        super().__init__()
        self.types, self.dim = types, dim
        self.conv = Conv2d(in_channels, types * dim, kernel, stride)

    def forward(self, features: Tensor) -> Capsules:
        x = at_least_float32(self.conv(features))  # (B, types·dim, H', W'); squash stays in float32 under autocast
        B, _, H, W = x.shape
        poses = x.view(B, self.types, self.dim, H * W).transpose(2, 3)  # (B, types, H'·W', dim)
        poses = squash(poses.reshape(B, -1, self.dim))  # (B, N, dim)
        return Capsules(poses, lengths(poses), (H, W))


class Decoder(nn.Module):
    """Redraws an image from the pose of one digit capsule, all others set to zero.

    poses (B, K, P), digits (B,) → (B, C, H, W) in [0, 1].
    Source: Sabour, Frosst, Hinton 2017, section 4.1: 512 and 1024 ReLU units, then a sigmoid for each pixel.
    """

    def __init__(self, capsules: int, dim: int, image_shape: tuple[int, int, int], hidden: tuple[int, int]):
        super().__init__()
        self.image_shape = image_shape
        pixels = image_shape[0] * image_shape[1] * image_shape[2]
        self.net = nn.Sequential(
            nn.Linear(capsules * dim, hidden[0]),
            nn.ReLU(),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(),
            nn.Linear(hidden[1], pixels),
            nn.Sigmoid(),
        )

    def forward(self, poses: Tensor, digits: Tensor) -> Tensor:
        chosen = F.one_hot(digits, poses.shape[1]).to(poses.dtype)  # (B, K)
        picture = self.net((poses * chosen[..., None]).flatten(1))
        return at_least_float32(picture).view(-1, *self.image_shape)


def longest(poses: Tensor) -> Tensor:
    """Index of the longest capsule: poses (..., K, P) → (...), the class that the network answers."""
    return torch.argmax(lengths(poses), dim=-1)
