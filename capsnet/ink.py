"""A picture of a digit → the picture MNIST's makers would have got from it.

Paper is told from ink by the border; its shading is fitted and taken off; what is left is cleaned of specks and strips,
brought to MNIST's stroke width where it lies outside MNIST's range, scaled to the 20-pixel box and centred by mass.
"""

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

from .errors import EmptyDrawingError
from .strokes import BOX, CENTRE, FRAME

THIN, FAT = 2.0, 3.8  # stroke widths left as they are, in pixels of the 28: 18 % to 95 % of MNIST's digits
FINE = 4              # stroke width is changed in a frame this many times finer
FAINTEST = 0.03       # contrast of ink on clean paper, of 1
BLANK = "The picture is blank: draw a digit with more contrast to the paper."
DOT = "The drawing is only a dot: draw a digit with a longer stroke."


def draw_picture(values, size=28):
    """Float picture (H, W) or (H, W, 3) in 0..1 → float32 (size, size), ink 1 on paper 0.

    Raises EmptyDrawingError where there is no ink, or no more than a dot.
    """
    ink = find_ink(to_grey(values))
    return normalise(ink, size)


def to_grey(values):
    """Colours (H, W, 3) along the axis on which they differ most, so that no hue of ink is lost; (H, W) as it is."""
    if values.ndim == 2:
        return values
    step = max(1, int(np.sqrt(values[..., 0].size / 20_000)))
    sample = values[::step, ::step].reshape(-1, 3).astype(np.float64)
    sample = sample - np.median(sample, axis=0)
    axis = np.linalg.eigh(sample.T @ sample)[1][:, -1]
    axis = axis / np.abs(axis).sum() * (np.sign(axis.sum()) or 1)
    grey = values @ axis.astype(np.float32)
    return grey - min(0.0, float(axis[axis < 0].sum()))


def find_ink(grey):
    """Grey picture → float32 (H, W), ink near 1, everything else 0, specks and border strips gone."""
    contrast, noise = take_off_paper(grey)
    significant = contrast > max(FAINTEST, 4 * noise)
    if not significant.any():
        raise EmptyDrawingError(BLANK)
    dark = contrast[significant]
    # Half as dark as ink: there a blurred line ends where it would end if it were sharp.
    level = max(dark[dark >= otsu(dark)].mean() / 2, 3 * noise)
    kept = keep_digit(contrast > level)
    if not kept.any():
        raise EmptyDrawingError(BLANK)
    full = np.percentile(contrast[kept], 80)
    ink = np.clip(contrast / full, 0, 1)
    ink[(contrast < 3 * noise) | (grow(kept, 3) == 0)] = 0
    return ink


def border(values):
    """The outermost ring of pixels, in one row."""
    return np.concatenate([values[0], values[-1], values[1:-1, 0], values[1:-1, -1]])


def spread(values):
    """Standard deviation of most values (N,), whatever a few of them do."""
    return 1.4826 * float(np.median(np.abs(values)))


def take_off_paper(grey):
    """Grey picture → contrast to the paper (H, W), ink positive, and the paper's noise (standard deviation)."""
    def terms(y, x):
        return np.stack([np.ones_like(x), x, y, x * y, x * x, y * y], axis=-1)                  # (N, 6)

    down, across = (np.linspace(-1, 1, side) for side in grey.shape)
    y, x = np.broadcast_arrays(down[:, None], across[None, :])
    step = max(1, int(np.sqrt(grey.size / 5_000)))
    few, seen = terms(y[::step, ::step].ravel(), x[::step, ::step].ravel()), grey[::step, ::step].ravel()
    rim, edge = terms(border(y), border(x)), border(grey)
    shade = np.array([np.median(edge), 0, 0, 0, 0, 0])
    for _ in range(8):
        near = np.abs(seen - few @ shade) < 3 * max(spread(edge - rim @ shade), 0.004)
        known = few[near]
        shade = np.linalg.lstsq(known.T @ known, known.T @ seen[near], rcond=1e-6)[0]
    constant, right, below, twist, right2, below2 = shade.astype(np.float32)
    y, x = down.astype(np.float32)[:, None], across.astype(np.float32)[None, :]
    rest = grey - (constant + below * y + below2 * y * y) - (right * x + right2 * x * x) - twist * y * x
    noise = spread(border(rest))
    strong = rest[np.abs(rest) > max(FAINTEST, 4 * noise)]
    return (rest if (strong ** 3).sum() > 0 else -rest), noise


