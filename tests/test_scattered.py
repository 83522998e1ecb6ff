"""Digits moved over a larger sheet, as the paper trains for affNIST: the setting `pad`."""

import sys

import pytest
import torch
from scripts import load_script
from test_training import configuration

from capsnet.affnist import affine_digits, scattered
from capsnet.batches import judged_by, lesson, network_for
from capsnet.checkpoint import load_model, read_json
from capsnet.configuration import TrainingConfig, command, recipe
from capsnet.data import Augmentation, to_float
from capsnet.training import train

STILL = Augmentation(shift=6.0, rotation=0.0, scale=0.0, shear=0.0, elastic=0.0, thickness=0.0, sharp=1.0)


def place(sheet, image):
    """By how many pixels down and right the image lies from the middle of its sheet; fails where it is nowhere."""
    pad = (sheet.shape[-1] - image.shape[-1]) // 2
    for down in range(-pad, pad + 1):
        for right in range(-pad, pad + 1):
            whole = torch.zeros_like(sheet)
            whole[:, pad + down : sheet.shape[-1] - pad + down, pad + right : sheet.shape[-1] - pad + right] = image
            if torch.allclose(whole, sheet, atol=1e-5):
                return down, right
    raise AssertionError("the digit lies nowhere, or was changed")


def test_a_sheet_asks_for_shifts_alone_unless_more_is_said():
    config = recipe("uniform-capsnet", pad=6)
    assert config.augmentation == STILL and config.pen_share == 0 and config.epochs == recipe("uniform-capsnet").epochs
    assert recipe("uniform-capsnet", pad=6, rotation=5.0, pen_share=0.1).augmentation.rotation == 5
    assert command(config) == "python train/train_mnist.py --model uniform-capsnet --pad 6"
    assert command(recipe("capsnet")) == "python train/train_mnist.py --model capsnet"


def test_a_lesson_moves_whole_digits_by_whole_pixels_and_changes_nothing_else(small, digits):
    config = recipe("small", pad=6)
    its = lesson(config, torch.arange(40), digits, digits[:0], torch.Generator().manual_seed(0), slice(None))
    assert its.images.shape == (40, 1, 40, 40) and torch.equal(its.labels, digits.labels)
    places = [place(*both) for both in zip(its.images, to_float(digits.images), strict=True)]
    for axis in zip(*places, strict=True):
        assert min(axis) < -4 and max(axis) > 4 and len(set(axis)) > 8


def test_what_judges_is_moved_once_and_for_all(small, digits):
    config = recipe("small", pad=6)
    sheets = judged_by(config, digits)
    assert torch.equal(sheets.images, scattered(digits, 6).images) and torch.equal(sheets.labels, digits.labels)
    places = [place(*both) for both in zip(sheets.images.float(), digits.images.float(), strict=True)]
    assert len(set(places)) > 30 and max(map(max, places)) <= 6 and min(map(min, places)) >= -6
    assert not torch.equal(scattered(digits, 6, seed=1).images, sheets.images)
    assert judged_by(configuration(), digits) is digits


def test_networks_for_the_sheet(digits):
    """Efficient-CapsNet's 16 capsules see the whole sheet, with as many numbers as the twin; others get more."""
    efficient, twin, affine = (
        network_for(recipe(name, pad=6), digits) for name in ("efficient-capsnet", "cnn", "affine-capsnet")
    )
    assert all(model.info.input_size == 40 for model in (efficient, twin, affine))
    with torch.no_grad():
        sizes = [model.eval().encode(torch.zeros(1, 1, 40, 40)).poses.shape[1:] for model in (efficient, affine)]
    assert sizes == [(16, 8), (12 * 8 * 8, 8)]
    numbers = sum(p.numel() for name, p in efficient.named_parameters() if not name.startswith("decoder"))
    assert numbers == 161_824 + 128 * (15**2 - 9**2)
    assert abs(sum(p.numel() for p in twin.parameters()) / numbers - 1) < 0.001


@pytest.mark.parametrize("settings", [{"model": "multi-capsnet", "pad": 6}, {"pad": -1}, {"pad": 101}])
def test_no_other_sheet(settings):
    with pytest.raises(ValueError, match="pad is"):
        TrainingConfig(**settings).check()


def test_trained_on_sheets_and_measured_on_affine_digits(small, digits, tmp_path, monkeypatch, capsys):
    config = recipe("small", pad=6, epochs=1, batch_size=16)
    out = tmp_path / "out"
    train(config, digits, digits, out, log=lambda line: None)
    model = load_model(out)
    assert model.info.input_size == 40 and read_json(out / "training.json")["pad"] == 6
    monkeypatch.setattr("capsnet.sources.load_mnist", lambda *arguments, **options: digits)

    def evaluate(suite):
        monkeypatch.setattr(sys, "argv", ["evaluate.py", "--model", str(out), "--suite", suite])
        return load_script("evaluate").main()

    assert evaluate("all") == 0
    metrics, card = read_json(out / "metrics.json"), (out / "README.md").read_text(encoding="utf-8")
    with torch.no_grad():
        for name, sheets in (("test", scattered(digits, 6).images), ("affine", affine_digits(digits.images))):
            answers = model(to_float(sheets)).lengths.argmax(1)
            assert metrics[name]["errors"] == int((answers != digits.labels).sum())
    assert {"rejection", "drawn", "robustness"} & metrics.keys() == set()
    assert "anywhere on their sheet" in card and "moved over sheets with 6 pixels more on every side" in card
    assert evaluate("drawn") == 1 and "choose all or mnist, affine" in capsys.readouterr().err
