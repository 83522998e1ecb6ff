import hashlib
import math
import struct
from urllib.error import URLError

import numpy as np
import pytest
import torch
import torchvision.datasets.mnist

from capsnet import sources
from capsnet.data import Augmentation, DataError, Images, augment, change_thickness, to_float
from capsnet.sources import MNIST_FILES, SOURCES, load_mnist, source_of, split_validation

AMOUNTS = ("shift", "rotation", "scale", "shear", "elastic", "thickness")
NONE = dict.fromkeys((*AMOUNTS, "sharp"), 0.0)


# MNIST's files


def write_idx(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """Files in MNIST's form, taken for MNIST's: a test set of the right size, a training set that is far too small."""
    raw = tmp_path / "MNIST" / "raw"
    images = np.zeros((10_000, 28, 28), np.uint8)
    images[:, 3, 5] = np.arange(10_000) % 251
    for name, array in zip(MNIST_FILES, [images[:5], np.arange(5), images, np.arange(10_000) % 10], strict=True):
        write_idx(raw / name, array)
        monkeypatch.setitem(MNIST_FILES, name, hashlib.sha256((raw / name).read_bytes()).hexdigest())
    return raw


@pytest.fixture
def offline(monkeypatch):
    def refuse(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr(torchvision.datasets.mnist, "download_and_extract_archive", refuse)


def refusal(*arguments, **options):
    with pytest.raises(DataError) as error:
        load_mnist(*arguments, **options)
    message = str(error.value)
    assert "\n" not in message and message.endswith("."), message
    return message


def test_mnist(raw, tmp_path):
    test = load_mnist(tmp_path, train=False)
    assert len(test) == 10_000
    assert test.images.shape == (10_000, 1, 28, 28) and test.images.dtype == torch.uint8
    assert test.labels.shape == (10_000,) and test.labels.dtype == torch.int64
    assert test.images[260, 0, 3, 5] == 9 and test.labels[260] == 0


def test_missing_files_without_a_network(tmp_path, offline):
    message = refusal(tmp_path / "none", train=True)
    assert "could not be downloaded (<urlopen error no network>)" in message
    assert str(tmp_path / "none" / "MNIST" / "raw") in message and "--data-dir" in message
    assert all(name in message for name in MNIST_FILES)


def test_missing_files_and_no_download(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_download", lambda *_: pytest.fail("downloads"))
    assert str(tmp_path / "MNIST" / "raw") in refusal(tmp_path, train=False, download=False)


def test_one_missing_file(raw, tmp_path, offline):
    (raw / "train-labels-idx1-ubyte").unlink()
    assert "could not be downloaded" in refusal(tmp_path, train=False)


def test_a_data_folder_that_is_a_file(tmp_path, offline):
    (tmp_path / "file").write_text("")
    assert "could not be downloaded" in refusal(tmp_path / "file", train=False)


def test_too_few_images(raw, tmp_path):
    assert "are damaged or are not MNIST's" in refusal(tmp_path, train=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x00", b"<html>404</html>" * 100, struct.pack(">BBBBIII", 0, 0, 8, 3, 10_000, 28, 28) + b"\0" * 99],
    ids=["empty", "two bytes", "web page", "cut"],
)
@pytest.mark.parametrize("file", [2, 3])
def test_damaged_files(raw, tmp_path, file, content, offline):
    (raw / list(MNIST_FILES)[file]).write_bytes(content)
    message = refusal(tmp_path, train=False)
    assert str(raw) in message and "are damaged or are not MNIST's; remove them" in message


def test_other_images_in_files_of_the_right_form(raw, tmp_path):
    """One pixel is another; the files of training and test are swapped."""
    path = raw / list(MNIST_FILES)[2]
    whole = path.read_bytes()
    path.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    assert "are damaged or are not MNIST's; remove them" in refusal(tmp_path, train=False)
    path.write_bytes(whole)
    load_mnist(tmp_path, train=False)
    for n in (0, 1):
        (raw / list(MNIST_FILES)[n]).write_bytes((raw / list(MNIST_FILES)[n + 2]).read_bytes())
    assert "are damaged or are not MNIST's; remove them" in refusal(tmp_path, train=True)


def test_fingerprint():
    a = Images(torch.arange(12, dtype=torch.uint8).view(3, 1, 2, 2), torch.tensor([0, 1, 2]))
    others = [Images(a.images.clone(), a.labels.flip(0)), Images(a.images.flip(0), a.labels), a[:2]]
    assert a.fingerprint() == Images(a.images.clone(), a.labels.clone()).fingerprint()
    assert len({images.fingerprint() for images in [a, *others]}) == 4


def test_as_many_labels_as_images(raw, tmp_path):
    write_idx(raw / list(MNIST_FILES)[3], np.zeros(9_999))
    assert "are damaged" in refusal(tmp_path, train=False)


# Sets of MNIST's form


@pytest.mark.parametrize("name", ["fashion-mnist", "kmnist"])
def test_other_sets_by_name(tmp_path, name, offline):
    source = SOURCES[name]
    assert f"{source.title} could not be downloaded" in refusal(tmp_path, train=False, name=name)
    raw, images = tmp_path / source.folder / "raw", np.zeros((10_000, 28, 28), np.uint8)
    images[:, 3, 5] = np.arange(10_000) % 251
    for file, array in zip(MNIST_FILES, [images[:5], np.arange(5), images, np.arange(10_000) % 10], strict=True):
        write_idx(raw / file, array)
    test = load_mnist(tmp_path, train=False, name=name)
    assert test.images.shape == (10_000, 1, 28, 28) and test.images[260, 0, 3, 5] == 9 and test.labels[260] == 0
    assert test.class_names == source.class_names and len(set(test.class_names)) == 10
    assert source_of(test.class_names) == name
    assert f"or are not {source.title}'s" in refusal(tmp_path, train=True, name=name)  # five images
    labels = np.arange(10_000) % 10
    labels[0] = 3  # one class has more than another
    write_idx(raw / list(MNIST_FILES)[3], labels)
    assert f"or are not {source.title}'s" in refusal(tmp_path, train=False, name=name)


def test_whose_classes_these_are():
    assert source_of(list("0123456789")) == "mnist" and source_of(["a", "b"]) is None


# Data in memory


def test_the_last_5000_validate():
    images = torch.arange(5_007, dtype=torch.int32).view(-1, 1, 1, 1)
    training, validation = split_validation(Images(images, torch.arange(5_007)))
    assert training.labels.tolist() == list(range(7))
    assert validation.labels.tolist() == list(range(7, 5_007))
    assert torch.equal(training.images.flatten(), training.labels.int())


def test_indexing_keeps_images_and_labels_together(digits):
    part = digits[torch.tensor([3, 1])]
    assert torch.equal(part.images[0], digits.images[3]) and part.labels[1] == digits.labels[1]
    assert len(part.to("cpu")) == 2


def test_to_float():
    out = to_float(torch.tensor([0, 51, 255], dtype=torch.uint8))
    assert out.dtype == torch.float32 and out.tolist() == pytest.approx([0, 0.2, 1])


# Augmentation


def changed(images, monkeypatch=None, draw=None, seed=0, **amounts):
    """Augmented with the given amounts alone; `draw` in [-1, 1] replaces every random number."""
    if draw is not None:
        monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.full(shape, (draw + 1) / 2))
        monkeypatch.setattr(torch, "randn", lambda *shape, **_: torch.full(shape, float(draw)))
    return augment(images, Augmentation(**{**NONE, **amounts}), torch.Generator().manual_seed(seed))


@pytest.fixture
def ink(digits):
    return to_float(digits.images)


def dot(row, column, size=28):
    image = torch.zeros(1, 1, size, size)
    image[0, 0, row, column] = 1
    return image


def centre(images):
    """Row and column of the centre of mass, (B, 2)."""
    mass = images.sum((1, 2, 3))
    where = torch.arange(images.shape[-1], dtype=torch.float32)
    return torch.stack([(images.sum((1, 3)) * where).sum(1) / mass, (images.sum((1, 2)) * where).sum(1) / mass], 1)


def test_no_augmentation_is_the_identity(ink):
    torch.testing.assert_close(changed(ink), ink, rtol=0, atol=1e-5)


@pytest.mark.parametrize("amount", [*AMOUNTS, "all"])
def test_shape_range_and_effect(ink, amount):
    out = augment(ink, Augmentation(), torch.Generator()) if amount == "all" else changed(ink, **{amount: 0.5})
    assert out.shape == ink.shape and out.dtype == torch.float32
    assert out.min() >= 0 and out.max() <= 1
    assert (out - ink).abs().amax((1, 2, 3)).median() > 0.01


def test_the_generator_decides(ink):
    first, again, other = (augment(ink, Augmentation(), torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    torch.rand(3)
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize("amount", AMOUNTS)
def test_every_image_is_changed_in_its_own_way(ink, amount):
    out = changed(ink[:1].repeat(20, 1, 1, 1), **{amount: 0.5})
    assert len({tuple(image.flatten().tolist()) for image in out}) == 20


@pytest.mark.parametrize("part", [slice(0, 5), slice(5, 8)], ids=str)
def test_a_part_is_augmented_as_in_the_whole_batch(digits, part):
    images = to_float(digits.images[:8])
    whole = augment(images, Augmentation(), torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(1)
    torch.testing.assert_close(augment(images[part], Augmentation(), generator, part, 8), whole[part])
    reference = torch.Generator().manual_seed(1)
    augment(images, Augmentation(), reference)
    assert torch.equal(generator.get_state(), reference.get_state())


@pytest.mark.parametrize("draw", [1, -1])
@pytest.mark.parametrize("amount", ["shift", "elastic"])
def test_shift_in_pixels(ink, monkeypatch, draw, amount):
    """A displacement field that is the same everywhere is a shift too."""
    out = changed(ink, monkeypatch, draw, **{amount: 2.0})
    padded = torch.nn.functional.pad(ink, (2, 2, 2, 2))
    start = 2 + 2 * draw
    torch.testing.assert_close(out, padded[:, :, start : start + 28, start : start + 28], rtol=0, atol=1e-4)


def test_shifts_fill_their_range_independently_per_axis():
    moved = centre(changed(dot(14, 14).repeat(400, 1, 1, 1), shift=2.0)) - 14
    assert moved.abs().max() <= 2.001
    assert (moved.amin(0) < -1.9).all() and (moved.amax(0) > 1.9).all()
    assert moved.mean(0).abs().max() < 0.2
    assert abs(torch.corrcoef(moved.T)[0, 1]) < 0.2


def test_rotation_in_degrees(ink, monkeypatch):
    out = changed(ink, monkeypatch, 1, rotation=90.0)
    expected = min((torch.rot90(ink, k, (2, 3)) for k in (1, 3)), key=lambda x: (x - out).abs().max())
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-4)
    back = changed(ink, monkeypatch, -1, rotation=90.0)
    torch.testing.assert_close(torch.rot90(back, 2, (2, 3)), out, rtol=0, atol=1e-4)


def test_rotation_angle(monkeypatch):
    row, column = (centre(changed(dot(14, 24), monkeypatch, 1, rotation=30.0)) - 13.5)[0].tolist()
    before = math.atan2(0.5, 10.5)
    assert abs(abs(math.degrees(math.atan2(row, column) - before)) - 30) < 1
    assert math.hypot(row, column) == pytest.approx(math.hypot(0.5, 10.5), abs=0.1)


@pytest.mark.parametrize(("draw", "factor"), [(1, 1.5), (-1, 0.5)])
def test_scale_in_fractions(monkeypatch, draw, factor):
    row, column = (centre(changed(dot(9, 18), monkeypatch, draw, scale=0.5)) - 13.5)[0].tolist()
    assert (row, column) == pytest.approx((-4.5 * factor, 4.5 * factor), abs=0.3)


def test_scale_per_axis():
    """A dot's two distances from the middle grow by different factors."""
    moved = (centre(changed(dot(4, 4).repeat(50, 1, 1, 1), scale=0.2)) - 13.5) / (4 - 13.5)
    assert 0.78 < moved.min() < 0.9 and 1.1 < moved.max() < 1.22
    assert (moved[:, 0] - moved[:, 1]).abs().max() > 0.1


def test_shear_slants_upright_strokes(monkeypatch):
    """By the tangent: rows move sideways in proportion to their height, and no row moves up or down."""
    stroke = torch.zeros(1, 1, 28, 28)
    stroke[..., 13:15] = 1
    out = changed(stroke, monkeypatch, 1, shear=0.5)[0, 0]
    at = (out * torch.arange(28)).sum(1) / out.sum(1)  # column of the stroke in each row
    slopes = at[5:23].diff()
    assert abs(slopes.mean()) == pytest.approx(0.5, abs=0.003)  # clipping bicubic overshoot moves single rows a little
    torch.testing.assert_close(slopes, slopes.mean().expand(17), rtol=0, atol=0.05)
    flat = torch.zeros(1, 1, 28, 28)
    flat[..., 13:15, :] = 1
    torch.testing.assert_close(changed(flat, monkeypatch, 1, shear=0.5)[..., 8:20], flat[..., 8:20])


def test_elastic_bends_by_its_standard_deviation():
    """Dots all over the sheet move independently enough, and by about 0.7 pixels."""
    moved = torch.cat(
        [
            centre(changed(dot(r, c).repeat(100, 1, 1, 1), elastic=0.7, seed=r)) - torch.tensor([r, c])
            for r, c in [(1, 1), (9, 9), (14, 14), (18, 5)]
        ]
    )
    assert 0.4 < moved.std() < 0.85
    assert moved.mean().abs() < 0.1


@pytest.mark.parametrize(("by", "low", "high"), [(0.5, 1.2, 4), (-0.5, 0.1, 0.9)])
def test_thickness_grows_or_shrinks_ink(ink, monkeypatch, by, low, high):
    out = changed(ink, monkeypatch, math.copysign(1, by), thickness=abs(by))
    ratio = out.sum((1, 2, 3)) / ink.sum((1, 2, 3))
    assert (ratio > low).all() and (ratio < high).all()


def test_change_thickness_by_hand():
    bar = torch.zeros(1, 1, 9, 9)
    bar[..., 3:6, 2:7] = 1
    grown, kept, thinned = (change_thickness(bar, torch.tensor([by])) for by in (0.25, 0.0, -0.25))
    assert torch.equal(kept, bar)
    expected = torch.full((5, 7), 0.25)
    expected[1:4, 1:6] = 1
    torch.testing.assert_close(grown[0, 0, 2:7, 1:8], expected)
    assert grown.sum() == expected.sum()
    expected = torch.full((3, 5), 0.75)
    expected[1, 1:4] = 1
    torch.testing.assert_close(thinned[0, 0, 3:6, 2:7], expected)
    assert thinned.sum() == expected.sum()


def test_thickness_is_each_images_own(ink):
    by = torch.linspace(-1, 1, len(ink))
    whole = change_thickness(ink, by)
    assert torch.equal(whole[7:8], change_thickness(ink[7:8], by[7:8]))


def is_whole_shift(image, original):
    """Whether an image is the original, moved by up to 2 whole pixels per axis and otherwise untouched."""
    padded = torch.nn.functional.pad(original, (2, 2, 2, 2))
    return any(
        (padded[:, :, row : row + 28, column : column + 28] - image).abs().max() < 1e-4
        for row in range(5)
        for column in range(5)
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_sharp_images_are_shifted_by_whole_pixels_alone(ink, share):
    amount = Augmentation(sharp=share)
    out = augment(ink[:1].repeat(400, 1, 1, 1), amount, torch.Generator().manual_seed(0))
    whole = [is_whole_shift(image[None], ink[:1]) for image in out]
    assert abs(sum(whole) / 400 - share) < (0.07 if 0 < share < 1 else 1e-9)
    if share == 1:
        assert len({tuple(image.round(decimals=3).flatten().tolist()) for image in out}) == 5 * 5


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({"sharp": 1.5}, "sharp is 1.5; it is a share from 0 to 1"),
        ({"shift": -1.0}, "shift is -1.0; it must not be negative"),
        ({"rotation": math.nan}, "rotation is nan; it must not be negative"),
        ({"elastic": math.inf}, "elastic is inf; it must not be negative"),
        ({"scale": 1.0}, "scale is 1.0; it must be below 1"),
        ({"thickness": 1.5}, "thickness is 1.5; it must be below 1"),
    ],
)
def test_impossible_amounts(amounts, message):
    Augmentation().check()
    with pytest.raises(ValueError) as error:
        Augmentation(**amounts).check()
    assert str(error.value) == message
