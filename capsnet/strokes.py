"""Pen strokes → the picture MNIST's makers would have got from them.

MNIST (LeCun, Cortes, Burges 1998) scaled each digit, ink included, to a 20×20 box and moved its centre of mass
to pixel 14 of 28. Strokes are scaled as vectors and drawn afterwards, so size, place and brush leave no trace.
"""

from itertools import chain

import numpy as np

from .errors import EmptyDrawingError, InvalidDrawingError

FRAME = 28.0  # MNIST's picture
BOX = 20.0  # larger side of the ink in it, pen width included
CENTRE = 14.5  # its centre of mass: the middle of pixel 14
PEN_WIDTH = 2.5  # median over MNIST of 2 × ink ÷ total variation, which is the width of a line
MAX_POINTS = 200_000
MAX_DRAWN = 2_000  # segments; a digit has about 400 steps of TREMOR, so only a scribble has more
TREMOR = 0.25  # movements below this many pixels of the 28 leave no trace


def rasterize(strokes, size=28, width=None):
    """Draw strokes the way MNIST's digits look; the caller vouches for the strokes.

    strokes: sequence of (n, 2) arrays or lists, x right, y down, any unit; width: pen in pixels of a 28-pixel
    frame, None for MNIST's own. Returns float32 (size, size), ink 1 on paper 0.
    """
    lengths = np.array([len(stroke) for stroke in strokes], dtype=np.int64)
    points = np.concatenate([np.asarray(s, dtype=np.float64).reshape(-1, 2) for s in strokes if len(s)])
    return draw(points, lengths[lengths > 0], size, PEN_WIDTH if width is None else width)


def draw_strokes(strokes, size=28):
    """Check strokes that come from outside and draw them: [[[x, y], ...], ...] → float32 (size, size).

    Raises InvalidDrawingError, or EmptyDrawingError where there is no stroke or only a dot.
    """
    points, lengths = checked_points(strokes)
    if is_dot(points):
        raise EmptyDrawingError("The drawing is only a dot: draw a digit with a longer stroke.")
    return draw(points, lengths, size, PEN_WIDTH)


def checked_points(strokes):
    """All points in one array (N, 2) and the points per stroke (S,), or an error that says what is wrong."""
    expected = "expected a list of strokes, each a list of [x, y] points"
    if hasattr(strokes, "tolist"):
        strokes = strokes.tolist()
    if not isinstance(strokes, (list, tuple)):
        raise InvalidDrawingError(f"The strokes are of type {type(strokes).__name__}: {expected}.")
    strokes = [stroke.tolist() if hasattr(stroke, "tolist") else stroke for stroke in strokes]
    if not all(isinstance(stroke, (list, tuple)) for stroke in strokes):
        raise InvalidDrawingError(f"The strokes are nested in an unknown way: {expected}.")
    lengths = np.array([len(stroke) for stroke in strokes if len(stroke)], dtype=np.int64)
    total = int(lengths.sum())
    if total == 0:
        raise EmptyDrawingError("The drawing is empty: draw a digit first.")
    if total > MAX_POINTS:
        raise InvalidDrawingError(f"The drawing has {total:,} points: send at most {MAX_POINTS:,}.")
    try:
        points = np.asarray(list(chain.from_iterable(strokes)))
    except (ValueError, TypeError, OverflowError):
        points = np.empty(0)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "iuf":
        raise InvalidDrawingError(f"The strokes hold something else than pairs of numbers: {expected}.")
    points = points.astype(np.float64)
    if not (np.abs(points) < 1e100).all():  # NaN and infinity fail this too
        raise InvalidDrawingError("A stroke has a coordinate that is no finite number: send numbers only.")
    return points, lengths


def is_dot(points):
    """Whether all points (N, 2) are one click: no extent, or no more than the tremor of a resting hand.

    Units are unknown, so tremor means both: at most 3 units (pixels, on a page) and at most 2 % of the
    largest coordinate.
    """
    extent = float(np.ptp(points, axis=0).max())
    reach = float(np.abs(points).max())
    return extent <= max(1e-9 * reach, 1e-100) or extent <= min(3.0, 0.02 * reach)


