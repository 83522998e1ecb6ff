"""Distillation: a student learns what a trained capsule network, its teacher, says of each image, beside the label.

What a student learns from the teacher's lengths follows Hinton, Vinyals, Dean 2015 (*Distilling the Knowledge in a
Neural Network*, https://arxiv.org/abs/1503.02531), who soften the softmax of logits. Lengths are no logits, and a
softmax over them is nearly flat; but each is the probability that its class is there, which has a logit of its own.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.checkpoint import ModelError, load_model
from capsnet.configuration import TrainingConfig
from capsnet.data import Images, to_float
from capsnet.models import CapsNet, CapsNetOutput
from capsnet.student import Student, StudentOutput

NEAR = 1e-4  # lengths count as at least so far from 0 and 1, where logits have no end


def logit(lengths: Tensor) -> Tensor:
    """log(p / (1 − p)) of lengths p in [0, 1]; nearer to an end than `NEAR` it stays, and its gradient is zero."""
    return torch.logit(lengths, eps=NEAR)


def soft_loss(lengths: Tensor, taught: Tensor, temperature: float) -> Tensor:
    """How far lengths are from the teacher's, both (B, K): a divergence for each class, summed over the classes.

    L = T² Σₖ KL(qₖ ‖ pₖ) with p = σ(logit(length) / T), q likewise of the teacher's, each the probability of a class
    that is there or not; averaged over the batch. T² keeps gradients at about the same size whatever the temperature.

    Returns:
        A scalar, 0 where all lengths are the teacher's.
    Source: Hinton, Vinyals, Dean 2015, section 2, with ten yes or no in the place of one softmax.
    """
    said, target = logit(lengths) / temperature, logit(taught) / temperature
    q = target.sigmoid()
    divergence = q * (F.logsigmoid(target) - F.logsigmoid(said))
    divergence = divergence + (1 - q) * (F.logsigmoid(-target) - F.logsigmoid(-said))
    return temperature**2 * divergence.sum(1).mean()


def pose_loss(poses: Tensor, taught: Tensor, labels: Tensor) -> Tensor:
    """Squared distance of the right class's pose from the teacher's: (B, K, P), (B, K, P), (B,) → a scalar.

    Summed over the numbers of the pose, averaged over the batch.
    """
    rows = torch.arange(len(labels), device=labels.device)
    return (poses[rows, labels] - taught[rows, labels]).square().sum(1).mean()


def distillation_loss(config: TrainingConfig, out: StudentOutput, told: CapsNetOutput, labels: Tensor) -> Tensor:
    """What a student's answers cost beside what the teacher told of the same images, by the configuration."""
    soft = soft_loss(out.lengths, told.lengths, config.temperature)
    return config.soft_weight * soft + config.pose_weight * pose_loss(out.poses, told.poses, labels)


def load_teacher(name: str | Path, device: torch.device | str = "cpu") -> CapsNet:
    """A trained capsule network that can teach: in evaluation mode, and nothing of it learns.

    Raises:
        ModelError: there is none of that name, or it has no poses whose lengths say how sure a class is.
    """
    teacher = load_model(name, device)
    if not isinstance(teacher, CapsNet) or teacher.info.kind != "digit" or teacher.matrices:
        raise ModelError(f"{name} cannot teach: name a capsule network of vectors that reads one digit an image.")
    return teacher


def pupil_of(name: str | Path) -> dict[str, Any]:
    """The settings of a `Student` that this teacher decides. Raises as `load_teacher`."""
    config = load_teacher(name).config
    return {"teacher": str(name), **{key: config[key] for key in ("pose_size", "decoder_hidden") if key in config}}


def engage(name: str | Path, student: Student, device: torch.device | str = "cpu") -> CapsNet:
    """The teacher of that name, for this student, which gets its decoder.

    Args:
        student: made with the settings of `pupil_of`.
    Raises:
        ModelError: as `load_teacher`, or it reads other images or tells other classes apart.
    """
    teacher = load_teacher(name, device)
    reads, own = (f"{one.in_channels}×{one.input_size}×{one.input_size}" for one in (teacher.info, student.info))
    if (reads, teacher.info.class_names) != (own, student.info.class_names):
        classes, others = (", ".join(one.class_names) for one in (teacher.info, student.info))
        raise ModelError(
            f"{name} reads images of {reads} as {classes}, and this student images of {own} as {others}; name a "
            "teacher that was trained on such images with --teacher."
        )
    student.decoder.load_state_dict(teacher.decoder.state_dict())
    return teacher


@dataclass
class Distilled:
    """A student beside its teacher, on `images` images.

    Attributes:
        errors, teacher_errors: how many of them each reads wrongly.
        alike: how many both answer alike, right or wrong.
        redrawn, teacher_redrawn: squared error of what the teacher's decoder draws from the right class's pose of each,
            summed over the pixels, averaged over the images.
    """

    images: int
    errors: int
    teacher_errors: int
    alike: int
    redrawn: float
    teacher_redrawn: float

    def summary(self) -> dict[str, Any]:
        return {**asdict(self), "redrawn_ratio": self.redrawn / self.teacher_redrawn}


@torch.inference_mode()
def evaluate_distillation(student: Student, teacher: CapsNet, test: Images, batch_size: int = 500) -> Distilled:
    """Both read the same images, and the teacher's decoder redraws them from the poses of both."""
    sums = torch.zeros(5, dtype=torch.float64)
    for start in range(0, len(test), batch_size):
        part = test[start : start + batch_size]
        images = to_float(part.images)
        outs = student(images), teacher(images)
        answers = [out.lengths.argmax(1) for out in outs]
        far = [(teacher.decode(out.poses, part.labels) - images).square().sum() for out in outs]
        wrong = [(answer != part.labels).sum() for answer in answers]
        sums += torch.stack([*wrong, (answers[0] == answers[1]).sum(), *far]).double().cpu()
    *counts, redrawn, teacher_redrawn = sums.tolist()
    errors, teacher_errors, alike = map(int, counts)
    return Distilled(len(test), errors, teacher_errors, alike, redrawn / len(test), teacher_redrawn / len(test))
