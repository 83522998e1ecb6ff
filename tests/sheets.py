"""Digits as strokes on a sheet of 280, drawn as a paint program would, and measures of the result."""

import math

import numpy as np
import torch
from PIL import Image, ImageDraw

from capsnet.digits import prepare_digit

SEVEN = [[[60, 60], [200, 60], [120, 220]]]
TWO = [[[70, 90], [100, 55], [150, 55], [180, 90], [160, 130], [70, 220], [190, 220]]]
FOUR = [[[130, 50], [60, 160], [200, 160]], [[150, 110], [150, 230]]]
ZERO = [[[140 + 60 * math.cos(a), 140 + 85 * math.sin(a)] for a in np.linspace(0, 2 * math.pi, 40)]]
EIGHT = [[[140 + 50 * math.sin(2 * a), 140 - 85 * math.cos(a)] for a in np.linspace(0, 2 * math.pi, 60)]]
DIGITS = [SEVEN, TWO, FOUR, ZERO, EIGHT]


def sheet(strokes=SEVEN, width=20, side=280, ink=0, paper=255, mode="L", scale=1.0, offset=(0, 0)):
    """A picture of strokes, drawn four times larger and reduced, as a paint program's smooth brush would."""
    image = Image.new(mode, (4 * side, 4 * side), paper)
    draw = ImageDraw.Draw(image)
    radius = 2 * width
    for stroke in strokes:
        points = [(4 * (x * scale + offset[0]), 4 * (y * scale + offset[1])) for x, y in stroke]
        draw.line(points, fill=ink, width=4 * width)
        for x, y in points:
            draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=ink)
    return image.reduce(4)


def difference(drawing, strokes=SEVEN):
    """Mean absolute difference of what comes out of a drawing to the strokes' own picture."""
    return float((prepare_digit(drawing) - prepare_digit({"strokes": strokes})).abs().mean())


def centre_of_mass(picture):
    grid = torch.arange(picture.shape[-1]) + 0.5
    picture = picture[0] / picture.sum()
    return float(picture.sum(0) @ grid), float(picture.sum(1) @ grid)


def ink_box(picture, level=0.02):
    rows, columns = np.nonzero(picture[0].numpy() > level)
    return int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1
