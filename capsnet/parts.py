"""Connected parts of a mask, and which of them are the digit."""

import numpy as np

PHOTO_SIDE = 64  # smaller pictures have no shadows and neighbours, but digits that fill them
COARSE_SIDE = 256  # parts are told apart on a mask reduced to this


def grow(values, radius):
    """The largest value within a square of this radius around each pixel (H, W)."""
    for axis in (0, 1):
        margin = [(0, 0), (0, 0)]
        margin[axis] = (radius, radius)
        values = np.moveaxis(np.pad(values, margin, constant_values=values.min()), axis, 0)
        reach = 1  # pixels each value stands for: doubled while it fits
        while reach < 2 * radius + 1:
            step = min(reach, 2 * radius + 1 - reach)
            values = np.maximum(values[:-step], values[step:])
            reach += step
        values = np.moveaxis(values, 0, axis)
    return values


def components(mask):
    """Mask (H, W) → rows (N,), columns (N,) of its pixels and the 8-connected part of each, numbered from 0."""
    y, x = np.nonzero(mask)
    number = np.full((mask.shape[0] + 2, mask.shape[1] + 2), -1)
    number[y + 1, x + 1] = np.arange(len(y))
    around = np.stack([number[y + i, x + j] for i in range(3) for j in range(3)])  # (9, N)
    around = np.where(around < 0, np.arange(len(y)), around)
    label = np.arange(len(y))
    while True:
        best = label[around].max(axis=0)
        for _ in range(3):  # a label is a pixel's number: go on to its label
            best = best[best]
        if (best == label).all():
            return y, x, np.unique(label, return_inverse=True)[1]
        label = best


def keep_digit(mask):
    """Mask (H, W) of what is dark, not empty → mask of the digit: the largest part and what belongs to it."""
    factor = -(-max(mask.shape) // COARSE_SIDE)
    height, width = (-(-side // factor) for side in mask.shape)
    coarse = np.zeros((height * factor, width * factor), dtype=bool)
    coarse[: mask.shape[0], : mask.shape[1]] = mask
    coarse = coarse.reshape(height, factor, width, factor).any(axis=(1, 3))
    y, x, part = components(coarse)
    coarse[y, x] = choose(y, x, part, height, width)[part]
    return mask & coarse.repeat(factor, axis=0).repeat(factor, axis=1)[: mask.shape[0], : mask.shape[1]]


def choose(y, x, part, height, width):
    """Which parts (P,) make the digit, from their pixels' rows, columns and part numbers (N,)."""
    area = np.bincount(part)  # (P,)
    low = np.full((len(area), 2), max(height, width))
    high = np.full((len(area), 2), -1)
    np.minimum.at(low, part, np.stack([y, x], axis=1))
    np.maximum.at(high, part, np.stack([y, x], axis=1))
    extent = (high - low + 1).max(axis=1)
    touching = (low == 0).any(axis=1) | (high == [height - 1, width - 1]).any(axis=1)

    # The rim of a photo may show the table or a shadow: a part that runs along the rim, with another one inside.
    to_rim = np.minimum(np.minimum(y, height - 1 - y), np.minimum(x, width - 1 - x))
    near_rim = np.bincount(part, weights=to_rim < 0.12 * min(height, width)) > 0.9 * area
    rim = touching & near_rim & (extent > 0.3 * min(height, width))
    if not (~touching & (extent > 0.15 * min(height, width))).any():
        rim[:] = False

    kept = np.zeros(len(area), dtype=bool)
    kept[np.where(rim, 0, area * extent).argmax()] = True
    # Pieces of the digit lie near it and are no specks; what comes into a photo from outside is a neighbour's.
    foreign = touching & ~touching[kept].any() & (min(height, width) > PHOTO_SIDE)
    while True:
        box_low, box_high = low[kept].min(axis=0), high[kept].max(axis=0)
        size = (box_high - box_low + 1).max()
        gap = np.maximum(np.maximum(box_low - high, low - box_high), 0).max(axis=1)
        joining = ~rim & ~foreign & ~kept & (gap <= 0.25 * size) & (extent >= 0.08 * size)
        if not joining.any():
            return kept
        kept |= joining
