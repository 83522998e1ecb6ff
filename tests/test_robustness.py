"""Curves, affine digits and calibration against slow or hand-made versions."""

import pytest
import torch

from capsnet.affnist import SHEET, affine_digits, centred
from capsnet.calibration import BINS, calibration
from capsnet.data import Images, to_float
from capsnet.distortions import DISTORTIONS, distort
from capsnet.evaluation import Result, evaluate_mnist, read
from capsnet.models import create_model
from capsnet.robustness import EVERY, evaluate_affine, evaluate_robustness


@pytest.fixture
def model(small):
    torch.manual_seed(0)
    return create_model("small").eval()


def test_a_point_of_a_curve_is_the_error_on_distorted_images(model, digits):
    curves = evaluate_robustness(model, digits)
    chosen = digits[::EVERY]
    assert {kind: list(curve) for kind, curve in curves.items()} == {
        kind: list(one.amounts) for kind, one in DISTORTIONS.items()
    }
    for kind, amount in (("rotation", 30), ("noise", 0.4), ("occlusion", 8)):
        answers = read(model, distort(to_float(chosen.images), kind, amount))[1]
        assert curves[kind][amount].errors == int((answers != chosen.labels).sum())
    for curve in curves.values():  # no amount: the figure of the images as they are
        assert curve[0] == evaluate_mnist(model, chosen) and curve[0].images == len(chosen)


def test_affine_digits_keep_all_ink_on_the_sheet_and_reach_its_edges(digits):
    many = digits.images.repeat(30, 1, 1, 1)
    sheets = affine_digits(many)
    assert sheets.shape == (1200, 1, SHEET, SHEET) and sheets.dtype == torch.uint8
    # Width and height each by 0.8 to 1.2, so the area by their product, 1 on average; shear and rotation keep it.
    share = sheets.double().sum((1, 2, 3)) / many.double().sum((1, 2, 3))
    assert 0.55 < share.min() < 0.75 and 1.3 < share.max() < 1.55 and share.mean().item() == pytest.approx(1, abs=0.02)
    inked = (sheets > 0).any(0)[0]
    assert inked[0].any() and inked[-1].any() and inked[:, 0].any() and inked[:, -1].any()
    assert torch.equal(sheets, affine_digits(many)) and not torch.equal(sheets, affine_digits(many, seed=1))


def test_places_of_affine_digits_are_uniform():
    dot = torch.zeros(4000, 1, 28, 28, dtype=torch.uint8)
    dot[..., 12:16, 12:16] = 255
    sheets = affine_digits(dot) > 0
    top = sheets.any(3).byte().argmax(2).flatten().double()
    left = sheets.any(2).byte().argmax(2).flatten().double()
    for first in (top, left):
        assert first.min() == 0 and first.max() >= 34
        assert first.mean().item() == pytest.approx(17, abs=0.8)  # 40 less some 6 pixels of ink


def test_centred_puts_the_centre_of_mass_in_the_middle(digits):
    sheets = affine_digits(digits.images)
    for image in centred(sheets, 28)[:, 0].double():
        for axis in (0, 1):
            mass = image.sum(1 - axis)
            assert (mass @ torch.arange(28.0).double() / mass.sum()).item() == pytest.approx(13.5, abs=0.6)


def test_centred_cuts_and_does_not_wrap_around():
    sheet = torch.zeros(1, 1, 40, 40, dtype=torch.uint8)
    sheet[..., 0, 0], sheet[..., 1, 30] = 250, 5
    cut = centred(sheet, 28)  # the middle of mass is at row 0.02, column 0.59: 19 and 19 pixels on
    assert cut[0, 0, 13, 13] == 250 and cut.double().sum() == 250


def test_affine_digits_for_a_network_of_their_size_stay_where_they_are(small, digits):
    torch.manual_seed(0)
    model = create_model("small", input_size=SHEET).eval()
    sheets = Images(affine_digits(digits.images), digits.labels)
    assert evaluate_affine(model, digits) == evaluate_mnist(model, sheets)


def test_calibration_by_hand():
    lengths = torch.tensor([0.95, 0.91, 0.99, 0.55, 1.0, 0.0])
    right = torch.tensor([True, True, False, False, True, False])
    found = calibration(lengths, right)
    assert found.images == [1, 0, 0, 0, 0, 1, 0, 0, 0, 4] and len(found.images) == BINS
    assert found.right == [0] * 9 + [3] and found.lengths[9] == pytest.approx(0.9625)
    # |3 − 3.85| of the last bin, 0.55 of one image, nothing of the first
    assert found.expected_error == pytest.approx((0.85 + 0.55) / 6)
    assert found.overconfidence == pytest.approx((lengths.double().sum().item() - 3) / 6)
    nothing = calibration(torch.zeros(0), torch.zeros(0, dtype=torch.bool))
    assert nothing.expected_error == 0 == nothing.overconfidence


@pytest.mark.parametrize("images, errors, expected", [(2000, 20, (0.00648, 0.01539)), (10, 0, (0, 0.27754))])
def test_interval_of_an_error(images, errors, expected):
    assert Result(images, errors, []).interval == pytest.approx(expected, abs=2e-5)  # Wilson 1927