def draw(points, lengths, size, width):
    """(N, 2) points, (S,) points per stroke, S and all lengths ≥ 1 → float32 (size, size)."""
    points, lengths = drop_stray_dots(points, lengths)
    low, high = points.min(axis=0), points.max(axis=0)
    extent = high - low
    span = float(extent.max())
    scale = (BOX - width) / span if span > 0 else 0.0
    points = (points - (low + extent / 2)) * scale + FRAME / 2
    half = (extent * scale + width) / 2
    segments = to_segments(points, lengths)
    unit = size / FRAME

    ink = coverage(segments * unit, size, width * unit)
    grid = (np.arange(size) + 0.5) / unit
    mass = ink.sum()
    centre = np.array([ink.sum(axis=0) @ grid, ink.sum(axis=1) @ grid]) / mass
    # The ink stays inside the picture, even where its mass sits at one end.
    middle = np.clip(FRAME / 2 + CENTRE - centre, half, FRAME - half)
    return coverage((segments + (middle - FRAME / 2)) * unit, size, width * unit)


def drop_stray_dots(points, lengths):
    """Leave out taps of the pen beside the digit, (N, 2) and (S,) → the same: no digit has a dot."""
    if len(lengths) == 1:
        return points, lengths
    first = np.cumsum(lengths) - lengths
    low, high = np.minimum.reduceat(points, first), np.maximum.reduceat(points, first)  # (S, 2)
    extent = (high - low).max(axis=1)
    line = extent > 0.05 * extent.max()
    if not line.any():  # a digit of dots only
        return points, lengths
    outside = ((low > high[line].max(axis=0)) | (high < low[line].min(axis=0))).any(axis=1)
    kept = line | ~outside
    return points[np.repeat(kept, lengths)], lengths[kept]


def to_segments(points, lengths):
    """Points in pixels of the frame (N, 2) → segments (M, 2, 2) of each stroke, without tremor."""
    stroke = np.repeat(np.arange(len(lengths)), lengths)
    x, y = np.floor(points / TREMOR).T
    keep = np.ones(len(points), dtype=bool)
    keep[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1]) | (stroke[1:] != stroke[:-1])
    keep[np.cumsum(lengths) - 1] = True  # a stroke ends where the pen was lifted
    points, stroke = points[keep], stroke[keep]
    joined = stroke[1:] == stroke[:-1]
    alone = np.bincount(stroke, minlength=len(lengths))[stroke] == 1
    segments = np.concatenate(
        [
            np.stack([points[:-1][joined], points[1:][joined]], axis=1),
            np.stack([points[alone], points[alone]], axis=1),  # a stroke of one point is a dot of ink
        ]
    )
    if len(segments) > MAX_DRAWN:
        segments = segments[np.linspace(0, len(segments) - 1, MAX_DRAWN).astype(int)]
    return segments


def coverage(segments, size, width):
    """Antialiased round-capped lines, by distance: (M, 2, 2) segments in pixels → float32 (size, size).

    Segments are cut into pieces no longer than the pen is wide; each piece looks at its own few pixels only.
    """
    start, step = segments[:, 0], segments[:, 1] - segments[:, 0]
    count = np.maximum(np.ceil(np.sqrt((step * step).sum(axis=1)) / width), 1).astype(np.int64)
    step = np.repeat(step / count[:, None], count, axis=0)
    index = np.arange(len(step)) - np.repeat(np.cumsum(count) - count, count)
    start = np.repeat(start, count, axis=0) + step * index[:, None]
    side = int(np.ceil(2 * width + 1)) + 1  # pixels that a piece can touch
    corner = np.floor(np.minimum(start, start + step) - width / 2 - 0.5).astype(np.int64)

    px, py = (corner + 0.5 - start).astype(np.float32).T[:, :, None] + np.arange(side, dtype=np.float32)
    dx, dy = step.astype(np.float32).T[:, :, None]
    along = (px * dx)[:, None, :] + (py * dy)[:, :, None]  # (P, side, side)
    share = np.clip(along / np.maximum(dx * dx + dy * dy, 1e-12)[:, None], 0, 1)
    beside, below = px[:, None, :] - share * dx[:, None], py[:, :, None] - share * dy[:, None]
    distance = beside * beside + below * below

    wide = size + 2 * side  # pieces at the rim reach over it
    nearest = np.full(wide * wide, np.inf, dtype=np.float32)
    offset = (np.arange(side) * wide)[:, None] + np.arange(side)
    pixel = ((corner[:, 1] + side) * wide + corner[:, 0] + side)[:, None, None] + offset
    np.minimum.at(nearest, pixel.ravel(), distance.ravel())
    nearest = nearest.reshape(wide, wide)[side:-side, side:-side]
    return np.clip(width / 2 + 0.5 - np.sqrt(nearest), 0, 1).astype(np.float32)
