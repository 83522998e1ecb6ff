"""Writing habits: how people draw the ten digits with a pen, each as a few strokes with free parameters.

A habit is a function of `u`, where u(low, high) draws a uniform number, and returns strokes: lists of points
(x right, y down) in a box about 0.6 wide and 1 high. A smooth curve runs through the points of a stroke;
`corner` marks where it breaks. Every call draws the habit's own parameters (length of an up-stroke, place of a
slash, depth of a hook), within limits that leave no reader in doubt about the digit; `pens` adds what all hands
have in common: tremor, slant, uneven size.
"""

from collections.abc import Callable
from math import ceil, cos, radians, sin, sqrt, tan

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


def arc(
    x: float, y: float, rx: float, ry: float, start: float, stop: float, grow: float = 0.0
) -> list[Point]:
    """Points of an ellipse around (x, y), degrees clockwise from the top; it ends 1 + `grow` times as large."""
    steps = max(2, ceil(abs(stop - start) / 40))
    points = []
    for i in range(steps + 1):
        angle = radians(start + (stop - start) * i / steps)
        size = 1 + grow * i / steps
        points.append((x + rx * size * sin(angle), y - ry * size * cos(angle)))
    return points


def chance(u: Uniform, probability: float) -> bool:
    """True with this probability."""
    return u(0, 1) < probability


# ---- 0 ----


@habit(0, 3)
def zero(u):
    """An oval, either way round, that leaves a gap near the top or runs past its start there."""
    middle, turn = u(-45, 45), u(305, 400)
    half = turn / 2 * (1 if chance(u, 0.25) else -1)
    return [arc(0.3, 0.5, u(0.2, 0.42), 0.5, middle + 180 - half, middle + 180 + half, grow=u(-0.2, 0.12))]


@habit(0, 2)
def zero_with_tail(u):
    """The end runs over the start: a small hook into the oval, or a tail to the upper right."""
    rx, start = u(0.25, 0.42), u(-40, 20)
    oval = arc(0.3, 0.5, rx, 0.5, start, start - u(330, 370))
    if chance(u, 0.5):
        tail = [(0.3 + u(-0.05, 0.12), u(0.08, 0.16)), (0.3 + u(-0.1, 0.15), u(0.18, 0.34))]
    else:
        tail = [(0.3 + u(0.1, 0.5) * rx, u(-0.08, 0.04)), (0.3 + rx * u(0.7, 1.4), u(-0.14, 0.06))]
    return [oval + tail]


@habit(0, 1)
def zero_twice_round(u):
    start = u(-60, 60)
    return [arc(0.3, 0.5, u(0.22, 0.4), 0.5, start, start - u(420, 700), grow=u(-0.25, 0.1))]


@habit(0, 4)
def zero_slashed(u):
    """A slash, from a short stroke in the middle to one far beyond the oval; some are drawn without lifting."""
    rx, ry = u(0.25, 0.45), 0.5
    lean = u(8, 62) * (-1 if chance(u, 0.12) else 1)  # from the vertical; never flat like a theta's bar
    a = radians(lean)
    radius = 1 / sqrt((sin(a) / rx) ** 2 + (cos(a) / ry) ** 2)
    x, y = 0.3 + u(-0.04, 0.04), 0.5 + u(-0.06, 0.06)
    end = radius * u(0.3, 1.6)
    low = (x - end * sin(a), y + end * cos(a))
    if chance(u, 0.3):
        oval = arc(0.3, 0.5, rx, ry, lean, lean - u(340, 365))
        return [oval[:-1] + [corner(*oval[-1][:2]), low]]
    end = radius * u(0.3, 1.6)
    start = u(-50, 60)
    return [arc(0.3, 0.5, rx, ry, start, start - u(325, 385)), [(x + end * sin(a), y - end * cos(a)), low]]


# ---- 1 ----


def _flag(u, drop: float) -> list[Point]:
    """The up-stroke of a 1 that ends at (0, 0): `drop` of the height, always far steeper than the bar of a 7."""
    dx = min(drop / tan(radians(u(42, 76))), 0.6)
    bend = u(-0.12, 0.12) * (dx + drop) / 2
    return [(-dx, drop), (-dx / 2 + bend * 0.7, drop / 2 + bend), corner(0, 0)]


def _stem(u) -> list[Point]:
    foot = u(-0.1, 0.12)
    return [(foot / 2 + u(-0.025, 0.025), 0.5), (foot, 1)]


@habit(1, 1.5)
def one_bar(u):
    lean = u(-0.25, 0.1)
    return [[(0, 0), (lean / 2 + u(-0.03, 0.03), 0.5), (lean, 1)]]


