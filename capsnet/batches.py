"""What each step of an epoch trains on: an order of the images, pen digits drawn by code among them, pairs of both."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.affnist import scattered
from capsnet.configuration import TrainingConfig
from capsnet.data import Images, augment, to_float
from capsnet.distillation import pupil_of
from capsnet.models import CONFIGS, Network, create_model
from capsnet.pairs import fixed_pairs, lay, over, partners, sheet_side, shifts

PART_POSE = 16  # numbers of a part capsule
SINGLES = 0.1  # of the sheets for two digits have one, so that its capsule alone is long there


def network_for(config: TrainingConfig, data: Images) -> Network:
    """The untrained network that reads what this configuration makes of the images."""
    side = data.images.shape[-1] + 2 * config.pad
    side = sheet_side(side) if config.kind == "pair" else side
    changes: dict[str, Any] = {"projection": config.projection} if config.projection else {}
    if config.part_capsules:
        usual = CONFIGS[config.model]
        alike = {"routing": usual.get("routing", "dynamic"), "options": usual.get("routing_options")}
        changes["hidden"] = [{"capsules": config.part_capsules, "pose_size": PART_POSE, **alike}]
    if config.taught:
        changes |= pupil_of(config.teacher)
    shape = {"in_channels": data.images.shape[1], "input_size": side, "class_names": data.class_names}
    return create_model(config.model, **shape, **changes)


@dataclass
class Lesson:
    """What a step learns from: images (B, C, H, W) in [0, 1], labels (B,).

    Of pairs, labels (B, 2) and `pictures` (B, 2, C, H, W), each digit alone; where there is one, it is both of them.
    """

    images: Tensor
    labels: Tensor
    pictures: Tensor | None = None


def lesson(
    config: TrainingConfig, batch: Tensor, data: Images, pens: Images, generator: torch.Generator, part: slice
) -> Lesson:
    """The images of those numbers of `epoch_order`, changed at random.

    Args:
        generator: of random numbers, on the device of the images.
        part: which of them; they are what they would be in the whole batch.
    """

    def changed(images: Tensor) -> Tensor:
        sheets = F.pad(to_float(images[part]), [config.pad] * 4)
        return augment(sheets, config.augmentation, generator, part, len(batch))

    images, labels = pick(batch, data, pens)
    if config.kind != "pair":
        return Lesson(changed(images), labels[part])
    others = data[partners(labels, data, generator)]
    one, other = (lay(changed(its), shifts(len(batch), generator)[part]) for its in (images, others.images))
    alone = (torch.rand(len(batch), generator=generator, device=one.device) < SINGLES)[part]
    sheets = over(torch.stack([one, other * ~alone[:, None, None, None]], 1))
    pictures = torch.stack([one, torch.where(alone[:, None, None, None], one, other)], 1)
    labels = torch.stack([labels[part], torch.where(alone, labels[part], others.labels[part])], 1)
    return Lesson(sheets, labels, pictures)


def judged_by(config: TrainingConfig, data: Images) -> Images:
    """What a network of this configuration reads of those images when it does not learn: always the same."""
    if config.kind == "pair":
        return fixed_pairs(data)[0]
    return scattered(data, config.pad) if config.pad else data


def epoch_order(config: TrainingConfig, epoch: int, images: int, pens: int) -> Tensor:
    """A random order of all images and of a random choice of pen digits, which are numbered after the images."""
    generator = torch.Generator().manual_seed(config.seed * 100_003 + epoch)
    share = min(pens, round(images * config.pen_share / (1 - config.pen_share)))
    chosen = torch.cat([torch.arange(images), images + torch.randperm(pens, generator=generator)[:share]])
    return chosen[torch.randperm(len(chosen), generator=generator)]


def pick(indices: Tensor, data: Images, pens: Images) -> tuple[Tensor, Tensor]:
    """Images and labels of those numbers of `epoch_order`, on the CPU: so no step waits for a GPU to sort them."""
    parts = indices[indices < len(data)], indices[indices >= len(data)] - len(data)
    mnist, pen = (part.to(data.images.device, non_blocking=True) for part in parts)
    return (
        torch.cat([data.images[mnist], pens.images[pen]]),
        torch.cat([data.labels[mnist], pens.labels[pen]]),
    )


def pens_for(config: TrainingConfig, data: Images) -> Images:
    """The pen digits from which each epoch takes its share; none without one.

    Raises:
        ValueError: `data` are not 1×28×28, or no digits.
    """
    if not config.pen_share:
        return data[:0]
    if data.images.shape[1:] != (1, 28, 28):
        shape = "×".join(map(str, data.images.shape[1:]))
        raise ValueError(f"pen digits are images of 1×28×28, not {shape}; train with pen_share 0.")
    if data.class_names not in (None, list("0123456789")):
        raise ValueError(f"pen digits are digits, not {', '.join(data.class_names)}; train with pen_share 0.")
    from capsnet.pens import pen_digits

    images, labels = pen_digits(config.pen_pool, config.seed)
    return Images(torch.from_numpy(images)[:, None], torch.from_numpy(labels), data.class_names).to(data.images.device)
