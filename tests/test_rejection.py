"""Strangeness by hand, and the threshold that goes with the weights."""

import pytest
import torch

from capsnet.checkpoint import ModelError, load_model, read_json, save_model, write_json
from capsnet.data import Images, to_float
from capsnet.models import create_model
from capsnet.rejection import DOUBT, judge, measure_threshold, strangeness, unlikeness


def dot(row, column):
    picture = torch.zeros(1, 1, 28, 28)
    picture[..., row, column] = 1.0
    return picture


@pytest.mark.parametrize(
    "other, expected",
    [
        (dot(10, 10), 0),
        (0.3 * dot(10, 10), 0),  # how black the ink is does not matter
        (dot(10, 11), 1 / 3),  # blurred, six of nine pixels are common to both
        (dot(11, 11), 5 / 9),
        (dot(10, 13), 1),
        (torch.zeros(1, 1, 28, 28), 1),
    ],
)
def test_unlikeness_by_hand(other, expected):
    assert unlikeness(dot(10, 10), other).item() == pytest.approx(expected, abs=1e-6)


def test_strangeness_by_hand():
    lengths = torch.tensor([[0.1, 0.9, 0.2], [0.8, 0.3, 0.8]])
    images, pictures = torch.cat([dot(5, 5), dot(5, 5)]), torch.cat([dot(5, 5), dot(5, 6)])
    expected = [DOUBT * (1 - 0.9 + 0.2), 1 / 3 + DOUBT * 1]
    assert strangeness(images, pictures, lengths).tolist() == pytest.approx(expected)


def test_an_image_is_judged_alike_alone_and_among_others(small, digits):
    model, images = create_model("small").eval(), to_float(digits.images)
    together, cut, alone = judge(model, images), judge(model, images, batch_size=7), judge(model, images[:1])
    out = model(images)
    answers = out.lengths.argmax(1)
    assert torch.equal(together.answers, answers)
    assert torch.allclose(together.longest, out.lengths.amax(1), atol=1e-5)
    expected = strangeness(images, model.decode(out.poses, answers), out.lengths)
    assert torch.allclose(together.strangeness, expected, atol=1e-5)
    assert torch.allclose(cut.strangeness, expected, atol=1e-5)
    assert torch.allclose(alone.strangeness, expected[:1], atol=1e-5)


def test_one_in_a_hundred_validation_digits_is_above_the_threshold(small, digits):
    model = create_model("small").eval()
    assert model.rejection_threshold is None
    many = Images(digits.images.repeat(5, 1, 1, 1), digits.labels.repeat(5))
    many.images[:] = (many.images * torch.linspace(0.5, 1, 200)[:, None, None, None]).byte()  # no two alike
    measure_threshold(model, many)
    strange = judge(model, to_float(many.images)).strangeness > model.rejection_threshold
    assert strange.sum() == 2


def test_the_threshold_is_kept_with_the_weights(small, tmp_path):
    model = create_model("small")
    model.rejection_threshold = 0.25
    save_model(model, tmp_path)
    assert load_model(tmp_path).rejection_threshold == 0.25
    for wrong in (-1, 0, float("nan"), float("inf"), "high", [1]):
        write_json(tmp_path / "config.json", {**read_json(tmp_path / "config.json"), "rejection_threshold": wrong})
        with pytest.raises(ModelError, match="config.json does not describe a model"):
            load_model(tmp_path)