@habit(1, 5)
def one_long_upstroke(u):
    return [_flag(u, u(0.3, 0.95)) + _stem(u)]


@habit(1, 2)
def one_short_upstroke(u):
    return [_flag(u, u(0.1, 0.35)) + _stem(u)]


@habit(1, 3)
def one_with_base(u):
    """A serif under the stem, with or without up-stroke, sometimes off the stem's end."""
    flag = chance(u, 0.8)
    top, stem = _flag(u, u(0.1, 0.5)) if flag else [(0, 0)], _stem(u)
    x, y, tilt = stem[-1][0], 1 + u(-0.05, 0.04), u(-0.05, 0.05)
    left, right = u(0.12 if flag else 0.25, 0.45), u(0.12, 0.5 if flag else 0.35)  # no flag: far from an L
    return [top + stem, [(x - left, y + tilt), (x + right, y - tilt)]]


# ---- 2 ----


def _neck(u) -> list[Point]:
    """The top of a 2: a plain start, a drop, or a curled one."""
    kind = u(0, 1)
    if kind < 0.3:
        return [(0.14 + u(0, 0.12), u(0.22, 0.32)), (0.05, u(0.22, 0.3)), (0.07, 0.1), (0.3, 0)]
    if kind < 0.7:
        return [(0, u(0.15, 0.32)), (0.1, 0.06), (0.3, 0)]
    return [(u(-0.05, 0.08), u(0.02, 0.14)), (0.3, 0)]


@habit(2, 2)
def two(u):
    """No loop: a corner at the foot, then a base that rises, falls or sags, from short to long."""
    foot, end = u(-0.08, 0.1), u(0.4, 0.95)
    base = [(end / 2, 1 + u(-0.06, 0.05)), (end, 1 + u(-0.12, 0.08))]
    return [_neck(u) + [(u(0.46, 0.58), u(0.14, 0.26)), (u(0.36, 0.5), 0.5), corner(foot, 1)] + base]


@habit(2, 2)
def two_looped(u):
    """A loop at the foot, flat or round, before the base."""
    h, w, end = u(0.05, 0.22), u(0.08, 0.2), u(0.45, 0.9)
    loop = [(0.22, 0.8), (0.05, 0.98), (-w / 2, 0.97 - h / 2), (0.06, 0.95 - h), (0.12 + w, 0.93)]
    return [_neck(u) + [(u(0.44, 0.55), u(0.16, 0.26)), (0.42, 0.5)] + loop + [(end, 1 + u(-0.1, 0.06))]]


@habit(2, 1)
def two_angular(u):
    """Drawn like a Z, with a hint of a curve at the top."""
    top, end = u(-0.04, 0.16), u(0.45, 0.8)
    return [
        [
            (0, top),
            (0.25, min(top, 0.04) / 2),
            corner(u(0.42, 0.55), u(0, 0.08)),
            corner(u(-0.06, 0.06), 1),
            (end, 1 + u(-0.08, 0.05)),
        ]
    ]


# ---- 3 ----


def _belly(u, y: float) -> list[Point]:
    """The lower half of a 3 from its waist at height y."""
    right = u(0.48, 0.62)
    tail = [(u(0.2, 0.3), 1), (u(-0.1, 0.1), u(0.84, 1.02))]
    if chance(u, 0.15):
        tail.append((u(-0.06, 0.04), u(0.7, 0.8)))
    return [(right - 0.08, y + 0.08), (right, (1 + y) / 2 + 0.02), (0.44, 0.94)] + tail


@habit(3, 2)
def three(u):
    """Two bowls; the waist is a cusp, a point or a dent."""
    waist, y = u(0.1, 0.34), u(0.38, 0.5)
    middle = corner(waist, y) if chance(u, 0.6) else (waist, y)
    start = [(u(-0.04, 0.12), u(0.08, 0.24)), (0.22, 0)]
    return [start + [(u(0.4, 0.52), 0.1), (u(0.38, 0.48), 0.3), middle] + _belly(u, y)]


@habit(3, 2)
def three_flat_top(u):
    """A straight top bar and a straight stroke back to the waist."""
    waist, y = u(0.12, 0.32), u(0.32, 0.46)
    return [
        [(u(-0.05, 0.1), u(-0.04, 0.06)), corner(u(0.42, 0.55), u(-0.03, 0.04)), corner(waist, y)]
        + _belly(u, y)
    ]