def otsu(values):
    """The level that parts values (N,) best into two groups (Otsu 1979)."""
    count, edges = np.histogram(values, bins=128)
    middle = (edges[1:] + edges[:-1]) / 2
    below = np.cumsum(count)
    total = np.cumsum(count * middle)
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (total / below - (total[-1] - total) / above) ** 2
    best = np.nan_to_num(between, nan=0.0)
    return float(edges[1:][best >= best.max() * (1 - 1e-9)].min()) if best.max() > 0 else float(values.min())


def grow(values, radius):
    """The largest value within a square of this radius around each pixel (H, W)."""
    tensor = torch.from_numpy(np.asarray(values, dtype=np.float32))[None, None]
    for kernel, margin in (((2 * radius + 1, 1), (radius, 0)), ((1, 2 * radius + 1), (0, radius))):
        tensor = functional.max_pool2d(tensor, kernel, stride=1, padding=margin)
    return tensor[0, 0].numpy()


def components(mask):
    """Mask (H, W) → rows (N,), columns (N,) of its pixels and the number of the 8-connected part of each, from 0."""
    y, x = np.nonzero(mask)
    number = np.full((mask.shape[0] + 2, mask.shape[1] + 2), -1)
    number[y + 1, x + 1] = np.arange(len(y))
    around = np.stack([number[y + i, x + j] for i in range(3) for j in range(3)])               # (9, N)
    around = np.where(around < 0, np.arange(len(y)), around)
    label = np.arange(len(y))
    while True:
        best = label[around].max(axis=0)
        for _ in range(3):                            # a label is a pixel's number: go on to that pixel's label
            best = best[best]
        if (best == label).all():
            return y, x, np.unique(label, return_inverse=True)[1]
        label = best


