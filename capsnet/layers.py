"""What capsule networks are built from, besides routing."""

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.convolution import Conv2d
from capsnet.functional import at_least_float32, exponential_squash, lengths, squash


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


@dataclass(frozen=True)
class Layout:
    """How many capsules there are, and where: `types` × `side` × `side` of `dim` numbers each; no grid is side 1."""

    types: int
    side: int
    dim: int

    @property
    def count(self) -> int:
        return self.types * self.side**2


@dataclass
class Routed:
    """What a routing layer gives.

    Attributes:
        capsules: the output capsules, (B, J, D).
        coupling: (B, I, J), how much of input capsule i goes to output capsule j; sums to 1 over J.
        trace: per iteration a dict with that iteration's "coupling", "capsules" and "evidence"; None unless asked for.
            Evidence (B, I, J) is what each input capsule adds to an output capsule, negative where it argues against
            it: with the bias it sums to |s_j|, the length before the squash. For matrix capsules it sums to the logit
            of the activation, and all of it has one sign: that of how close together the votes for j are.
    """

    capsules: Capsules
    coupling: Tensor
    trace: list[dict[str, Any]] | None = None


def traced(coupling: Tensor, poses: Tensor, along: Tensor) -> dict[str, Any]:
    """What a trace keeps of an iteration that ends in vector capsules.

    Args:
        coupling: c, (B, J, I).
        poses: v, (B, J, D).
        along: û_j|i · v_j / |v_j|, (B, J, I), the part of each vote that goes along the capsule.
    """
    poses, coupling = poses.detach(), coupling.detach()
    return {"coupling": coupling.mT, "capsules": Capsules(poses, lengths(poses)), "evidence": (coupling * along).mT}


class ConvTrunk(nn.Module):
    """Convolution and ReLU: the features below the primary capsules.

    (B, C, H, W) → (B, channels, H − kernel + 1, W − kernel + 1).
    Source: Sabour, Frosst, Hinton 2017, section 4: 256 channels of 9×9.
    """

    def __init__(self, in_channels: int, channels: int = 256, kernel: int = 9):
        super().__init__()
        at_least_one(channels=channels, kernel=kernel)
        self.channels = channels
        self.conv = Conv2d(in_channels, channels, kernel)

    def map_size(self, side: int) -> int:
        """Side of the map that `side` × `side` pixels become; nothing is left below 1. So for all trunks."""
        return side - self.conv.kernel_size[0] + 1

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.conv(images), inplace=True)


class PrimaryCapsules(nn.Module):
    """One convolution whose channels are `types` × `dim`; each position of each type is a capsule, squashed.

    (B, in_channels, H, W) → Capsules of poses (B, types·H'·W', dim), in the order (type, row, column).

    Args:
        normalise: normalise the numbers of each capsule before the squash (LayerNorm, its 2·dim numbers shared by all).
            Not in the paper; fewer errors in short trainings, see train/RECIPES.md.
    Source: Sabour, Frosst, Hinton 2017, section 4: 32 types of 8 dimensions, 9×9, stride 2.
    """

    def __init__(
        self,
        in_channels: int,
        types: int = 32,
        dim: int = 8,
        kernel: int = 9,
        stride: int = 2,
        normalise: bool = False,
    ):
        super().__init__()
        at_least_one(types=types, dim=dim, kernel=kernel, stride=stride)
        self.types, self.dim = types, dim
        self.conv = Conv2d(in_channels, types * dim, kernel, stride)
        self.norm = nn.LayerNorm(dim) if normalise else nn.Identity()

    def map_size(self, side: int) -> int:
        """Side of the grid on a map of `side` × `side`; nothing is left below 1. So for all primary capsules."""
        return (side - self.conv.kernel_size[0]) // self.conv.stride[0] + 1

    def forward(self, features: Tensor) -> Capsules:
        x = at_least_float32(self.conv(features))  # (B, types·dim, H', W'); squash stays in float32 under autocast
        B, _, H, W = x.shape
        poses = x.view(B, self.types, self.dim, H * W).transpose(2, 3)  # (B, types, H'·W', dim)
        poses = squash(self.norm(poses.reshape(B, -1, self.dim)))  # (B, N, dim)
        return Capsules(poses, lengths(poses), (H, W))


