"""Digits moved, bent, thickened, hidden or made noisy by a given amount: how much does a network bear?"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.data import change_thickness


@dataclass(frozen=True)
class Distortion:
    """A way of changing images.

    Attributes:
        unit: what the amount counts.
        amounts: from the least to the most that is of interest, with 0, which changes nothing.
        apply: images (N, C, H, W) in [0, 1], amount, generator → the same shape; `distort` calls it.
    """

    unit: str
    amounts: tuple[float, ...]
    apply: Callable[[Tensor, float, torch.Generator], Tensor]


def distort(images: Tensor, kind: str, amount: float, seed: int = 0) -> Tensor:
    """Changed copies of images; an amount of 0 gives the images themselves.

    Args:
        images: (N, C, H, W) in [0, 1], ink 1 on paper 0.
        kind: a name in `DISTORTIONS`.
        amount: in that one's unit.
        seed: of what is random, the noise and the places that are hidden: the same for every amount.
    Returns:
        (N, C, H, W) in [0, 1].
    """
    if amount == 0:
        return images
    return DISTORTIONS[kind].apply(images, amount, torch.Generator().manual_seed(seed)).clamp(0, 1)


def _moved(images: Tensor, inverse: list[list[float]]) -> Tensor:
    """Through an affine map, given by its inverse in coordinates from −1 to 1, x right and y down."""
    theta = torch.tensor([inverse], dtype=images.dtype, device=images.device).expand(len(images), 2, 3)
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bicubic", align_corners=False)


def _rotation(images: Tensor, degrees: float, _: torch.Generator) -> Tensor:
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return _moved(images, [[cos, sin, 0], [-sin, cos, 0]])


def _shift(images: Tensor, pixels: float, _: torch.Generator) -> Tensor:
    return _moved(images, [[1, 0, -2 * pixels / images.shape[-1]], [0, 1, 0]])


def _scale(images: Tensor, percent: float, _: torch.Generator) -> Tensor:
    factor = 1 + percent / 100
    return _moved(images, [[1 / factor, 0, 0], [0, 1 / factor, 0]])


def _shear(images: Tensor, tangent: float, _: torch.Generator) -> Tensor:
    return _moved(images, [[1, tangent, 0], [0, 1, 0]])


def _thickness(images: Tensor, pixels: float, _: torch.Generator) -> Tensor:
    while pixels:
        step = max(-1.0, min(pixels, 1.0))  # as far as one dilation or erosion goes
        images = change_thickness(images, torch.full((len(images),), step, device=images.device))
        pixels -= step
    return images


def _occlusion(images: Tensor, side: float, generator: torch.Generator) -> Tensor:
    """A square of paper, its middle anywhere in the inner half of the sheet."""
    H, W = images.shape[-2:]
    middle = (torch.rand(len(images), 2, generator=generator) * 0.5 + 0.25).to(images.device)
    down, right = torch.arange(H, device=images.device) + 0.5, torch.arange(W, device=images.device) + 0.5
    rows = (down - middle[:, :1] * H).abs() < side / 2  # (N, H)
    columns = (right - middle[:, 1:] * W).abs() < side / 2
    return images.masked_fill((rows[:, :, None] & columns[:, None])[:, None], 0.0)


def _noise(images: Tensor, deviation: float, generator: torch.Generator) -> Tensor:
    return images + deviation * torch.randn(images.shape, generator=generator).to(images.device)


DISTORTIONS: dict[str, Distortion] = {
    "rotation": Distortion("degrees clockwise", (-60, -45, -30, -15, 0, 15, 30, 45, 60), _rotation),
    "shift": Distortion("pixels to the right", (-8, -6, -4, -2, 0, 2, 4, 6, 8), _shift),
    "scale": Distortion("percent larger", (-50, -40, -20, -10, 0, 10, 20, 30, 40), _scale),
    "shear": Distortion("tangent to the right", (-0.8, -0.6, -0.4, -0.2, 0, 0.2, 0.4, 0.6, 0.8), _shear),
    "thickness": Distortion("pixels on each side", (-1, -0.75, -0.5, -0.25, 0, 0.5, 1, 1.5, 2), _thickness),
    "occlusion": Distortion("side of the hidden square in pixels", (0, 2, 4, 6, 8, 10, 12, 14, 16), _occlusion),
    "noise": Distortion("standard deviation", (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), _noise),
}
