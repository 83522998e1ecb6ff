"""Distillation: each part of its loss against values worked out by hand, and what is measured of both."""

import math
from types import SimpleNamespace

import pytest
import torch

from capsnet.configuration import recipe
from capsnet.data import Images, to_float
from capsnet.distillation import NEAR, distillation_loss, evaluate_distillation, logit, pose_loss, soft_loss
from capsnet.functional import lengths
from capsnet.models import create_model


def test_logit():
    assert logit(torch.tensor([0.5, 0.8, 0.2])).tolist() == pytest.approx([0, math.log(4), -math.log(4)], abs=1e-6)
    end = math.log((1 - NEAR) / NEAR)
    assert logit(torch.tensor([0.0, 1.0])).tolist() == pytest.approx([-end, end], rel=1e-3)


def divergence(q, p):
    return q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))


def test_soft_loss_by_hand():
    said, taught = torch.tensor([[0.5, 0.9], [0.3, 0.3]]), torch.tensor([[0.8, 0.9], [0.3, 0.6]])
    at_one = (divergence(0.8, 0.5) + divergence(0.6, 0.3)) / 2
    assert soft_loss(said, taught, 1.0).item() == pytest.approx(at_one, rel=1e-5)

    def softened(p):  # σ(logit(p) / 2): odds become their root
        odds = math.sqrt(p / (1 - p))
        return odds / (1 + odds)

    at_two = 4 * (divergence(2 / 3, 0.5) + divergence(softened(0.6), softened(0.3))) / 2  # the odds of 0.8 are 4
    assert soft_loss(said, taught, 2.0).item() == pytest.approx(at_two, rel=1e-5)
    assert soft_loss(taught, taught, 2.0).item() == pytest.approx(0, abs=1e-6)


def test_gradients_are_finite_where_lengths_end():
    """At a pose of zero, at lengths of 0 and 1, and where the teacher is as sure."""
    poses = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.6, 0.0]]], requires_grad=True)
    soft_loss(lengths(poses), torch.tensor([[1.0, 0.0, 0.3]]), 1.5).backward()
    assert poses.grad.isfinite().all() and poses.grad[0, 2, 0] > 0  # too long
    assert poses.grad[0, :2].abs().max() == 0


def test_the_nearer_to_the_teacher_the_less():
    taught = torch.tensor([[0.9, 0.05]])
    away = [soft_loss(torch.tensor([[p, 0.05]]), taught, 2.0).item() for p in (0.0, 0.3, 0.8, 0.9, 0.99, 1.0)]
    assert away[0] > away[1] > away[2] > away[3] < away[4] < away[5]


def test_pose_loss_is_the_squared_distance_of_the_right_class():
    poses, taught = torch.zeros(2, 3, 2), torch.zeros(2, 3, 2)
    poses[0, 1], taught[0, 1] = torch.tensor([0.5, 0.1]), torch.tensor([0.2, 0.5])
    poses[1, 2], taught[1, 0] = torch.tensor([0.3, 0.0]), torch.tensor([9.0, 9.0])  # of another class
    assert pose_loss(poses, taught, torch.tensor([1, 2])).item() == pytest.approx((0.09 + 0.16 + 0.09) / 2)


def test_both_are_weighted():
    config = recipe("student", soft_weight=3.0, pose_weight=5.0, temperature=1.0)
    out = SimpleNamespace(lengths=torch.tensor([[0.5, 0.5]]), poses=torch.tensor([[[0.5], [0.5]]]))
    told = SimpleNamespace(lengths=torch.tensor([[0.8, 0.5]]), poses=torch.tensor([[[0.8], [0.5]]]))
    loss = distillation_loss(config, out, told, torch.tensor([0]))
    assert loss.item() == pytest.approx(3 * divergence(0.8, 0.5) + 5 * 0.09, rel=1e-5)


def test_both_read_the_same_images_through_one_decoder(small, digits):
    """On more images than a batch, against one image at a time."""
    torch.manual_seed(0)
    student, teacher = create_model("student", channels=[4, 4, 4, 8], decoder_hidden=[8, 8]), create_model("small")
    data = Images(digits.images[:7], digits.labels[:7])
    found = evaluate_distillation(student.eval(), teacher.eval(), data, batch_size=3)
    errors, far = [0, 0], [0.0, 0.0]
    answers = []
    for image, label in zip(to_float(data.images), data.labels, strict=True):
        outs = [model(image[None]) for model in (student, teacher)]
        answers.append([int(out.lengths.argmax()) for out in outs])
        for n, out in enumerate(outs):
            errors[n] += answers[-1][n] != int(label)
            far[n] += (teacher.decode(out.poses, label[None]) - image).square().sum().item() / 7
    assert (found.images, found.errors, found.teacher_errors) == (7, *errors)
    assert found.alike == sum(a == b for a, b in answers)
    assert (found.redrawn, found.teacher_redrawn) == pytest.approx(far, rel=1e-4)
    assert found.summary()["redrawn_ratio"] == pytest.approx(far[0] / far[1], rel=1e-4)
