"""Data sets as tensors in memory, and augmentation of whole batches on their device."""

import hashlib
import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor


class DataError(RuntimeError):
    """A data set is missing or damaged; the message says what to do."""


@dataclass
class Images:
    """images (N, C, H, W) uint8, ink 255 on paper 0, labels (N,) int64, and what they mean; None: digits."""

    images: Tensor
    labels: Tensor
    class_names: list[str] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index) -> "Images":
        return replace(self, images=self.images[index], labels=self.labels[index])

    def to(self, device: torch.device | str) -> "Images":
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

    @property
    def classes(self) -> int:
        """How many there are."""
        return 10 if self.class_names is None else len(self.class_names)

    def check(self) -> None:
        """Raises ValueError for tensors that are no data set to train with."""
        classes = self.classes
        if self.images.ndim != 4 or self.images.dtype != torch.uint8 or self.images.shape[2] != self.images.shape[3]:
            given = f"{self.images.dtype} of shape {tuple(self.images.shape)}"
            raise ValueError(f"images are {given}; they must be square, (N, C, side, side) of torch.uint8")
        if self.labels.shape != self.images.shape[:1] or self.labels.dtype != torch.int64 or not len(self.labels):
            given = f"{self.labels.dtype} of shape {tuple(self.labels.shape)}"
            raise ValueError(f"labels are {given}; there must be one of torch.int64 for each of at least one image")
        low, high = self.labels.min().item(), self.labels.max().item()
        if low < 0 or high >= classes:
            raise ValueError(f"labels go from {low} to {high}; with {classes} classes they go from 0 to {classes - 1}")

    def fingerprint(self) -> str:
        """A checksum of images and labels: the same for the same data."""
        digest = hashlib.sha256(str((tuple(self.images.shape), self.class_names)).encode())
        for tensor in (self.images, self.labels):
            digest.update(tensor.cpu().contiguous().numpy().data)
        return digest.hexdigest()


def to_float(images: Tensor) -> Tensor:
    """uint8 0…255 → float32 0…1, the network's input."""
    return images.float() / 255


@dataclass
class Augmentation:
    """How far each image is changed at random; every amount is uniform between its negative and itself.

    Attributes:
        shift: pixels, per axis.
        rotation: degrees.
        scale: fraction of the size, per axis: 0.1 is 90 to 110 %.
        shear: tangent of the slant.
        elastic: pixels, standard deviation of a smooth displacement field (a 4×4 grid of random vectors).
        thickness: fraction of a pixel by which strokes grow or shrink on each side.
        sharp: share of the images that are only shifted, and by whole pixels (rounded), as in the paper. Interpolation
            blurs the others, and a network that saw nothing else makes more errors on MNIST, which is sharp.
    """

    shift: float = 2.0
    rotation: float = 12.0
    scale: float = 0.1
    shear: float = 0.1
    elastic: float = 0.5
    thickness: float = 0.4
    sharp: float = 0.3

    def check(self) -> None:
        """Raises ValueError for amounts that cannot work."""
        for name, amount in vars(self).items():
            if not 0 <= amount < math.inf:
                raise ValueError(f"{name} is {amount}; it must not be negative")
        for name in ("scale", "thickness"):
            if getattr(self, name) >= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be below 1")
        if self.sharp > 1:
            raise ValueError(f"sharp is {self.sharp}; it is a share from 0 to 1")


def augment(
    images: Tensor,
    amount: Augmentation,
    generator: torch.Generator,
    part: slice = slice(None),  # noqa: B008 (a slice cannot change)
    whole: int | None = None,
) -> Tensor:
    """Randomly moved, bent, thinner or thicker copies.

    Args:
        images: (B, C, H, W) float, ink 1 on paper 0.
        generator: of random numbers, on the device of `images`.
        part, whole: `images` are this part of a batch of `whole`, and become what they would become in it.
    Returns:
        (B, C, H, W) float in [0, 1].
    """
    B, _, H, W = images.shape
    drawn = B if whole is None else whole

    def uniform(*shape: int) -> Tensor:
        return torch.rand((drawn, *shape), generator=generator, device=images.device)[part] * 2 - 1

    # 1 for images that are changed in every way, 0 for those that stay sharp.
    bent = (torch.rand((drawn,), generator=generator, device=images.device)[part] >= amount.sharp).float()
    angle = uniform() * math.radians(amount.rotation) * bent
    scale = 1 + uniform(2) * amount.scale * bent[:, None]
    slant = uniform() * amount.shear * bent
    shift = uniform(2) * amount.shift  # pixels
    shift = torch.where(bent[:, None] > 0, shift, shift.round()) * 2
    shift = torch.stack([shift[:, 0] / W, shift[:, 1] / H], 1)
    cos, sin = angle.cos(), angle.sin()
    # The inverse map, from a place in the result to a place in the image: scale⁻¹ · shear · rotation.
    top = torch.stack([cos + slant * sin, -sin + slant * cos], 1) / scale[:, :1]
    bottom = torch.stack([sin, cos], 1) / scale[:, 1:]
    theta = torch.cat([torch.stack([top, bottom], 1), shift[..., None]], 2)  # (B, 2, 3)
    grid = F.affine_grid(theta, [B, 1, H, W], align_corners=False)  # (B, H, W, 2)
    if amount.elastic:
        vectors = torch.randn(drawn, 2, 4, 4, generator=generator, device=images.device)[part] * amount.elastic * 2 / H
        vectors = vectors * bent[:, None, None, None]
        field = F.interpolate(vectors, (H, W), mode="bicubic", align_corners=True)
        grid = grid + field.permute(0, 2, 3, 1)
    # Bicubic, since bilinear interpolation blurs more; it overshoots at edges.
    moved = F.grid_sample(images, grid, mode="bicubic", align_corners=False).clamp(0, 1)
    return change_thickness(moved, uniform() * amount.thickness * bent) if amount.thickness else moved


def change_thickness(images: Tensor, by: Tensor) -> Tensor:
    """Grow (by > 0) or shrink (by < 0) strokes by a fraction of a pixel on each side.

    Args:
        images: (B, C, H, W), ink 1 on paper 0.
        by: (B,) in [-1, 1]; grey dilation and erosion by a 3×3 square, mixed with the image.
    """
    by = by[:, None, None, None]
    grown, shrunk = F.max_pool2d(images, 3, 1, 1), -F.max_pool2d(-images, 3, 1, 1)
    return images + by.clamp_min(0) * (grown - images) - by.clamp_max(0) * (shrunk - images)
