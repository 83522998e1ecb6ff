"""Pen digits drawn by our own code: writing habits that MNIST lacks, bent at random the way hands bend them.

Strokes come from `habits`; nobody's handwriting is copied or fitted. Every digit is rendered like MNIST.
"""

import numpy as np

from .habits import HABITS
from .strokes import PEN_WIDTH, rasterize

_STEPS = np.arange(1, 7) / 6  # samples of each curve segment
_HERMITE = np.stack(
    [  # weights of start point, end point, start tangent, end tangent
        2 * _STEPS**3 - 3 * _STEPS**2 + 1,
        3 * _STEPS**2 - 2 * _STEPS**3,
        _STEPS**3 - 2 * _STEPS**2 + _STEPS,
        _STEPS**3 - _STEPS**2,
    ],
    axis=1,
)  # (6, 4)


def smooth_curve(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Centripetal Catmull-Rom curve through `points` (n, 2), broken at `corners` (n,): (6n - 5, 2)."""
    step = np.diff(points, axis=0)  # (n-1, 2)
    # Centripetal: no loops between uneven points.
    time = np.sqrt(np.hypot(step[:, 0], step[:, 1]))[:, None] + 1e-6
    slope = step / time
    ends = corners.copy()
    ends[[0, -1]] = True
    tangent = np.zeros_like(points)
    tangent[1:-1] = (slope[:-1] * time[1:] + slope[1:] * time[:-1]) / (time[:-1] + time[1:])
    leave, arrive = ends[:-1, None], ends[1:, None]
    start = np.where(leave, slope, tangent[:-1])
    stop = np.where(arrive, slope, tangent[1:])
    # A free end follows the curve of its segment.
    bent_start = np.where(leave & ~arrive, 1.5 * slope - 0.5 * stop, start)
    bent_stop = np.where(arrive & ~leave, 1.5 * slope - 0.5 * start, stop)
    parts = np.stack([points[:-1], points[1:], bent_start * time, bent_stop * time], axis=1)  # (n-1, 4, 2)
    return np.concatenate([points[:1], (_HERMITE @ parts).reshape(-1, 2)])


def _bend_controls(points: np.ndarray, sloppy: float, rng: np.random.Generator) -> np.ndarray:
    """Move a stroke, each of its points a little, and its ends along the stroke (a gap or an overshoot)."""
    points = points + rng.normal(0, 0.012 * sloppy, 2) + rng.normal(0, 0.016 * sloppy, points.shape)
    longer = rng.normal(0, 0.03 * sloppy, 2)
    for end, inner, by in ((0, 1, longer[0]), (-1, -2, longer[1])):
        along = points[end] - points[inner]
        length = np.hypot(*along) + 1e-6
        points[end] += along / length * max(by, -0.3 * length)
    return points


def _bend_plane(points: np.ndarray, sloppy: float, rng: np.random.Generator) -> np.ndarray:
    """The whole digit under a smooth warp, then stretched, slanted and turned (at most 12°)."""
    # Two waves an axis, of about half a period over the digit.
    wave, phase = rng.normal(0, 3, (2, 2, 2)), rng.uniform(0, 2 * np.pi, (2, 2))
    points = points + 0.022 * sloppy * np.sin(np.einsum("nc,kac->nka", points, wave) + phase).sum(1)
    stretch = np.exp(np.clip(rng.normal(0, 0.14), -0.3, 0.3))
    slant = np.clip(rng.normal(0.06, 0.14), -0.25, 0.38)
    turn = np.deg2rad(np.clip(rng.normal(0, 4), -12, 12))
    cos, sin = np.cos(turn), np.sin(turn)
    return points @ (np.array([[cos, -sin], [sin, cos]]) @ np.array([[stretch, -slant], [0, 1]])).T


def _tremor(strokes: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """A pen's small tremor; now and then the steps of a coarse tablet or mouse."""
    if rng.random() < 0.06:
        grid = rng.uniform(0.03, 0.06)
        return [np.round(s / grid) * grid for s in strokes]
    size = rng.exponential(0.004)
    return [s + rng.normal(0, size, s.shape) for s in strokes]


def pen_strokes(digit: int, rng: np.random.Generator) -> list[np.ndarray]:
    """One `digit` (0–9) in a random habit by a random hand: strokes (n, 2), x right, y down, about 1 high."""

    def uniform(low: float, high: float) -> float:
        return low + (high - low) * rng.random()

    weights = np.array([weight for weight, _ in HABITS[digit]])
    habit = HABITS[digit][rng.choice(len(weights), p=weights / weights.sum())][1]
    sloppy = np.clip(np.exp(rng.normal(-0.1, 0.4)), 0.4, 1.8)
    curves = []
    for stroke in habit(uniform):
        points = np.array([p[:2] for p in stroke])
        corners = np.array([len(p) == 3 for p in stroke])
        corners &= rng.random(len(stroke)) < 0.8  # haste rounds a corner
        curves.append(smooth_curve(_bend_controls(points, sloppy, rng), corners))
    bent = _bend_plane(np.concatenate(curves), sloppy, rng)
    return _tremor(np.split(bent, np.cumsum([len(c) for c in curves])[:-1]), rng)


def pen_digits(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`n` pen digits, all ten equally often, rendered like MNIST; the same for the same seed.

    Returns images (n, 28, 28) uint8, ink 255 on 0, and labels (n,) int64, as NumPy arrays.
    Raises ValueError if n is negative.
    """
    if n < 0:
        raise ValueError(f"The number of pen digits must be 0 or more, not {n}.")
    rng = np.random.default_rng(seed)
    labels = rng.permutation(n) % 10
    images = np.empty((n, 28, 28), np.uint8)
    for i, digit in enumerate(labels):
        strokes = pen_strokes(int(digit), rng)
        width = PEN_WIDTH * np.clip(np.exp(rng.normal(0, 0.18)), 0.6, 1.4)
        images[i] = np.round(rasterize(strokes, width=width) * 255)
    return images, labels.astype(np.int64)
