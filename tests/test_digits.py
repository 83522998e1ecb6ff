"""Pictures of any kind become MNIST-like pictures, or one sentence says why not."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter
from sheets import DIGITS, FOUR, TWO, ZERO, difference, ink_box, sheet

from capsnet.digits import EmptyDrawingError, InvalidDrawingError, prepare_digit

# Pictures in every form


def as_rgba():
    """Black ink on a transparent sheet."""
    image = Image.new("RGBA", (280, 280), (0, 0, 0, 0))
    image.putalpha(Image.eval(sheet(), lambda value: 255 - value))
    return image


def white_on_transparent():
    image = Image.new("RGBA", (280, 280), (255, 255, 255, 0))
    image.putalpha(Image.eval(sheet(), lambda value: 255 - value))
    return image


GREY = np.asarray(sheet())
FORMS = {
    "image": sheet(),
    "light on dark": Image.fromarray(255 - GREY),
    "uint8": GREY,
    "float to 1": GREY / 255,
    "float to 255": GREY.astype(np.float64),
    "bool ink": GREY < 128,
    "bool paper": GREY >= 128,
    "0 and 1": (GREY < 128).astype(np.uint8),
    "16 bits": GREY.astype(np.uint16) * 257,
    "16-bit image": Image.fromarray(GREY.astype(np.uint16) * 257),
    "32-bit image": sheet().convert("I"),
    "float image": sheet().convert("F"),
    "1 bit": sheet().point(lambda value: 255 * (value > 127)).convert("1"),
    "palette": sheet().convert("P"),
    "RGB": sheet().convert("RGB"),
    "CMYK": sheet().convert("RGB").convert("CMYK"),
    "YCbCr": sheet().convert("RGB").convert("YCbCr"),
    "HSV": sheet().convert("RGB").convert("HSV"),
    "RGBA": as_rgba(),
    "RGBA array": np.asarray(as_rgba()),
    "LA": as_rgba().convert("LA"),
    "LA array": np.asarray(as_rgba().convert("LA")),
    "white on transparent": white_on_transparent(),
    "one channel": GREY[..., None],
    "three channels": np.repeat(GREY[..., None], 3, axis=2),
    "tensor": torch.from_numpy(GREY / 255),
    "tensor of one channel": torch.from_numpy(GREY / 255).float()[None],
    "tensor of three": torch.from_numpy(GREY.copy())[None].expand(3, -1, -1),
    "yellow on white": sheet(ink=(255, 255, 0), paper=(255, 255, 255), mode="RGB"),
    "red on green as bright": sheet(ink=(200, 0, 0), paper=(0, 102, 0), mode="RGB"),
    "faint": sheet(ink=235),
    "negative strides": GREY[::-1][::-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_picture(form):
    picture = prepare_digit(FORMS[form])
    assert picture.shape == (1, 28, 28) and picture.dtype == torch.float32
    assert 0 <= picture.min() and picture.max() <= 1
    assert float((picture - prepare_digit(FORMS["image"])).abs().mean()) < 0.01
    assert difference(FORMS[form]) < 0.03


def test_palette_with_transparency(tmp_path):
    image = Image.new("P", (280, 280), 0)
    image.putpalette([0, 0, 0, 0, 0, 0])
    image.paste(1, mask=Image.fromarray(np.uint8(255 * (GREY < 128))))
    image.save(tmp_path / "p.png", transparency=0)  # black ink on black paper that is transparent
    assert difference(tmp_path / "p.png") < 0.03


def test_callers_picture_is_left_alone():
    array, image = GREY.astype(np.float32) / 255, sheet()
    before = array.copy()
    prepare_digit(array)
    prepare_digit(image)
    assert np.array_equal(array, before) and image.mode == "L" and np.array_equal(np.asarray(image), GREY)


def test_files(tmp_path):
    for name in ("a.png", "a.jpg", "a.bmp", "a.tif", "a.gif", "a.webp"):
        sheet().save(tmp_path / name)
        assert difference(tmp_path / name) < 0.03
        assert difference(str(tmp_path / name)) < 0.03


def test_exif_rotation(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90° clockwise before it is shown
    sheet().transpose(Image.Transpose.ROTATE_90).save(tmp_path / "phone.jpg", exif=exif, quality=95)
    assert difference(tmp_path / "phone.jpg") < 0.03


def test_first_frame_of_an_animation(tmp_path):
    sheet().save(tmp_path / "a.gif", save_all=True, append_images=[sheet(ZERO)], duration=100)
    assert difference(tmp_path / "a.gif") < 0.03


def test_large_photo_is_reduced(tmp_path):
    sheet().resize((6000, 6000)).save(tmp_path / "large.jpg", quality=60)
    assert difference(tmp_path / "large.jpg") < 0.03
    assert difference(np.asarray(sheet().resize((2100, 2100)))) < 0.03


@pytest.mark.parametrize("side", [10_001, 20_000])  # above the limit, and where Pillow itself gives up
def test_too_many_pixels_are_refused_before_they_are_decoded(tmp_path, side):
    Image.new("1", (side, side)).save(tmp_path / "bomb.png")
    start = time.process_time()
    with pytest.raises(InvalidDrawingError, match="megapixels"):
        prepare_digit(tmp_path / "bomb.png")
    assert time.process_time() - start < 0.2


def test_too_many_pixels_in_memory():
    with pytest.raises(InvalidDrawingError, match="megapixels"):
        prepare_digit(np.broadcast_to(np.uint8(0), (10_000, 10_000)))


def test_paths_that_hold_no_picture(tmp_path):
    (tmp_path / "words.png").write_text("no picture")
    (tmp_path / "empty.png").touch()
    sheet().save(tmp_path / "whole.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "whole.png").read_bytes()[:600])
    (tmp_path / "drawing.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 99 99\n%%EOF\n")
    for name in ("missing.png", "words.png", "empty.png", "cut.png", "drawing.eps", "."):
        with pytest.raises(InvalidDrawingError) as caught:
            prepare_digit(tmp_path / name)
        assert str(caught.value).endswith(".") and str(tmp_path.parent) not in str(caught.value)
    with pytest.raises(InvalidDrawingError, match="no file"):
        prepare_digit("")
    with pytest.raises(InvalidDrawingError):
        prepare_digit("nul\0byte.png")
    with pytest.raises(InvalidDrawingError, match="no file"):
        prepare_digit(Path("x" * 5000))


@pytest.mark.parametrize(
    "drawing",
    [
        None,
        7,
        [1, 2],
        b"bytes",
        np.zeros(9),
        np.zeros((2, 2, 2, 2)),
        np.zeros((28, 28, 5)),
        np.zeros((0, 5)),
        np.ones((1, 50)),
        np.ones((50, 1)),
        Image.new("L", (1, 90)),
        np.full((28, 28), np.nan),
        GREY + 0j,
        GREY.astype(str),
        GREY.astype(object),
        np.where(GREY > 9, np.inf, 0.0),
        -(GREY / 255.0),
        GREY * 1e6,
        torch.zeros(1, 1, 28, 28),
        torch.full((28, 28), torch.nan),
    ],
    ids=lambda drawing: f"{type(drawing).__name__} {getattr(drawing, 'shape', drawing)}",
)
def test_what_is_no_drawing_gets_one_sentence(drawing):
    with pytest.raises(InvalidDrawingError) as caught:
        prepare_digit(drawing)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0, 0.5, 1])
@pytest.mark.parametrize("shape", [(28, 28), (200, 150), (90, 90, 3)])
def test_constant_pictures_are_empty(value, shape):
    with pytest.raises(EmptyDrawingError, match="stands out from the paper"):
        prepare_digit(np.full(shape, value))


def test_transparent_and_unlit_sheets_are_empty():
    rng = np.random.default_rng(0)
    shaded = np.linspace(0.4, 0.9, 200)[None, :] + np.zeros((200, 1))
    grain = rng.normal(0, 0.02, (200, 200))
    coarse = np.asarray(Image.fromarray(rng.normal(0, 0.05, (40, 40))).resize((200, 200)))
    transparent = Image.new("RGBA", (80, 80), (0, 0, 0, 0))
    for blank in (transparent, shaded, shaded + grain, shaded + coarse, rng.random((200, 200))):
        with pytest.raises(EmptyDrawingError):
            prepare_digit(blank.clip(0, 1) if isinstance(blank, np.ndarray) else blank)


@pytest.mark.parametrize("width", [1, 6, 20, 90])
def test_a_dot_is_ink_but_no_digit(width):
    with pytest.raises(EmptyDrawingError, match="dot"):
        prepare_digit(sheet([[[140, 140]]], width=width))


# Pictures as people make them


@pytest.mark.parametrize("strokes", DIGITS)
@pytest.mark.parametrize("pen", [2.1, 2.5, 3.2])
def test_mnists_own_form_comes_through_unchanged(strokes, pen):
    """As in MNIST: ink on whole pixels of the 20-pixel box, 256 levels."""
    inner = prepare_digit(sheet(strokes, width=max(1, round(pen * 9))))
    twice = prepare_digit(np.uint8(np.rint(inner[0].numpy() * 255)))
    assert float((twice - inner).abs().mean()) < 0.004


@pytest.mark.parametrize("strokes", DIGITS)
@pytest.mark.parametrize("width", [1, 2, 4, 10, 24, 34])
def test_hairlines_and_fat_brushes_come_near_mnists_width(strokes, width):
    picture = prepare_digit(sheet(strokes, width=width))
    assert max(ink_box(picture)) in (20, 21)
    ink = float(picture.sum())
    usual = float(prepare_digit({"strokes": strokes}).sum())
    assert 0.65 * usual < ink < 1.55 * usual
    assert difference(sheet(strokes, width=width), strokes) < 0.075


@pytest.mark.parametrize("offset", [(0, 0), (620, 0), (0, 620), (620, 620)])
def test_small_drawing_in_a_corner(offset):
    corner = sheet(FOUR, width=5, side=700, scale=0.28, offset=offset)
    assert difference(corner, FOUR) < 0.04


def test_drawing_that_fills_its_frame():
    drawn = sheet(ZERO, width=20)
    assert difference(drawn.crop((70, 45, 210, 235)), ZERO) < 0.05


def test_aspect_is_kept():
    wide, high = ink_box(prepare_digit(sheet([[[140, 40], [140, 240]]])))
    assert high == 20 and wide <= 4


def paper(side=240, seed=0):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side] / side
    return rng, y, x, np.ones((side, side, 3)) * [0.84, 0.82, 0.78]


def photograph(strokes, pen=9, ink=(0.2, 0.2, 0.3), shade=None, grain=0.02, blur=0.8, change=None):
    """A phone's photo of a pen on paper, (240, 240, 3) uint8; change(picture) before grain and blur."""
    rng, y, x, picture = paper()
    mask = 1 - np.asarray(sheet(strokes, width=pen).resize((240, 240)))[..., None] / 255
    picture = picture * (1 - mask) + np.array(ink) * mask
    if shade:
        picture = picture * shade(x, y)[..., None]
    if change:
        change(picture)
    picture = picture * (1 + rng.normal(0, grain, (240, 240, 1)))
    return Image.fromarray(np.uint8(255 * picture.clip(0, 1))).filter(ImageFilter.GaussianBlur(blur))