def keep_digit(mask):
    """Mask (H, W) of all that is dark → mask of the digit: its largest part and what belongs to it."""
    factor = -(-max(mask.shape) // 256)
    small = mask
    if factor > 1:
        high, wide = (-(-side // factor) for side in mask.shape)
        small = np.zeros((high * factor, wide * factor), dtype=bool)
        small[:mask.shape[0], :mask.shape[1]] = mask
        small = small.reshape(high, factor, wide, factor).any(axis=(1, 3))
    height, width = small.shape
    y, x, which = components(small)
    area = np.bincount(which)
    number = len(area)
    low = np.full((number, 2), 10**6)
    high = np.full((number, 2), -1)
    at = np.stack([x, y], axis=1)
    np.minimum.at(low, which, at)
    np.maximum.at(high, which, at)
    extent = high - low + 1
    side = np.array([width, height])
    touches = ((low == 0) | (high == side - 1)).any(axis=1)
    # A strip along an edge of the photo is no ink: it lies flat along the border.
    flat = touches & (extent.min(axis=1) < 0.15 * side.min()) & (
        (extent[:, 0] > 0.4 * width) & ((low[:, 1] == 0) | (high[:, 1] == height - 1))
        | (extent[:, 1] > 0.4 * height) & ((low[:, 0] == 0) | (high[:, 0] == width - 1)))
    if flat.all():
        flat[:] = False
    importance = np.where(flat, 0, area * extent.max(axis=1))
    main = int(importance.argmax())
    kept = np.zeros(number, dtype=bool)
    kept[main] = True
    box_low, box_high = low[main].copy(), high[main].copy()
    while True:
        reach = 0.25 * (box_high - box_low + 1).max()
        gap = np.maximum(np.maximum(box_low - high, low - box_high), 0).max(axis=1)
        join = ~kept & ~flat & (gap <= reach) & (extent.max(axis=1) >= 0.08 * (box_high - box_low + 1).max())
        if not touches[main]:
            join &= ~touches
        if not join.any():
            break
        kept |= join
        box_low = np.minimum(box_low, low[join].min(axis=0))
        box_high = np.maximum(box_high, high[join].max(axis=0))
    chosen = np.zeros_like(small)
    chosen[y, x] = kept[which]
    if factor > 1:
        chosen = chosen.repeat(factor, axis=0).repeat(factor, axis=1)[:mask.shape[0], :mask.shape[1]]
    return mask & chosen


def stroke_width(ink):
    """Width of the lines in ink (H, W): twice the ink over its total variation, exact for long lines however blurred."""
    ink = np.pad(ink, 1)
    down, up = ink[1:, 1:] - ink[:-1, :-1], ink[1:, :-1] - ink[:-1, 1:]
    variation = float(np.sqrt((down * down + up * up) / 2).sum())
    return 2 * float(ink.sum()) / max(variation, 1e-9)


def crop(ink, level):
    """Ink (H, W) cut to the box of all that is darker than level."""
    rows, columns = np.nonzero(ink.max(axis=1) > level)[0], np.nonzero(ink.max(axis=0) > level)[0]
    return ink[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]


def normalise(ink, size):
    """Ink (H, W), paper 0 → float32 (size, size) in MNIST's form."""
    ink = crop(ink, 0.02)
    if max(ink.shape) > 2 * BOX:
        ink = crop(ink, 0.25)                         # many pixels to a stroke: the faint rim is blur, no part of its width
    length = max(ink.shape)
    width = stroke_width(ink)
    if length < 2.6 * width:
        raise EmptyDrawingError(DOT)
    thickness = width * BOX / length
    wanted = min(max(thickness, THIN), FAT)
    if wanted == thickness:
        picture = fit(ink, size * BOX / FRAME / length)
    else:
        scale = FINE * (BOX - wanted) / (length - width)
        picture = change_width(ink, scale, FINE * (wanted - thickness * scale * length / BOX / FINE), size)
    return centre(picture, size)


def fit(ink, scale):
    """Ink scaled by an area filter (when it gets smaller) or smoothly (when it grows)."""
    height, width = (max(1, round(side * scale)) for side in ink.shape)
    if (height, width) == ink.shape:
        return ink
    image = Image.fromarray(ink.astype(np.float32))
    method = Image.Resampling.BOX if scale < 0.5 else Image.Resampling.BICUBIC
    return np.clip(np.asarray(image.resize((width, height), method)), 0, 1)


def change_width(ink, scale, change, size):
    """Ink scaled into the fine frame, its outline moved so that strokes get `change` fine pixels wider, then reduced."""
    thin = stroke_width(ink) * scale
    if thin < 2:                                      # a hairline would vanish on the way
        extra = int(np.ceil((2 - thin) / scale / 2))
        ink = grow(np.pad(ink, extra), extra)
        change -= 2 * extra * scale
    fine = fit(ink, scale)
    margin = int(np.ceil(abs(change))) + FINE
    fine = np.pad(fine, margin)
    inside = fine > 0.5
    distance = np.where(inside, distance_to(~inside) - 0.5, 0.5 - distance_to(inside))
    fine = np.clip(distance + change / 2 + 0.5, 0, 1)
    fine = crop(fine, 0.02)
    return fit(fine, size * BOX / FRAME / max(fine.shape))


def distance_to(mask):
    """Euclidean distance of every pixel to the nearest one in the mask (H, W)."""
    height, width = mask.shape
    rows, columns = np.arange(height, dtype=np.float32), np.arange(width, dtype=np.float32)
    down = np.abs(rows[:, None] - rows[None, :])                                          # (H, H)
    vertical = np.where(mask.T[:, None, :], down[None], np.float32(1e4)).min(axis=2).T    # (H, W)
    across = (columns[:, None] - columns[None, :]) ** 2                                   # (W, W)
    return np.sqrt((vertical[:, None, :] ** 2 + across[None]).min(axis=2))


def centre(picture, size):
    """Put a picture into the frame, its centre of mass at the middle of MNIST's pixel 14, by whole pixels as MNIST does."""
    picture = picture.astype(np.float32)
    mass = float(picture.sum())
    corner = []
    for axis, side in ((1, picture.shape[0]), (0, picture.shape[1])):
        middle = float(picture.sum(axis=axis) @ (np.arange(side) + 0.5)) / mass
        corner.append(int(np.clip(round(CENTRE / FRAME * size - middle), 0, size - side)))
    frame = np.zeros((size, size), dtype=np.float32)
    frame[corner[0]:corner[0] + picture.shape[0], corner[1]:corner[1] + picture.shape[1]] = picture
    return frame
