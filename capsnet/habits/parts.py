"""What habits are made of: points, corners, arcs, and the table they register in."""

from collections.abc import Callable
from math import ceil, cos, radians, sin

Point = tuple[float, float] | tuple[float, float, int]  # (x, y), or (x, y, 1) at a corner
Strokes = list[list[Point]]
Uniform = Callable[[float, float], float]
Habit = Callable[[Uniform], Strokes]

# digit → its habits, each with its weight; what MNIST lacks weighs more
HABITS: dict[int, list[tuple[float, Habit]]] = {digit: [] for digit in range(10)}


def habit(digit: int, weight: float) -> Callable[[Habit], Habit]:
    """Register a habit of `digit`; weights are relative within the digit."""

    def register(function: Habit) -> Habit:
        HABITS[digit].append((weight, function))
        return function

    return register


def corner(x: float, y: float) -> Point:
    """A point where the pen changes direction at once."""
    return (x, y, 1)


def arc(x: float, y: float, rx: float, ry: float, start: float, stop: float, grow: float = 0.0) -> list[Point]:
    """Points of an ellipse, angles in degrees clockwise from the top; it ends 1 + `grow` times as large."""
    steps = max(2, ceil(abs(stop - start) / 40))
    points: list[Point] = []
    for i in range(steps + 1):
        angle = radians(start + (stop - start) * i / steps)
        size = 1 + grow * i / steps
        points.append((x + rx * size * sin(angle), y - ry * size * cos(angle)))
    return points


def chance(u: Uniform, probability: float) -> bool:
    """True with this probability."""
    return u(0, 1) < probability
