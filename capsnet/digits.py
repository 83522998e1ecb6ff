"""Whatever a person drew → the picture the network expects: size, place and stroke width as in MNIST."""

import numpy as np
import torch

from .errors import EmptyDrawingError, InvalidDrawingError
from .ink import normalise
from .paper import find_ink
from .pictures import read_picture
from .strokes import draw_strokes, rasterize

__all__ = ["EmptyDrawingError", "InvalidDrawingError", "prepare_digit", "rasterize"]


def prepare_digit(drawing, size=28):
    """Bring a drawing into MNIST's form: float32 tensor (1, size, size), ink 1 on paper 0.

    drawing: {"strokes": [[[x, y], ...], ...]} (x right, y down, any unit, other keys ignored); a PIL image; the
    path of a picture file; an array (H, W) or (H, W, 1..4) of bool, whole numbers or floats up to 1, 255 or 65535;
    a tensor (H, W) or (1..4, H, W) likewise. A size other than 28 scales MNIST's layout.
    Raises EmptyDrawingError or InvalidDrawingError, both ValueError, with one sentence for the person who drew.
    """
    if not isinstance(size, int) or size < 8:
        raise ValueError(f"size is {size!r}; it must be a whole number of pixels, at least 8.")
    if isinstance(drawing, dict):
        if "strokes" not in drawing:
            raise InvalidDrawingError('The drawing has no "strokes": pass {"strokes": [[[x, y], ...], ...]}.')
        picture = draw_strokes(drawing["strokes"], size)
    else:
        picture = normalise(find_ink(read_picture(drawing)), size)
    return torch.from_numpy(np.ascontiguousarray(picture))[None]
