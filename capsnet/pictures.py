"""Any picture → float32 grey or colour values in 0..1 of a handy size, or one sentence that says what is wrong."""

import os
import warnings

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError

from .errors import InvalidDrawingError

MAX_PIXELS = 50_000_000
MIN_SIDE = 4
HANDY_SIDE = 1000  # larger pictures are reduced to this before anything is looked at
# Formats of cameras and paint programs; Pillow would hand others (EPS) to foreign programs.
FORMATS = ("PNG", "JPEG", "MPO", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000", "ICO", "TGA", "PCX")


def read_picture(drawing):
    """PIL image, path, numpy array or tensor → float32 (H, W) or (H, W, 3) in 0..1, sides at most 1000.

    Arrays are (H, W) or (H, W, 1..4), tensors (H, W) or (1..4, H, W); EXIF rotation is applied, alpha laid over
    white. Raises InvalidDrawingError.
    """
    if isinstance(drawing, (str, os.PathLike)):
        return read_file(drawing)
    if isinstance(drawing, Image.Image):
        try:
            return read_image(drawing)
        except InvalidDrawingError:
            raise
        except (OSError, SyntaxError, ValueError, EOFError) as error:  # Pillow decodes only now, perhaps a closed file
            raise InvalidDrawingError(f"The picture cannot be decoded ({error}): pass a whole one.") from None
    if isinstance(drawing, np.ndarray):
        return read_array(drawing)
    if isinstance(drawing, torch.Tensor):
        tensor = drawing.detach().cpu()
        tensor = tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
        return read_array((tensor.movedim(0, -1) if tensor.ndim == 3 else tensor).numpy())
    raise InvalidDrawingError(
        f"A drawing cannot be of type {type(drawing).__name__}: pass a picture, array, file path or strokes."
    )


def read_file(path):
    """A picture file's first frame, see read_picture."""
    name = os.path.basename(os.fspath(path)) or os.fspath(path) or "without a name"
    if os.path.isdir(path):
        raise InvalidDrawingError(f"{name} is a folder: pass a picture file.")
    if not os.path.exists(path):
        raise InvalidDrawingError(f"There is no file {name}: check its path.")
    Image.init()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large pictures: they are refused below
            image = Image.open(path, formats=[name for name in FORMATS if name in Image.OPEN])
        with image:
            check_size(*image.size)
            # A JPEG can be reduced while it is decoded; other formats ignore this.
            image.draft(None, (2 * HANDY_SIDE, 2 * HANDY_SIDE))
            return read_image(image)
    except UnidentifiedImageError:
        raise InvalidDrawingError(f"{name} is no picture that can be read: send a PNG or JPEG file.") from None
    except Image.DecompressionBombError:
        limit = MAX_PIXELS // 10**6
        raise InvalidDrawingError(f"{name} has too many pixels: send at most {limit} megapixels.") from None
    except InvalidDrawingError:
        raise
    except (OSError, SyntaxError, ValueError, EOFError, TypeError, OverflowError, MemoryError) as error:
        raise InvalidDrawingError(f"{name} cannot be read ({error}): send another PNG or JPEG file.") from None


def read_image(image):
    """A PIL image of any mode, see read_picture."""
    check_size(*image.size)
    image = ImageOps.exif_transpose(image)
    if image.mode[0] in "IF":  # 16 and 32 bits per pixel
        return read_array(np.asarray(image))
    transparent = "transparency" in image.info or image.mode in ("LA", "La", "PA", "RGBA", "RGBa")
    colourless = image.mode in ("1", "L", "LA", "La")
    if transparent:
        image = image.convert("RGBA")
    elif colourless:
        image = image.convert("L")
    else:
        image = image.convert("RGB")
    factor = -(-max(image.size) // HANDY_SIDE)
    if factor > 1:
        if transparent:
            image = image.convert("RGBa")  # reduced with the colour weighted by its alpha
        image = image.reduce(factor)
        if transparent:
            image = image.convert("RGBA")
    return flatten(np.asarray(image, dtype=np.float32) / np.float32(255))


def read_array(array):
    """A numpy array (H, W) or (H, W, 1..4), see read_picture; values up to 1, 255 or 65535."""
    if array.ndim not in (2, 3) or (array.ndim == 3 and not 1 <= array.shape[2] <= 4):
        raise InvalidDrawingError(
            f"An array of shape {array.shape} is no picture: pass (height, width) or (height, width, 1 to 4)."
        )
    if array.dtype.kind not in "biuf":
        raise InvalidDrawingError(f"An array of {array.dtype} is no picture: pass whole numbers or floats.")
    check_size(array.shape[1], array.shape[0])
    low, high = float(array.min()), float(array.max())
    factor = -(-max(array.shape[:2]) // HANDY_SIDE)
    if factor > 1:
        height, width = (side // factor for side in array.shape[:2])
        blocks = array[: height * factor, : width * factor]
        array = blocks.reshape(height, factor, width, factor, -1).mean(axis=(1, 3), dtype=np.float32)
    array = array.astype(np.float32)
    if not np.isfinite(low + high):  # one NaN makes minimum and maximum NaN
        raise InvalidDrawingError("The array holds NaN or infinity: replace them by numbers.")
    white = next((level for level in (1, 255, 65535) if high <= level), 0)
    if low < 0 or not white:
        raise InvalidDrawingError(
            f"The array's values go from {low:g} to {high:g}: scale them to 0..1, 0..255 or 0..65535."
        )
    return flatten(array / np.float32(white))


def check_size(width, height):
    """Refuse what is too large to decode or too small to hold a digit."""
    if width * height > MAX_PIXELS:
        raise InvalidDrawingError(
            f"The picture has {width * height / 1e6:.0f} megapixels: send at most {MAX_PIXELS // 10**6}."
        )
    if min(width, height) < MIN_SIDE:
        raise InvalidDrawingError(
            f"The picture is {width}×{height} pixels: a digit needs at least {MIN_SIDE} pixels each way."
        )


def flatten(values):
    """Float (H, W) or (H, W, 1..4) in 0..1 → (H, W) or (H, W, 3), transparent parts laid over paper."""
    if values.ndim == 2:
        return values
    colour, channels = values[..., : 3 if values.shape[2] >= 3 else 1], values.shape[2]
    if channels in (2, 4):
        alpha = values[..., -1:]
        seen = colour[alpha[..., 0] > 0.5]
        # White paper, unless all that can be seen is white itself: then black paper shows it.
        white_ink = len(seen) < alpha.size and len(seen) > 0 and seen.min() > 0.8
        colour = colour * alpha + (1 - alpha) * np.float32(not white_ink)
    return colour[..., 0] if colour.shape[2] == 1 else colour
