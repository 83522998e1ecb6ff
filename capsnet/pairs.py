"""Two digits on one sheet, one over the other, made from single ones whenever they are needed.

Sabour, Frosst, Hinton 2017, section 5, "MultiMNIST", and the authors' code: a margin of 4 pixels around each digit,
both moved by whole pixels, up to 4 in each direction and independently, their ink added and cut off at full; the two
are of different classes. The boxes of 20×20 pixels that MNIST's digits fill then overlap by 73 % on average.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.data import Images

MARGIN = 4  # pixels on each side of the sheet, and how far a digit is moved


def sheet_side(side: int, margin: int = MARGIN) -> int:
    """Side of the sheet on which digits of `side` pixels are laid: 28 → 36."""
    return side + 2 * margin


def partners(labels: Tensor, pool: Images, generator: torch.Generator) -> Tensor:
    """For each of the labels (B,) the number (B,) of an image in `pool` of another class, all such equally likely."""
    sorted_labels, by_class = pool.labels.sort(stable=True)
    first = torch.searchsorted(sorted_labels, labels)  # the images of the own class are passed over
    own = torch.searchsorted(sorted_labels, labels, right=True) - first  # bincount would make a GPU wait
    drawn = torch.rand(len(labels), generator=generator, device=labels.device)
    drawn = (drawn * (len(pool) - own)).long()
    return by_class[drawn + torch.where(drawn >= first, own, 0)]


def shifts(count: int, generator: torch.Generator, margin: int = MARGIN) -> Tensor:
    """Random places on the sheet: (count, 2) whole pixels, down and right, from −margin to margin."""
    return torch.randint(-margin, margin + 1, (count, 2), generator=generator, device=generator.device)


def lay(images: Tensor, by: Tensor, margin: int = MARGIN) -> Tensor:
    """Digits on a sheet each, moved by (B, 2) as in `shifts`: (B, C, H, W) → (B, C, H + 2·margin, W + 2·margin)."""
    B, C, H, W = images.shape
    padded = F.pad(images, [2 * margin] * 4)  # a window of the sheet's size slides over it
    rows = margin - by[:, :1] + torch.arange(sheet_side(H, margin), device=by.device)  # (B, side)
    columns = margin - by[:, 1:] + torch.arange(sheet_side(W, margin), device=by.device)
    every = torch.arange(B, device=by.device)[:, None, None]
    return padded[every, :, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)


def over(sheets: Tensor) -> Tensor:
    """Several sheets (B, n, C, H, W) as one (B, C, H, W): their ink added and cut off at full, 1 or, of uint8, 255."""
    if sheets.dtype == torch.uint8:
        return sheets.sum(1, dtype=torch.int16).clamp(max=255).byte()
    return sheets.sum(1).clamp(max=1)


def fixed_pairs(data: Images, seed: int = 0) -> tuple[Images, Tensor]:
    """A pair for every image of `data`, always the same for a seed, on the CPU.

    Returns:
        The pairs, images (N, C, side, side) uint8 with labels (N, 2); each digit alone, (N, 2, C, side, side) uint8.
    """
    data, generator = data.to("cpu"), torch.Generator().manual_seed(seed)
    both = data, data[partners(data.labels, data, generator)]
    alone = lay_each(both, generator)
    return replace(data, images=over(alone), labels=torch.stack([its.labels for its in both], 1)), alone


def lay_each(digits: Sequence[Images], generator: torch.Generator) -> Tensor:
    """Digits (N of each) on sheets of their own, anywhere: (N, n, C, side, side) uint8."""
    return torch.stack([lay(its.images, shifts(len(its), generator)) for its in digits], 1)