def strip(picture):
    picture[:, :9] *= 0.15
    picture[-12:] *= 0.2


def rule(picture):
    picture[::40] *= [0.68, 0.78, 0.92]


def speckle(picture):
    picture[20:24, 25:29] = picture[200:203, 30:33] = picture[30:32, 210:213] = 0.2


PHOTOS = {
    "plain": {},
    "light from one side": {"shade": lambda x, y: 0.5 + 0.5 * x},
    "dark corners": {"shade": lambda x, y: 1 - 1.2 * ((x - 0.5) ** 2 + (y - 0.5) ** 2)},
    "shadow": {"shade": lambda x, y: np.where(x + 0.3 * y > 0.7, 0.6, 1.0)},
    "grain": {"grain": 0.06},
    "blur": {"blur": 4},
    "pencil": {"pen": 4, "ink": (0.6, 0.6, 0.62)},
    "strips at the edges": {"change": strip},
    "strips and light from one side": {"change": strip, "shade": lambda x, y: 0.6 + 0.4 * y},
    "ruled": {"change": rule},
    "specks": {"change": speckle},
}


@pytest.mark.parametrize("photo", PHOTOS)
@pytest.mark.parametrize("strokes", [TWO, FOUR])
def test_photos(photo, strokes):
    assert difference(photograph(strokes, **PHOTOS[photo]), strokes) < 0.06


