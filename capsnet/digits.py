"""Whatever a person drew → the picture the network expects: MNIST's size, place and stroke width, ink 1 on paper 0."""

import numpy as np
import torch

from .errors import EmptyDrawingError, InvalidDrawingError
from .strokes import draw_strokes, rasterize

__all__ = ["EmptyDrawingError", "InvalidDrawingError", "prepare_digit", "rasterize"]


def prepare_digit(drawing, size=28):
    """Bring a drawing into MNIST's form: float32 tensor (1, size, size), ink 1 on paper 0.

    drawing: {"strokes": [[[x, y], ...], ...]} (x right, y down, any unit, other keys ignored). A size other than 28
    scales MNIST's layout. Raises EmptyDrawingError or InvalidDrawingError, both ValueError, with one sentence for the
    person who drew.
    """
    if not isinstance(drawing, dict) or "strokes" not in drawing:
        raise InvalidDrawingError('This is no drawing: pass {"strokes": [[[x, y], ...], ...]}.')
    picture = draw_strokes(drawing["strokes"], size)
    return torch.from_numpy(np.ascontiguousarray(picture))[None]