@habit(3, 1)
def three_looped(u):
    """A small loop at the waist."""
    y, w = u(0.4, 0.5), u(0.06, 0.14)
    loop = [(0.22, y), (0.22 - w, y + 0.03), (0.22 - w, y - 0.05), (0.26, y - 0.03)]
    return [[(u(0, 0.12), u(0.08, 0.22)), (0.22, 0), (0.44, 0.12), (0.38, 0.32)] + loop + _belly(u, y)]


# ---- 4 ----


@habit(4, 3)
def four_open(u):
    """Down, across, then a stem that starts as high as the first stroke or only just above the bar."""
    y, end = u(0.5, 0.7), u(0.5, 0.85)
    x, foot = u(0.36, 0.52), u(-0.12, 0.08)
    top = u(-0.05, 0.35)
    first = [(u(0.02, 0.26), u(0, 0.08)), corner(u(-0.05, 0.05), y), (end, y + u(-0.08, 0.04))]
    return [first, [(x - foot * (y - top), top), (x + foot * (1 - y), 1)]]


@habit(4, 1.5)
def four_rounded(u):
    """The first stroke is a bowl, the stem its second side."""
    y, foot = u(0.4, 0.6), u(-0.12, 0.05)
    bowl = [(u(-0.03, 0.08), 0), (u(-0.06, 0.03), y * 0.6), (0.12, y), (0.32, y - u(-0.02, 0.06))]
    if chance(u, 0.5):  # without lifting the pen
        return [bowl + [corner(0.5, u(-0.04, 0.12)), (0.5 + foot, 1)]]
    return [bowl + [(u(0.46, 0.65), y - u(-0.04, 0.1))], [(0.5, u(-0.08, 0.15)), (0.5 + foot, 1)]]


@habit(4, 2)
def four_closed(u):
    """A triangle: the slope and the stem meet at the top."""
    y, x = u(0.55, 0.75), u(0.34, 0.5)
    slope = [
        (x + u(-0.06, 0.04), u(-0.04, 0.04)),
        corner(u(-0.06, 0.04), y),
        (u(0.55, 0.85), y + u(-0.06, 0.06)),
    ]
    return [slope, [(x + u(-0.02, 0.05), u(-0.03, 0.06)), (x + u(-0.08, 0.06), 1)]]


@habit(4, 1.2)
def four_lightning(u):
    """One stroke: down, across, and on downwards from the bar's end."""
    y, end = u(0.45, 0.62), u(0.42, 0.62)
    first = [(u(0.1, 0.35), 0), corner(u(-0.05, 0.05), y)]
    return [first + [corner(end, y - u(0.02, 0.2)), (end - u(-0.04, 0.2), 1)]]


# ---- 5 ----


def _bowl(u, x: float, y: float) -> list[Point]:
    """The bowl of a 5 that leaves its neck at (x, y)."""
    right = u(0.46, 0.62)
    points = [
        (x + 0.18, y - u(0, 0.06)),
        (right, (1 + y) / 2 - 0.04),
        (right - 0.12, 0.93),
        (u(0.14, 0.24), 1),
        (u(-0.1, 0.06), u(0.84, 1)),
    ]
    return points + ([(u(-0.08, 0), u(0.72, 0.8))] if chance(u, 0.12) else [])


@habit(5, 2)
def five(u):
    """One stroke from the right end of the top bar."""
    x, y = u(0.02, 0.14), u(0.34, 0.48)
    return [[(u(0.4, 0.68), u(-0.08, 0.04)), corner(u(0.06, 0.16), 0), corner(x, y)] + _bowl(u, x, y)]


@habit(5, 3)
def five_separate_bar(u):
    """The top bar is a second stroke that touches, crosses or misses the neck."""
    x, y, top = u(0.02, 0.14), u(0.3, 0.48), u(0.08, 0.2)
    bar_x, bar_y, rise = top + u(-0.08, 0.14), u(-0.12, 0.06), u(-0.03, 0.1)
    body = [(top, 0), corner(x, y)] + _bowl(u, x, y)
    return [body, [(bar_x, bar_y), (bar_x + u(0.25, 0.55), bar_y - rise)]]


@habit(5, 1.5)
def five_like_s(u):
    """No corners: a drawn-out S with a flat top."""
    x, y = u(0.05, 0.16), u(0.36, 0.48)
    return [
        [(u(0.45, 0.65), u(-0.02, 0.1)), (0.28, 0), (x, y * 0.5), (x + 0.12, y - 0.02)]
        + _bowl(u, x + 0.1, y + 0.04)
    ]