class EfficientTrunk(nn.Module):
    """Convolutions, the first of 5×5 and the others of 3×3, each with ReLU and then batch normalisation.

    Few parameters, for few capsules.

    (B, C, S, S) → (B, channels[-1], M, M), with the four convolutions and strides of the paper 28 → 24 → 22 → 20 → 9.

    Args:
        channels, strides: of each convolution.
    Raises:
        ValueError: the numbers of channels and strides differ.
    Source: Mazzia, Salvetti, Chiaberge 2021, "Efficient-CapsNet", https://arxiv.org/abs/2101.12491, and the authors'
    code: ReLU before normalisation, ε = 0.001, he_normal.
    """

    def __init__(
        self,
        in_channels: int,
        channels: tuple[int, ...] = (32, 64, 64, 128),
        strides: tuple[int, ...] = (1, 1, 1, 2),
    ):
        super().__init__()
        if len(channels) != len(strides):
            raise ValueError(f"channels are {len(channels)} and strides {len(strides)}; each convolution needs both.")
        self.kernels = (5,) + (3,) * (len(channels) - 1)
        layers: list[nn.Module] = []
        # Keras' momentum averages over 100 batches, of 16 in the authors' code; PyTorch's 10 of 128 are as many images.
        for outputs, kernel, stride in zip(channels, self.kernels, strides, strict=True):
            conv = nn.Conv2d(in_channels, outputs, kernel, stride)
            he_normal_(conv.weight, in_channels * kernel**2)
            assert conv.bias is not None
            nn.init.zeros_(conv.bias)
            layers += [conv, nn.ReLU(inplace=True), nn.BatchNorm2d(outputs, eps=1e-3)]
            in_channels = outputs
        self.channels, self.strides = in_channels, strides
        self.layers = nn.Sequential(*layers)

    def map_size(self, side: int) -> int:
        """At least 2: a map of one pixel would leave a single image without a variance to normalise by."""
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            side = (side - kernel) // stride + 1
        return side if side > 1 else 0

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


class DepthwiseCapsules(nn.Module):
    """A convolution of each channel by itself; every `dim` channels in turn are a capsule, squashed.

    With a kernel as large as the map each capsule sees the whole image, and 128 channels are 16 capsules of 8.

    (B, channels, H, W) → Capsules of poses (B, types·H'·W', dim), in the order (type, row, column).
    Source: Mazzia, Salvetti, Chiaberge 2021, "Efficient-CapsNet", and the authors' code: glorot_uniform.
    """

    def __init__(self, channels: int = 128, dim: int = 8, kernel: int = 9):
        super().__init__()
        at_least_one(dim=dim, kernel=kernel)
        if channels % dim:
            raise ValueError(f"channels is {channels}; capsules of {dim} need a multiple of {dim}.")
        self.types, self.dim = channels // dim, dim
        self.conv = nn.Conv2d(channels, channels, kernel, groups=channels)
        nn.init.xavier_uniform_(self.conv.weight)
        assert self.conv.bias is not None
        nn.init.zeros_(self.conv.bias)

    def map_size(self, side: int) -> int:
        return side - self.conv.kernel_size[0] + 1

    def forward(self, features: Tensor) -> Capsules:
        x = at_least_float32(self.conv(features))  # (B, types·dim, H', W'); squash stays in float32 under autocast
        poses = x.unflatten(1, (-1, self.dim)).flatten(3).transpose(2, 3)  # (B, types, H'·W', dim)
        poses = exponential_squash(poses.flatten(1, 2))  # (B, N, dim)
        return Capsules(poses, lengths(poses), (x.shape[2], x.shape[3]))


class Projection(nn.Module):
    """One linear map to fewer numbers, the same for every capsule: a 1×1 convolution over the grid.

    Capsules (B, N, A) → Capsules (B, N, dim). Votes are linear too, so routing of projected capsules is routing whose
    W_ij have a factor in common, at dim / A of the memory.
    """

    def __init__(self, in_dim: int, dim: int):
        super().__init__()
        at_least_one(projection=dim)
        self.linear = nn.Linear(in_dim, dim, bias=False)

    def forward(self, capsules: Capsules) -> Capsules:
        poses = at_least_float32(self.linear(capsules.poses))
        return Capsules(poses, lengths(poses), capsules.grid)


class Decoder(nn.Module):
    """Redraws an image from the pose of one digit capsule, all others set to zero.

    poses (B, K, P), digits (B,) → (B, C, H, W) in [0, 1].
    Source: Sabour, Frosst, Hinton 2017, section 4.1: 512 and 1024 ReLU units, then a sigmoid for each pixel.
    """

    def __init__(self, capsules: int, dim: int, image_shape: tuple[int, int, int], hidden: tuple[int, ...]):
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
        return self.mix(poses * chosen[..., None])

    def mix(self, poses: Tensor) -> Tensor:
        """An image (B, C, H, W) from all capsules (B, K, P) at once, none set to zero."""
        return at_least_float32(self.net(poses.flatten(1))).view(-1, *self.image_shape)


def at_least_one(**sizes: int) -> None:
    """Raises ValueError that names the first size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; it must be at least 1.")


def longest(poses: Tensor) -> Tensor:
    """Index of the longest capsule: poses (..., K, P) → (...), the class that the network answers."""
    return torch.argmax(lengths(poses), dim=-1)


def he_normal_(weight: Tensor, fan_in: int) -> None:
    """Fill with Keras' he_normal: a normal distribution cut at twice its deviation, of variance 2 / fan_in.

    Source: He, Zhang, Ren, Sun 2015, equation 10; the cut is Keras'.
    """
    std = math.sqrt(2 / fan_in) / 0.8796  # a unit normal cut at ±2 has a standard deviation of 0.8796
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)
