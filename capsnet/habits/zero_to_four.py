"""Habits of the digits 0 to 4."""

from math import cos, radians, sin, sqrt, tan

from .parts import Point, arc, chance, corner, habit


@habit(0, 3)
def zero(u):
    """An oval, either way round, that leaves a gap near the top or runs past its start there."""
    middle, turn = u(-45, 45), u(305, 400)
    half = turn / 2 * (1 if chance(u, 0.25) else -1)
    return [arc(0.3, 0.5, u(0.2, 0.42), 0.5, middle + 180 - half, middle + 180 + half, grow=u(-0.2, 0.12))]


@habit(0, 2.5)
def zero_struck_through(u):
    """A small ring on a long, steep slash, like the letter phi."""
    rx, ry, lean = u(0.18, 0.32), u(0.24, 0.38), radians(u(-12, 40))
    up, down = u(0.42, 0.6), u(0.42, 0.6)
    start = u(-60, 60)
    ring = arc(0.3, 0.5, rx, ry, start, start - u(330, 390))
    return [
        ring,
        [(0.3 + up * sin(lean), 0.5 - up * cos(lean)), (0.3 - down * sin(lean), 0.5 + down * cos(lean))],
    ]


@habit(0, 2)
def zero_with_tail(u):
    """The end runs over the start: a small hook into the oval, or a tail to the upper right."""
    rx, start = u(0.25, 0.6), u(-40, 20)
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
    """A slash, from a short stroke in the middle to one far beyond the oval, or drawn on into it."""
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


def one_flag(u, drop: float) -> list[Point]:
    """The up-stroke of a 1 to (0, 0): `drop` of the height, always far steeper than the bar of a 7."""
    dx = min(drop / tan(radians(u(34, 76))), 0.25 + 0.5 * drop, 0.6)
    bend = u(-0.12, 0.2) * (dx + drop) / 2  # mostly hollow: it sets out flat and ends steep
    return [(-dx, drop), (-dx / 2 + bend * 0.7, drop / 2 + bend), corner(0, 0)]


def one_stem(u) -> list[Point]:
    foot = u(-0.06, 0.12)
    return [(foot / 2 + u(-0.025, 0.025), 0.5), (foot, 1)]


@habit(1, 1.5)
def one_bar(u):
    lean = u(-0.25, 0.1)
    return [[(0, 0), (lean / 2 + u(-0.03, 0.03), 0.5), (lean, 1)]]


@habit(1, 5)
def one_long_upstroke(u):
    return [one_flag(u, u(0.3, 0.95)) + one_stem(u)]


@habit(1, 2)
def one_short_upstroke(u):
    return [one_flag(u, u(0.1, 0.35)) + one_stem(u)]


@habit(1, 3)
def one_with_base(u):
    """A serif under the stem, with or without up-stroke, sometimes off the stem's end."""
    flag = chance(u, 0.8)
    top, stem = one_flag(u, u(0.1, 0.5)) if flag else [(0, 0)], one_stem(u)
    x, y, tilt = stem[-1][0], 1 + u(-0.05, 0.04), u(-0.05, 0.05)
    left, right = u(0.12 if flag else 0.25, 0.55), u(0.12, 0.6 if flag else 0.4)  # no flag: far from an L
    return [top + stem, [(x - left, y + tilt), (x + right, y - tilt)]]


def two_neck(u) -> list[Point]:
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
    return [two_neck(u) + [(u(0.46, 0.58), u(0.14, 0.26)), (u(0.36, 0.5), 0.5), corner(foot, 1)] + base]


@habit(2, 2)
def two_looped(u):
    """A loop at the foot, flat or round, before the base."""
    h, w, end = u(0.05, 0.22), u(0.08, 0.2), u(0.45, 0.9)
    loop = [(0.22, 0.8), (0.05, 0.98), (-w / 2, 0.97 - h / 2), (0.06, 0.95 - h), (0.12 + w, 0.93)]
    return [two_neck(u) + [(u(0.44, 0.55), u(0.16, 0.26)), (0.42, 0.5)] + loop + [(end, 1 + u(-0.1, 0.06))]]


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


def three_belly(u, y: float) -> list[Point]:
    """The lower half of a 3 from its waist at height y."""
    right = u(0.48, 0.62)
    tail: list[Point] = [(u(0.2, 0.3), 1), (u(-0.1, 0.1), u(0.84, 1.02))]
    if chance(u, 0.15):
        tail.append((u(-0.06, 0.04), u(0.7, 0.8)))
    return [(right - 0.08, y + 0.08), (right, (1 + y) / 2 + 0.02), (0.44, 0.94)] + tail


@habit(3, 2)
def three(u):
    """Two bowls; the waist is a cusp, a point or a dent."""
    waist, y = u(0.1, 0.34), u(0.38, 0.5)
    middle = corner(waist, y) if chance(u, 0.6) else (waist, y)
    start = [(u(-0.04, 0.12), u(0.08, 0.24)), (0.22, 0)]
    return [start + [(u(0.4, 0.52), 0.1), (u(0.38, 0.48), 0.3), middle] + three_belly(u, y)]


@habit(3, 2)
def three_flat_top(u):
    """A straight top bar and a straight stroke back to the waist."""
    waist, y = u(0.12, 0.32), u(0.32, 0.46)
    return [
        [(u(-0.05, 0.1), u(-0.04, 0.06)), corner(u(0.42, 0.55), u(-0.03, 0.04)), corner(waist, y)] + three_belly(u, y)
    ]


@habit(3, 1)
def three_looped(u):
    """A small loop at the waist."""
    y, w = u(0.4, 0.5), u(0.06, 0.14)
    loop = [(0.22, y), (0.22 - w, y + 0.03), (0.22 - w, y - 0.05), (0.26, y - 0.03)]
    return [[(u(0, 0.12), u(0.08, 0.22)), (0.22, 0), (0.44, 0.12), (0.38, 0.32)] + loop + three_belly(u, y)]


@habit(4, 3)
def four_open(u):
    """Down, across, then a stem that starts as high as the first stroke or only just above the bar."""
    y, end = u(0.5, 0.7), u(0.5, 0.85)
    x, foot = u(0.36, 0.52), u(-0.12, 0.08)
    top = u(-0.05, 0.35)
    first = [(u(0.02, 0.26), u(0, 0.08)), corner(u(-0.05, 0.05), y), (end, y + u(-0.08, 0.04))]
    return [first, [(x - foot * (y - top), top), (x + foot * (1 - y), 1)]]


@habit(4, 1)
def four_low(u):
    """A long first stroke, and a short stem that starts close above the bar and ends close below it."""
    y, end, x, foot = u(0.66, 0.84), u(0.4, 0.7), u(0.28, 0.46), u(-0.16, 0.02)
    top = y - u(0.14, 0.34)
    first = [(u(0.08, 0.34), 0), corner(u(-0.05, 0.05), y), (end, y + u(-0.1, 0.04))]
    return [first, [(x, top), (x + foot, y + u(0.2, 0.36))]]


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
