"""How dark a picture's ink is → the picture MNIST's makers would have got from it.

Strokes are brought to MNIST's width where they lie outside its range, the digit is scaled to the 20-pixel box by
an area filter and centred by mass.
"""

import numpy as np
from PIL import Image

from .errors import EmptyDrawingError
from .parts import grow
from .strokes import BOX, CENTRE, FRAME

THIN, FAT = 1.6, 3.8  # stroke widths left as they are, in pixels of the 28: 5 % to 97 % of MNIST's digits
USUAL = 2.0  # what thinner ones become: a pen as slender as MNIST's slenderest quarter
FINE = 4  # stroke width is changed in a frame this many times finer
DOT = "The drawing is only a dot: draw a digit with a longer stroke."


def normalise(ink, size):
    """Ink (H, W), paper 0 → float32 (size, size) in MNIST's form."""
    ink = crop(ink, 0.02)
    if max(ink.shape) > 2 * BOX:
        ink = crop(ink, 0.25)  # many pixels to a stroke: the faint rim is blur
    length = max(ink.shape)
    width = stroke_width(ink)
    if length < 2.6 * width:
        raise EmptyDrawingError(DOT)
    thickness = width * BOX / length
    wanted = USUAL if thickness < THIN else min(thickness, FAT)
    if wanted == thickness:
        picture = fit(ink, size * BOX / FRAME / length)
    else:
        scale = FINE * (BOX - wanted) / (length - width)
        picture = change_width(ink, scale, FINE * wanted - width * scale, size)
    return centre(picture, size)


def stroke_width(ink):
    """Width of the lines in ink (H, W): twice the ink over its total variation, right for lines however blurred."""
    ink = np.clip(2 * np.pad(ink, 1) - 0.5, 0, 1)  # a marker's streaks are no edges
    down, up = ink[1:, 1:] - ink[:-1, :-1], ink[1:, :-1] - ink[:-1, 1:]
    variation = float(np.sqrt((down * down + up * up) / 2).sum())
    return 2 * float(ink.sum()) / max(variation, 1e-9)


def crop(ink, level):
    """Ink (H, W) cut to the box of all that is darker than level."""
    rows, columns = np.nonzero(ink.max(axis=1) > level)[0], np.nonzero(ink.max(axis=0) > level)[0]
    return ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def fit(ink, scale):
    """Ink scaled by an area filter (when it gets smaller) or smoothly (when it grows)."""
    height, width = (max(1, round(side * scale)) for side in ink.shape)
    if (height, width) == ink.shape:
        return ink
    image = Image.fromarray(ink.astype(np.float32))
    method = Image.Resampling.BOX if scale < 0.5 else Image.Resampling.BICUBIC
    return np.clip(np.asarray(image.resize((width, height), method)), 0, 1)


def change_width(ink, scale, change, size):
    """Ink scaled into the fine frame, its outline moved to make strokes `change` fine pixels wider, then reduced."""
    thin = stroke_width(ink) * scale
    if thin < 2:  # a hairline would vanish on the way
        extra = int(np.ceil((2 - thin) / scale / 2))
        ink = grow(np.pad(ink, extra), extra)
        change -= 2 * extra * scale
    fine = fit(ink, scale)
    margin = int(np.ceil(abs(change))) + FINE
    fine = np.pad(fine, margin)
    inside = fine > (0.35 if change > 0 else 0.5)  # pale pieces of a thin line are saved
    distance = np.where(inside, distance_to(~inside) - 0.5, 0.5 - distance_to(inside))
    fine = np.clip(distance + change / 2 + 0.5, 0, 1)
    fine = crop(fine, 0.02)
    return fit(fine, size * BOX / FRAME / max(fine.shape))


def distance_to(mask):
    """Euclidean distance of every pixel to the nearest one in the mask (H, W)."""
    height, width = mask.shape
    rows, columns = np.arange(height, dtype=np.float32), np.arange(width, dtype=np.float32)
    down = np.abs(rows[:, None] - rows[None, :])  # (H, H)
    vertical = np.where(mask.T[:, None, :], down[None], np.float32(1e4)).min(axis=2).T  # (H, W)
    across = (columns[:, None] - columns[None, :]) ** 2  # (W, W)
    return np.sqrt((vertical[:, None, :] ** 2 + across[None]).min(axis=2))


def centre(picture, size):
    """Put a picture into the frame, its centre of mass on MNIST's pixel 14, by whole pixels as MNIST does."""
    picture = picture.astype(np.float32)
    mass = float(picture.sum())
    corner = []
    for axis, side in ((1, picture.shape[0]), (0, picture.shape[1])):
        middle = float(picture.sum(axis=axis) @ (np.arange(side) + 0.5)) / mass
        corner.append(int(np.clip(round(CENTRE / FRAME * size - middle), 0, size - side)))
    frame = np.zeros((size, size), dtype=np.float32)
    frame[corner[0] : corner[0] + picture.shape[0], corner[1] : corner[1] + picture.shape[1]] = picture
    return frame