@habit(5, 1)
def five_short_neck(u):
    """A slanting neck that is barely there, with the bar mostly to its right."""
    top = u(0.16, 0.3)
    x, y = top - u(0.04, 0.12), u(0.24, 0.36)
    body = [(top, u(-0.02, 0.06)), corner(x, y)] + _bowl(u, x, y)
    return [body, [(top + u(-0.04, 0.06), u(-0.04, 0.04)), (top + u(0.3, 0.55), u(-0.12, 0.02))]]


# ---- 6 ----


@habit(6, 3)
def six(u):
    """A stem that runs into a loop which falls short of it, meets it or crosses it."""
    top, right = u(0.42, 0.62), u(0.4, 0.56)
    stem = [(u(0.22, 0.5), 0), (u(0.1, 0.2), 0.3), (0, 0.66)]
    loop = [(0.06, 0.9), (0.24, 1), (right - 0.05, 0.92), (right, (1 + top) / 2), (right * 0.55, top)]
    end = u(-0.2, 0.22)
    return [stem + loop + [(end, top + u(0.06, 0.14) + max(0, -end) * 0.5)]]


@habit(6, 1.5)
def six_straight_stem(u):
    """A straight stem, upright or leaning, and a round or flat loop at its foot."""
    top, right, x = u(0.46, 0.66), u(0.36, 0.55), u(0.02, 0.4)
    loop = [
        (0.03, 0.9),
        (0.2, 1),
        (right, 0.85),
        (right - 0.06, top + 0.06),
        (0.2, top),
        (u(0, 0.1), top + u(0.08, 0.2)),
    ]
    return [[(x, 0), (x * 0.4, 0.4), (0, 0.75)] + loop]


@habit(6, 1)
def six_hooked_top(u):
    """The stem begins with a curve; the loop is large or curls inwards."""
    top = u(0.36, 0.55)
    stem = [(u(0.44, 0.58), u(0.06, 0.16)), (0.36, 0), (0.12, 0.16), (0, 0.55)]
    return [stem + arc(0.26, (1 + top) / 2, 0.26, (1 - top) / 2, -110, -u(380, 480), grow=u(-0.35, 0))]


# ---- 7 ----


def _seven(u, least_angle: float, most_rise: float) -> tuple[list[Point], list[Point]]:
    """Bar and stem: a flat bar, `least_angle` degrees or more from the stem, tells the 7 from a flagged 1."""
    rise, width = u(-10, most_rise), u(0.42, 0.65)
    lean = u(4, min(38, 90 - least_angle - rise))
    foot = width - tan(radians(lean))
    bar = [(0, width * tan(radians(rise))), corner(width, 0)]
    bend = u(-0.07, 0.07)
    return bar, [((width + foot) / 2 + bend, 0.5 + bend / 2), (foot, 1)]


def _cross(u, bar: list[Point], stem: list[Point]) -> list[Point]:
    """The short stroke through the stem of a 7."""
    y, tilt = u(0.38, 0.66), u(-0.08, 0.1)
    top, middle, foot = bar[-1][0], stem[0][0], stem[1][0]
    x = top + (middle - top) * 2 * y if y < 0.5 else middle + (foot - middle) * (2 * y - 1)
    left, right = u(0.12, 0.36), u(0.1, 0.36)
    return [(x - left, y + tilt * left / 0.24), (x + right, y - tilt * right / 0.24)]


@habit(7, 1)
def seven(u):
    bar, stem = _seven(u, 58, 6)
    return [bar + stem]


@habit(7, 3)
def seven_crossed(u):
    bar, stem = _seven(u, 50, 14)
    return [bar + stem, _cross(u, bar, stem)]


@habit(7, 3)
def seven_hooked(u):
    """A serif hangs from the left end of the bar, which may sag; crossed or not."""
    bar, stem = _seven(u, 55, 10)
    (x, y), drop = bar[0], u(0.06, 0.26)
    start = [(x + u(-0.05, 0.03), y + drop), corner(x, y) if chance(u, 0.6) else (x, y)]
    sag = [(bar[1][0] * u(0.4, 0.6), y / 2 + u(-0.01, 0.08))] if chance(u, 0.6) else []
    strokes = [start + sag + bar[1:] + stem]
    return strokes + ([_cross(u, bar, stem)] if chance(u, 0.5) else [])


# ---- 8 ----


@habit(8, 3)
def eight(u):
    """One crossing stroke that starts anywhere and ends short of its start or past it."""
    start, turn = u(0, 360), u(335, 385) * (-1 if chance(u, 0.5) else 1)
    upper, lower, waist = u(0.18, 0.28), u(0.24, 0.34), u(0.42, 0.54)
    points = []
    for i in range(15):
        t = radians(start + turn * i / 14)
        height = (1 - cos(t)) / 2
        y = height * 2 * waist if height < 0.5 else waist + (2 * height - 1) * (1 - waist)
        points.append((0.3 + (upper if height < 0.5 else lower) * sin(2 * t), y))
    return [points]


