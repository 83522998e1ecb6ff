"""Each distortion against what it does by hand."""

import pytest
import torch

from capsnet.data import to_float
from capsnet.distortions import DISTORTIONS, distort


@pytest.fixture(scope="module")
def blob():
    """One smooth spot above the middle and right of it: (1, 1, 28, 28)."""
    down, right = torch.meshgrid(torch.arange(28.0), torch.arange(28.0), indexing="ij")
    return torch.exp(-((down - 8.5) ** 2 + (right - 16.5) ** 2) / 8)[None, None]


def middle(image):
    """(right of, below) the middle of the sheet, in pixels."""
    places = torch.arange(28.0) - 13.5
    mass = image.sum()
    return (image.sum((0, 1, 2)) @ places / mass).item(), (image.sum((0, 1, 3)) @ places / mass).item()


@pytest.mark.parametrize("kind", DISTORTIONS)
def test_no_amount_changes_nothing_and_every_amount_stays_in_range(kind, digits):
    images = to_float(digits.images)
    amounts = DISTORTIONS[kind].amounts
    assert 0 in amounts and list(amounts) == sorted(amounts) and len(amounts) == 9
    assert distort(images, kind, 0) is images
    for amount in amounts:
        changed = distort(images, kind, amount)
        assert changed.shape == images.shape and changed.min() >= 0 and changed.max() <= 1
        assert torch.equal(changed, distort(images, kind, amount))
        assert amount == 0 or not torch.equal(changed, images)


def test_rotation_is_clockwise(blob):
    assert torch.allclose(distort(blob, "rotation", 90), blob.rot90(-1, (2, 3)), atol=1e-4)
    right, down = middle(distort(blob, "rotation", 30))
    cos, sin = 3**0.5 / 2, 0.5
    assert (right, down) == pytest.approx((cos * 3 - sin * -5, sin * 3 + cos * -5), abs=0.05)


def test_shift_is_to_the_right(blob):
    moved = distort(blob, "shift", 3)
    assert torch.allclose(moved[..., 3:], blob[..., :-3], atol=1e-4)
    assert moved[..., :3].max() < 1e-3
    assert middle(distort(blob, "shift", -2.5))[0] == pytest.approx(0.5, abs=0.05)


def test_scale_is_about_the_middle(blob):
    assert middle(distort(blob, "scale", 40)) == pytest.approx((3 * 1.4, -5 * 1.4), abs=0.15)
    small = distort(blob, "scale", -50)
    assert middle(small) == pytest.approx((1.5, -2.5), abs=0.1)
    assert small.sum().item() == pytest.approx(blob.sum().item() / 4, rel=0.05)


def test_shear_leans_to_the_right(blob):
    assert middle(distort(blob, "shear", 0.4)) == pytest.approx((3 + 0.4 * 5, -5), abs=0.1)


def test_thickness_by_whole_and_half_pixels():
    line = torch.zeros(1, 1, 28, 28)
    line[..., 10:13, :] = 1
    profile = {amount: distort(line, "thickness", amount)[0, 0, :, 14].tolist() for amount in (-1, 0.5, 1, 2)}
    assert profile[-1] == [float(row == 11) for row in range(28)]
    assert profile[1] == [float(9 <= row < 14) for row in range(28)]
    assert profile[2] == [float(8 <= row < 15) for row in range(28)]
    assert profile[0.5] == [1.0 if 10 <= row < 13 else 0.5 if row in (9, 13) else 0.0 for row in range(28)]


def test_occlusion_hides_a_square_that_grows_where_it_is():
    paper = torch.ones(50, 1, 28, 28)
    smaller, larger = distort(paper, "occlusion", 6) == 0, distort(paper, "occlusion", 10) == 0
    assert (smaller.sum((1, 2, 3)) == 36).all() and (larger.sum((1, 2, 3)) == 100).all()
    assert (larger | ~smaller).all()
    assert len(smaller.flatten(1).unique(dim=0)) > 25  # not all in one place


def test_noise_has_its_deviation_and_grows_where_it_is():
    grey = torch.full((20, 1, 28, 28), 0.5)
    less, more = distort(grey, "noise", 0.05) - 0.5, distort(grey, "noise", 0.1) - 0.5
    assert less.std().item() == pytest.approx(0.05, rel=0.03)
    assert torch.allclose(more, 2 * less, atol=1e-5)
    assert not torch.equal(distort(grey, "noise", 0.1, seed=1), distort(grey, "noise", 0.1))
