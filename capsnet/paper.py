"""A picture of any kind → how dark its ink is, with the paper, its shading, grain and edges gone."""

import numpy as np
from PIL import Image

from .errors import EmptyDrawingError
from .ink import stroke_width
from .parts import PHOTO_SIDE, grow, keep_digit

FAINTEST = 0.03  # contrast of ink on clean paper, of 1
CERTAIN = 6.0  # contrast of ink in standard deviations of the paper's grain
SLENDER = 4.5  # length over stroke width that a digit has at least, if it is no very fat one
BLANK = "There is no digit to be seen in the picture: draw one that stands out from the paper."


def find_ink(values):
    """Float picture (H, W) or (H, W, 3) in 0..1 → ink float32 (H, W) in 0..1, 0 wherever there is no digit.

    Raises EmptyDrawingError where nothing stands out from the paper.
    """
    grey = to_grey(values)
    contrast, noise = take_off_paper(grey)
    kept = dark_parts(contrast, noise)
    contact = border(kept).mean()
    if min(kept.shape) > PHOTO_SIDE and contact > 0.1 and slenderness(kept) < 1.5 * SLENDER:
        # A shadow, or the light beside it, may have been taken for ink: it is wide and reaches the border.
        lit = take_off_shadow(grey)
        rest = spread(border(lit))
        strokes = dark_parts(lit, rest)
        if slenderness(strokes) > SLENDER and border(strokes).mean() < contact / 2:
            contrast, noise, kept = lit, rest, strokes
    full = np.percentile(contrast[kept], 80) if kept.any() else 0.0
    if full < CERTAIN * noise or full == 0:
        raise EmptyDrawingError(BLANK)
    ink = np.clip(contrast / full, 0, 1)
    ink[(contrast < 3 * noise) | ~grow(kept, 3)] = 0
    return ink


def to_grey(values):
    """Colours (H, W, 3) along the axis on which they differ most, so that no hue is lost; (H, W) as it is."""
    if values.ndim == 2:
        return values
    step = max(1, int(np.sqrt(values[..., 0].size / 20_000)))
    sample = values[::step, ::step].reshape(-1, 3).astype(np.float64)
    sample = sample - np.median(sample, axis=0)
    axis = np.linalg.eigh(sample.T @ sample)[1][:, -1]
    axis = axis / np.abs(axis).sum() * (np.sign(axis.sum()) or 1)
    return values @ axis.astype(np.float32)


def border(values, depth=0):
    """The ring of pixels that lies `depth` inside the border (H, W), in one row."""
    values = values[depth : len(values) - depth, depth : values.shape[1] - depth]
    return np.concatenate([values[0], values[-1], values[1:-1, 0], values[1:-1, -1]])


def spread(values):
    """Standard deviation of most values (N,) about 0, not misled where up to two thirds are something else."""
    return float(np.quantile(np.abs(values), 0.3)) / 0.385


def commonest(values):
    """The value (N,) about which two fifths of all lie closest together."""
    values = np.sort(values)
    few = max(1, int(0.4 * len(values)))
    first = int((values[few - 1 :] - values[: len(values) - few + 1]).argmin())
    return float(np.median(values[first : first + few]))


def take_off_paper(grey):
    """Grey picture → contrast to the paper (H, W), ink positive, and the paper's noise (standard deviation).

    Paper is what most of the border shows; its shading is a surface of second degree, fitted to all that looks
    like it.
    """

    def terms(y, x):
        return np.stack([np.ones_like(x), x, y, x * y, x * x, y * y], axis=-1)  # (N, 6)

    down, across = (np.linspace(-1, 1, side) for side in grey.shape)
    y, x = np.broadcast_arrays(down[:, None], across[None, :])
    step = max(1, int(np.sqrt(grey.size / 5_000)))
    few, seen = terms(y[::step, ::step].ravel(), x[::step, ::step].ravel()), grey[::step, ::step].ravel()
    # The very edge of a photo may show the table: rings further in vote too.
    shares = (0, 0.05, 0.1) if min(grey.shape) > PHOTO_SIDE else (0,)
    rings = [np.stack([border(of, int(share * min(grey.shape))) for of in (grey, y, x)]) for share in shares]
    edge, edge_y, edge_x = np.concatenate(rings, axis=1)
    rim = terms(edge_y, edge_x)
    shade = np.array([commonest(edge), 0, 0, 0, 0, 0])
    for _ in range(8):
        near = np.abs(seen - few @ shade) < 3 * max(spread(edge - rim @ shade), 0.004)
        known = few[near]
        shade = np.linalg.lstsq(known.T @ known, known.T @ seen[near], rcond=1e-6)[0]
    noise = spread(edge - rim @ shade)
    constant, right, below, twist, right2, below2 = shade.astype(np.float32)
    y, x = down.astype(np.float32)[:, None], across.astype(np.float32)[None, :]
    rest = grey - (constant + below * y + below2 * y * y) - (right * x + right2 * x * x) - twist * y * x
    strong = rest[np.abs(rest) > max(FAINTEST, 4 * noise)]
    return (rest if (strong**3).sum() > 0 else -rest), noise


def dark_parts(contrast, noise):
    """Contrast (H, W) → mask of the digit, empty where nothing stands out."""
    significant = contrast > max(FAINTEST, 4 * noise)
    if not significant.any():
        return significant
    dark = contrast[significant]
    # Half as dark as ink: there a blurred line ends where it would end if it were sharp. In a few pixels a line may
    # be paler, and there are no creases and ruled lines to mistake for it.
    share = 0.5 if min(contrast.shape) > PHOTO_SIDE else 0.2
    level = max(dark[dark >= otsu(dark)].mean() * share, 3 * noise)
    return keep_digit(contrast > level)


def slenderness(mask):
    """Length over stroke width of a mask (H, W), 2 for a disc, 5 and more for a digit in MNIST's pens."""
    if not mask.any():
        return 0.0
    extent = max(np.ptp(positions) + 1 for positions in np.nonzero(mask))
    return extent / stroke_width(mask.astype(np.float32))


def take_off_shadow(grey):
    """Grey photo of dark ink → contrast (H, W) relative to the paper right beside it, in light or shadow.

    The paper is the picture with everything dark narrower than 0.3 of it filled (a morphological closing).
    """
    picture = Image.fromarray(grey)
    coarse = np.asarray(picture.reduce(-(-max(grey.shape) // 128)))
    radius = max(1, int(0.15 * min(coarse.shape)))
    filled = Image.fromarray(-grow(-grow(coarse, radius), radius))
    paper = filled.resize(picture.size, Image.Resampling.BILINEAR)
    return 1 - grey / np.maximum(np.asarray(paper), 0.05)


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