def test_yellow_paper():
    image = np.asarray(photograph(TWO, ink=(0.15, 0.35, 0.3)), dtype=float)
    assert difference(np.uint8(image * [0.95, 0.95, 0.45]), TWO) < 0.05


def test_an_open_file_is_no_drawing():
    with open(__file__, "rb") as file, pytest.raises(InvalidDrawingError, match="type BufferedReader"):
        prepare_digit(file)


def test_pil_images_that_cannot_be_decoded(tmp_path):
    path = tmp_path / "seven.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 60), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:900])
    closed = Image.new("L", (30, 30), 255)
    closed.close()
    for image in (Image.open(path), closed):
        with pytest.raises(InvalidDrawingError, match="^The picture cannot be decoded"):
            prepare_digit(image)


def test_tensors_of_half_precision():
    paper = torch.zeros(28, 28)
    paper[6:22, 13:16] = 1
    for dtype in (torch.float16, torch.bfloat16):
        torch.testing.assert_close(prepare_digit(paper.to(dtype)), prepare_digit(paper))


@pytest.mark.parametrize("size", [0, -3, 7, 2.5, "28", None])
def test_sizes_that_no_picture_has(size):
    with pytest.raises(ValueError, match="it must be a whole number of pixels, at least 8"):
        prepare_digit({"strokes": [[[0, 0], [0, 9]]]}, size)
