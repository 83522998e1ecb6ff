"""Affine test digits in the manner of affNIST, made here: never to be mixed with the official files.

affNIST (Tieleman, https://www.cs.toronto.edu/~tijmen/affNIST/) moves MNIST digits on a sheet of 40×40 pixels: rotation
within ±20°, shear within ±0.2, width and height each by a factor of 0.8 to 1.2, and a place at which all ink stays on
the sheet, all uniform.

Sabour, Frosst, Hinton 2017 (section 5.1) read it with networks that had learned from digits moved over such a sheet and
changed in no other way: the setting `pad` of a training.
"""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.data import Images
from capsnet.pairs import lay, shifts

SHEET = 40  # pixels
ROTATION, SHEAR, EXPANSION = 20.0, 0.2, 0.2  # degrees; tangent; fraction of width and of height


def affine_digits(images: Tensor, seed: int = 0) -> Tensor:
    """One affine version of each digit.

    Args:
        images: (N, 1, H, W) uint8, no larger than the sheet.
    Returns:
        (N, 1, 40, 40) uint8.
    """
    generator = torch.Generator().manual_seed(seed)
    N, H, W = len(images), *images.shape[-2:]
    top, left = (SHEET - H) // 2, (SHEET - W) // 2
    sheets = F.pad(images.float() / 255, (left, SHEET - W - left, top, SHEET - H - top))

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator) * 2 - 1

    angle, slant = uniform(N) * math.radians(ROTATION), uniform(N) * SHEAR
    factor = 1 + uniform(N, 2) * EXPANSION
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros(N)
    # From a place on the sheet back to one in the digit: factor⁻¹ · shear · rotation.
    across = torch.stack([cos + slant * sin, -sin + slant * cos, zero], 1) / factor[:, :1]
    down = torch.stack([sin, cos, zero], 1) / factor[:, 1:]
    grid = F.affine_grid(torch.stack([across, down], 1), [N, 1, SHEET, SHEET], align_corners=False)
    moved = F.grid_sample(sheets, grid, mode="bicubic", align_corners=False).clamp(0, 1).mul(255).round().byte()
    rows, columns = (_anywhere(moved.amax((1, axis)) > 0, generator) for axis in (3, 2))
    return _rolled(moved, rows, columns)


def scattered(data: Images, pad: int, seed: int = 0) -> Images:
    """Each picture on a sheet with `pad` pixels more on every side, moved by up to so many; the same for a seed."""
    by = shifts(len(data), torch.Generator().manual_seed(seed), pad).to(data.images.device)
    return replace(data, images=lay(data.images, by, pad))


def centred(sheets: Tensor, size: int) -> Tensor:
    """Squares of `size` pixels with the centre of mass of the ink in the middle, as MNIST has it.

    Args:
        sheets: (N, 1, H, W) uint8, no smaller; what lies outside of the square is lost.
    Returns:
        (N, 1, size, size) uint8.
    """
    H, W = sheets.shape[-2:]
    ink = sheets.double()
    mass = ink.sum((1, 2, 3)).clamp_min(1)
    row = (ink.sum((1, 3)) * torch.arange(H)).sum(1) / mass
    column = (ink.sum((1, 2)) * torch.arange(W)).sum(1) / mass
    rows, columns = ((H - 1) / 2 - row).round().long(), ((W - 1) / 2 - column).round().long()
    top, left = (H - size) // 2, (W - size) // 2
    padded = F.pad(sheets, (W, W, H, H))  # so that nothing comes in again at the other side
    return _rolled(padded, rows, columns)[..., H + top : H + top + size, W + left : W + left + size]


def _anywhere(inked: Tensor, generator: torch.Generator) -> Tensor:
    """inked (N, S), where a digit has ink along one axis → (N,), a shift that keeps all of it on the sheet."""
    S = inked.shape[1]
    first = inked.byte().argmax(1)
    last = S - 1 - inked.byte().flip(1).argmax(1)
    room = S - 1 - last + first
    return (torch.rand(len(inked), generator=generator) * (room + 1)).long() - first


def _rolled(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Images (N, C, H, W), each moved down and right by numbers of its own (N,), around the edges."""
    N, C, H, W = images.shape
    down = (torch.arange(H) - rows[:, None]) % H  # (N, H)
    across = (torch.arange(W) - columns[:, None]) % W
    return images[torch.arange(N)[:, None, None], :, down[:, :, None], across[:, None]].permute(0, 3, 1, 2)
