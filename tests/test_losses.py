import math

import pytest
import torch

from capsnet.losses import (
    AUTHORS_RECONSTRUCTION_WEIGHT,
    PAPER_RECONSTRUCTION_WEIGHT,
    margin_loss,
    reconstruction_loss,
    spread_loss,
    spread_margin,
)

LENGTHS = torch.tensor([[0.95, 0.1, 0.3], [0.4, 0.6, 0.0]], dtype=torch.float64)
LABELS = torch.tensor([0, 1])


def test_margin_loss_by_hand():
    # First: 0 + 0 + 0.5 · 0.2²; second: 0.5 · 0.3² + 0.3² + 0.
    assert margin_loss(LENGTHS, LABELS).item() == pytest.approx((0.02 + 0.135) / 2)


def test_margins_and_weight_can_be_chosen():
    # First: 0.05² + 0.25 (0.1² + 0.3²); second: 0.25 · 0.4² + 0.4².
    loss = margin_loss(LENGTHS, LABELS, m_plus=1, m_minus=0, down_weight=0.25)
    assert loss.item() == pytest.approx((0.0275 + 0.2) / 2)


def test_the_margin_is_squared_and_a_right_answer_costs_nothing():
    assert margin_loss(torch.tensor([[0.9, 0.1, 0.0]]), torch.tensor([0])).item() == 0
    near, far = (margin_loss(torch.tensor([[0.9 - d, 0.0]]), torch.tensor([0])).item() for d in (0.1, 0.2))
    assert far / near == pytest.approx(4, rel=1e-5)


def test_labels_as_indices_or_as_ones_for_what_is_present():
    one_hot = torch.tensor([[1, 0, 0], [0, 1, 0]])
    assert margin_loss(LENGTHS, one_hot) == margin_loss(LENGTHS, LABELS)
    # Two digits in one image: 0.05 is none missing, 0.9 - 0.1 and 0.9 - 0.3 are.
    both = torch.tensor([[0.0, 1.0, 1.0]], dtype=torch.float64)
    assert margin_loss(LENGTHS[:1], both).item() == pytest.approx(0.5 * 0.85**2 + 0.8**2 + 0.6**2)


def test_as_many_images_as_classes():
    lengths = torch.eye(3) * 0.9
    assert margin_loss(lengths, torch.tensor([0, 1, 2])).item() == 0
    assert margin_loss(lengths, torch.eye(3)).item() == 0


@pytest.mark.parametrize("shape", [(3,), (2, 2), (3, 2), (2, 3, 1), ()])
def test_labels_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"^labels have shape .*; pass \(B,\) class indices or \(2, 3\) of 0 and 1\.$"):
        margin_loss(LENGTHS, torch.zeros(shape, dtype=torch.long))


def test_margin_loss_gradients():
    lengths = torch.tensor([[0.95, 0.05, 0.3], [0.4, 0.6, 0.02]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: margin_loss(x, LABELS), lengths)


def test_reconstruction_is_a_sum_over_pixels_and_a_mean_over_the_batch():
    picture = torch.tensor([[[[1.0, 2.0]], [[0.0, 0.0]]], [[[0.0, 3.0]], [[1.0, 0.0]]]])  # (2, 2, 1, 2)
    # 1 + 4 and 9 + 1.
    assert reconstruction_loss(picture, torch.zeros_like(picture)).item() == 7.5


def test_reconstruction_weights_in_both_scales():
    picture, image = torch.rand(4, 1, 28, 28), torch.rand(4, 1, 28, 28)
    mean = (picture - image).square().mean()
    torch.testing.assert_close(PAPER_RECONSTRUCTION_WEIGHT * reconstruction_loss(picture, image), 0.392 * mean)
    torch.testing.assert_close(AUTHORS_RECONSTRUCTION_WEIGHT * reconstruction_loss(picture, image), 7.84 * mean)


def test_pictures_of_different_shapes_are_not_broadcast():
    with pytest.raises(ValueError, match=r"^picture .* and image .* must have the same shape\.$"):
        reconstruction_loss(torch.zeros(2, 1, 4, 4), torch.zeros(2, 3, 4, 4))


def test_reconstruction_gradients():
    picture = torch.rand(2, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    image = torch.rand(2, 1, 3, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: reconstruction_loss(x, image), picture)


ACTIVATIONS = torch.tensor([[0.9, 0.2, 0.6], [0.3, 0.5, 0.9]], dtype=torch.float64)


def test_spread_loss_by_hand():
    # First: leads 0.7 and 0.3 of 0.5 wanted; second: leads 0.2 and -0.4.
    assert spread_loss(ACTIVATIONS, LABELS, 0.5).item() == pytest.approx((0.2**2 + 0.3**2 + 0.9**2) / 2)


def test_spread_loss_counts_wrong_classes_only():
    """The right class leads itself by nothing, which would cost m² each."""
    assert spread_loss(torch.tensor([[1.0, 0.0, 0.1]]), torch.tensor([0]), 0.9).item() == 0
    undecided = torch.full((1, 10), 0.4)
    assert spread_loss(undecided, torch.tensor([3]), 0.2).item() == pytest.approx(9 * 0.2**2)


def test_spread_loss_takes_as_many_images_as_classes():
    assert spread_loss(torch.eye(3), torch.tensor([0, 1, 2]), 0.9).item() == 0


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1), ()])
def test_spread_loss_of_labels_of_another_shape(shape):
    with pytest.raises(ValueError, match=r"^labels have shape .*; pass \(2,\) class indices\.$"):
        spread_loss(ACTIVATIONS, torch.zeros(shape, dtype=torch.long), 0.5)


def test_spread_loss_gradients():
    activations = ACTIVATIONS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: spread_loss(x, LABELS, 0.55), activations)


def test_margin_of_the_spread_loss_follows_its_schedule():
    for step, x in ((0, -4), (50_000, -3), (200_000, 0), (400_000, 4), (700_000, 10), (5_000_000, 10)):
        assert spread_margin(step) == pytest.approx(0.2 + 0.79 / (1 + math.exp(-x)))
    assert spread_margin(0) == pytest.approx(0.2142, abs=1e-4) and spread_margin(200_000) == pytest.approx(0.595)
    assert spread_margin(10**9) == pytest.approx(0.98996, abs=1e-5)


def test_a_shorter_training_runs_through_the_same_margins():
    for part in range(9):
        assert spread_margin(125 * part, unit=125) == pytest.approx(spread_margin(50_000 * part))
    assert spread_margin(8 * 125, unit=125) == pytest.approx(0.976, abs=1e-3)