@habit(8, 2.5)
def eight_from_s(u):
    """An S from the upper right, then up again; the top stays open or the end shoots past it."""
    right, up = u(0.42, 0.6), u(-0.1, 0.2)
    s = [
        (right, u(0.02, 0.16)),
        (0.28, 0),
        (u(0.04, 0.14), 0.2),
        (0.28, 0.46),
        (u(0.46, 0.58), 0.72),
        (0.3, 1),
        (u(-0.02, 0.1), 0.78),
    ]
    return [s + [(0.24, u(0.5, 0.56)), (right + u(-0.06, 0.1), up)]]


@habit(8, 2)
def eight_of_circles(u):
    """Two rings, one on the other, that touch, overlap or miss by a little."""
    waist, gap, shift = u(0.42, 0.54), u(-0.05, 0.04), u(-0.07, 0.07)
    up, down = u(-60, 200), u(-60, 60)
    upper = arc(0.3 + shift, (waist - gap) / 2, u(0.16, 0.26), (waist - gap) / 2, up, up - u(320, 395))
    lower = arc(
        0.3,
        (1 + waist) / 2,
        u(0.2, 0.32),
        (1 - waist) / 2,
        down,
        down + u(320, 395) * (1 if chance(u, 0.4) else -1),
    )
    return [upper, lower]


# ---- 9 ----


def _ring(u) -> list[Point]:
    """The loop of a 9 from its upper right, anticlockwise, back to its right side or short of it."""
    low, right = u(0.34, 0.52), u(0.4, 0.54)
    start = (right - u(-0.02, 0.12), u(0.03, 0.16))
    return [
        start,
        (right * 0.5, u(-0.03, 0.03)),
        (u(-0.02, 0.06), low * 0.5),
        (0.1, low * 0.92),
        (right * 0.5, low),
        (right - 0.05, low * 0.62),
    ]


@habit(9, 2)
def nine_straight(u):
    """A straight leg that starts at the loop's top or shoots out above it."""
    ring = _ring(u)
    x = ring[0][0] + u(-0.01, 0.08)
    return [ring + [corner(x, u(-0.08, 0.12)), (x + u(-0.2, 0.03), 1)]]


@habit(9, 1.5)
def nine_bent(u):
    """The loop goes over into the leg, which bends to the left."""
    ring = _ring(u)
    return [ring + [(0.5, u(0.08, 0.18)), (u(0.42, 0.5), 0.6), (u(0, 0.35), 1)]]


@habit(9, 4)
def nine_hooked(u):
    """The leg ends in a hook to the left, from a short one to one as wide as the loop and curling up."""
    ring, x = _ring(u), u(0.42, 0.54)
    depth = u(0, 1)
    top = corner(x, u(0, 0.14)) if chance(u, 0.5) else (x, u(0.06, 0.16))
    hook = [
        (x - 0.06, 0.9),
        (x - 0.18, 1),
        (x - 0.22 - 0.24 * depth, 1 - u(0.0, 0.06)),
        (x - 0.3 - 0.3 * depth, 0.98 - 0.22 * depth * u(0.2, 1)),
    ]
    return [ring + [top, (x + u(-0.02, 0.05), 0.55)] + hook]


@habit(9, 1.5)
def nine_with_base(u):
    """The leg breaks at the bottom into a straight stroke to the left."""
    ring, x = _ring(u), u(0.42, 0.54)
    foot = x + u(-0.1, 0.03)
    return [
        ring + [corner(x, u(0, 0.14)), corner(foot, u(0.92, 1)), (foot - u(0.3, 0.65), 1 + u(-0.08, 0.04))]
    ]


@habit(9, 1.5)
def nine_two_strokes(u):
    """A closed ring, and a leg of its own beside or through it, straight or hooked."""
    start, low = u(-20, 80), u(0.38, 0.52)
    ring = arc(0.25, low / 2, u(0.2, 0.28), low / 2, start, start - u(320, 380))
    x = 0.47 + u(-0.04, 0.04)
    leg = [(x, u(-0.06, 0.25)), (x + u(-0.03, 0.03), 0.6)]
    if chance(u, 0.5):
        return [ring, leg + [(x - u(0, 0.2), 1)]]
    return [ring, leg + [(x - 0.08, 0.92), (x - 0.25, 1), (x - u(0.35, 0.55), u(0.86, 0.98))]]
