"""Habits of the digits 5 to 9."""

from math import cos, radians, sin, tan

from .parts import Point, arc, chance, corner, habit


def five_bowl(u, x: float, y: float) -> list[Point]:
    """The bowl of a 5 that leaves its neck at (x, y)."""
    right = u(0.46, 0.62)
    points: list[Point] = [
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
    return [[(u(0.4, 0.68), u(-0.08, 0.04)), corner(u(0.06, 0.16), 0), corner(x, y)] + five_bowl(u, x, y)]


@habit(5, 3)
def five_separate_bar(u):
    """The top bar is a second stroke that touches, crosses or misses the neck."""
    x, y, top = u(0, 0.14), u(0.3, 0.48), u(0.08, 0.32)
    bar_x, bar_y, rise = top + u(-0.2, 0.14), u(-0.12, 0.06), u(-0.03, 0.1)
    body = [(top, 0), corner(x, y)] + five_bowl(u, x, y)
    return [body, [(bar_x, bar_y), (max(bar_x, top) + u(0.25, 0.55), bar_y - rise)]]


@habit(5, 1.5)
def five_like_s(u):
    """No corners: an S with a flat top, sometimes twice as wide as usual."""
    wide = u(1.3, 2) if chance(u, 0.25) else 1
    x, y = u(0.05, 0.16), u(0.36, 0.48)
    top = [(u(0.45, 0.65), u(-0.02, 0.1)), (0.28, 0), (x, y * 0.5), (x + 0.12, y - 0.02)]
    return [[(wide * px, py) for px, py in top + five_bowl(u, x + 0.1, y + 0.04)]]


@habit(5, 1)
def five_short_neck(u):
    """A slanting neck that is barely there, with the bar mostly to its right."""
    top = u(0.16, 0.3)
    x, y = top - u(0.04, 0.12), u(0.24, 0.36)
    body = [(top, u(-0.02, 0.06)), corner(x, y)] + five_bowl(u, x, y)
    return [body, [(top + u(-0.04, 0.06), u(-0.04, 0.04)), (top + u(0.3, 0.55), u(-0.12, 0.02))]]


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


def seven_bar_and_stem(u, least_angle: float, most_rise: float) -> tuple[list[Point], list[Point]]:
    """Bar and stem: a flat bar, `least_angle` degrees or more from the stem, tells the 7 from a flagged 1."""
    rise, width = u(-10, most_rise), u(0.42, 0.65)
    lean = u(4, min(38, 90 - least_angle - rise))
    foot = width - tan(radians(lean))
    bar = [(0, width * tan(radians(rise))), corner(width, 0)]
    bend = u(-0.07, 0.07)
    return bar, [((width + foot) / 2 + bend, 0.5 + bend / 2), (foot, 1)]


def seven_cross(u, bar: list[Point], stem: list[Point]) -> list[Point]:
    """The short stroke through the stem of a 7, some with a tick down where it begins."""
    y, tilt = u(0.38, 0.72), u(-0.08, 0.1)
    top, middle, foot = bar[-1][0], stem[0][0], stem[1][0]
    x = top + (middle - top) * 2 * y if y < 0.5 else middle + (foot - middle) * (2 * y - 1)
    left, right = u(0.12, 0.36), u(0.1, 0.36)
    start = (x - left, y + tilt * left / 0.24)
    tick: list[Point] = [start]
    if chance(u, 0.2):
        tick = [(start[0] + u(-0.03, 0.06), start[1] + u(0.06, 0.16)), corner(*start)]
    return tick + [(x + right, y - tilt * right / 0.24)]


@habit(7, 1)
def seven(u):
    bar, stem = seven_bar_and_stem(u, 58, 6)
    return [bar + stem]


@habit(7, 3)
def seven_crossed(u):
    bar, stem = seven_bar_and_stem(u, 50, 14)
    return [bar + stem, seven_cross(u, bar, stem)]


@habit(7, 3)
def seven_hooked(u):
    """A serif hangs from the left end of the bar, which may sag; crossed or not."""
    bar, stem = seven_bar_and_stem(u, 55, 10)
    (x, y), drop = bar[0], u(0.06, 0.26)
    start = [(x + u(-0.05, 0.03), y + drop), corner(x, y) if chance(u, 0.6) else (x, y)]
    sag = [(bar[1][0] * u(0.4, 0.6), y / 2 + u(-0.01, 0.08))] if chance(u, 0.6) else []
    strokes = [start + sag + bar[1:] + stem]
    return strokes + ([seven_cross(u, bar, stem)] if chance(u, 0.5) else [])


@habit(7, 0.7)
def seven_notched(u):
    """The hook is as deep as the bar sags: a crossed 7 with a V on top."""
    bar, stem = seven_bar_and_stem(u, 50, 14)
    x, y = bar[0]
    notch = (x + u(0.16, 0.26), y + u(0.1, 0.22))
    start = [(x - u(0.02, 0.14), y + u(0.2, 0.5)), corner(x, y - 0.04), notch]
    return [start + bar[1:] + stem, seven_cross(u, bar, stem)]


@habit(7, 1.2)
def seven_arched(u):
    """Bar and stem are one arch, as at the top of a 2; always crossed."""
    right, foot = u(0.4, 0.56), u(0.02, 0.3)
    start = [(u(-0.06, 0.1), u(0.1, 0.28))] if chance(u, 0.7) else [(0.1, u(0.14, 0.22)), (-0.02, 0.1)]
    arch = start + [(0.16, u(-0.02, 0.06)), (right - 0.08, 0.02), (right, u(0.16, 0.26))]
    stem = [((right + foot) / 2 + u(0, 0.06), 0.56), (foot, 1)]
    return [arch + stem, seven_cross(u, [(right, 0)], stem)]


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


@habit(8, 0.6)
def eight_ribbon(u):
    """A leaning S and a straight way back up: two slim, pointed loops, the upper one open or closed."""
    right, slim = u(0.45, 0.62), u(0.1, 0.22)
    s = [(right + u(-0.02, 0.06), u(0, 0.1)), (right - 0.24, u(0, 0.08)), (right - 0.36, 0.26), (0.24, 0.52)]
    return [s + [(u(0.18, 0.26), 0.76), (0.04, 1), (0.1 - slim, 0.86), (right, u(-0.06, 0.08))]]


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


def nine_ring(u) -> list[Point]:
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
    ring = nine_ring(u)
    x = ring[0][0] + u(-0.01, 0.08)
    return [ring + [corner(x, u(-0.08, 0.12)), (x + u(-0.2, 0.03), 1)]]


@habit(9, 1.5)
def nine_bent(u):
    """The loop goes over into the leg, which bends to the left."""
    ring = nine_ring(u)
    return [ring + [(0.5, u(0.08, 0.18)), (u(0.42, 0.5), 0.6), (u(0, 0.35), 1)]]


@habit(9, 4)
def nine_hooked(u):
    """The leg ends in a hook to the left, from a short one to one as wide as the loop and curling up."""
    ring, x = nine_ring(u), u(0.42, 0.54)
    depth = u(0, 1)
    top = corner(x, u(0, 0.14)) if chance(u, 0.5) else (x, u(0.06, 0.16))
    hook = [
        (x - 0.06, 0.9),
        (x - 0.18, 1),
        (x - 0.22 - 0.24 * depth, 1 - u(0.0, 0.06)),
        (x - 0.3 - 0.3 * depth, 0.98 - 0.32 * depth * u(0.2, 1)),
    ]
    return [ring + [top, (x + u(-0.02, 0.05), 0.55)] + hook]


@habit(9, 2)
def nine_belly(u):
    """The leg leaves a small ring at its foot, swings to the right and comes back in a wide hook or base."""
    low, x = u(0.3, 0.42), u(0.24, 0.38)
    start = u(-10, 70)
    ring = arc(x, low / 2, u(0.15, 0.25), low / 2, start, -u(500, 535))
    belly = u(0.46, 0.62)
    leg = [(belly - 0.06, 0.52), (belly, 0.7), (belly - 0.12, 0.94), (u(0.1, 0.24), u(0.98, 1.02))]
    return [ring + leg + ([(u(-0.1, 0.04), u(0.78, 1))] if chance(u, 0.6) else [])]


@habit(9, 1)
def nine_flat_ring(u):
    """A long, flat loop that rises to the right, on a straight leg."""
    high, wide, rise = u(0.19, 0.28), u(0.38, 0.55), u(0, 0.14)
    ring = [
        (wide, 0),
        (wide * 0.5, rise * 0.3 - 0.02),
        (0, rise + high * 0.5),
        (wide * 0.4, rise * 0.7 + high),
    ]
    return [ring + [(wide * 0.9, high * 0.7), corner(wide + u(-0.02, 0.04), u(-0.02, 0.06)), (u(0.05, 0.4), 1)]]


@habit(9, 1.5)
def nine_with_base(u):
    """The leg breaks at the bottom into a straight stroke to the left."""
    ring, x = nine_ring(u), u(0.42, 0.54)
    foot = x + u(-0.1, 0.03)
    return [ring + [corner(x, u(0, 0.14)), corner(foot, u(0.92, 1)), (foot - u(0.3, 0.65), 1 + u(-0.08, 0.04))]]


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
