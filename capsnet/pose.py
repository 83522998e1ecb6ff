"""What the numbers of a pose do to the digit that the decoder draws.

Poses have no names: training finds them. Here the decoder is asked what each does, in the terms of
`capsnet.morphometry`. Everything is said of one digit at a time, since each has a capsule of its own.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from capsnet.data import Images, to_float
from capsnet.models import CapsNet
from capsnet.morphometry import PROPERTIES, measure

# A number's name is the property that makes up so much of the sum of all squared changes, in typical differences …
ALONE = 0.6
TOGETHER = 0.7  # … or else the two that do so,
NOTICEABLE = 1  # each by at least so many typical differences


@dataclass(frozen=True)
class Effect:
    """What one number of a pose does between the ends of its range.

    Attributes:
        names: the one or two properties of `PROPERTIES` that make up most of what it does, the stronger first; none
            when it does several things, or little.
        changes: of each property of `PROPERTIES`, in its unit; negative when it falls as the number grows.
        strength: the largest of the changes, in typical differences.
    """

    names: tuple[str, ...]
    changes: dict[str, float]
    strength: float


def draw(model: CapsNet, digit: int, poses: Tensor) -> Tensor:
    """The decoder's pictures (N, C, H, W) of poses (N, P) of one digit."""
    all_poses = poses.new_zeros(len(poses), len(model.info.class_names), poses.shape[1])
    all_poses[:, digit] = poses
    with torch.inference_mode():
        return model.decode(all_poses, torch.full((len(poses),), digit))


def effects(model: CapsNet, digit: int, poses: Tensor) -> list[Effect]:
    """What each number of the digit's pose does, as a mean over real poses (N, P) of it.

    Each number moves from the low to the high end of `model.pose_range`, the others stay.
    """
    ends = []
    for end in model.pose_range[:, digit]:  # (P,)
        moved = poses[:, None] + torch.diag_embed(end - poses)  # (N, P, P): in row p, number p at its end
        ends.append(measure(draw(model, digit, moved.flatten(0, 1))).unflatten(0, moved.shape[:2]))
    change = (ends[1] - ends[0]).nanmean(0).nan_to_num()  # (P, Q)
    return [_effect(of_one) for of_one in change.tolist()]


def _effect(change: list[float]) -> Effect:
    changes = dict(zip(PROPERTIES, change, strict=True))
    power = {name: (by / PROPERTIES[name].typical) ** 2 for name, by in changes.items()}
    total = sum(power.values()) or 1
    first, second = sorted(power, key=power.__getitem__, reverse=True)[:2]
    strength = power[first] ** 0.5
    names: tuple[str, ...] = ()
    if strength >= NOTICEABLE and power[first] / total >= ALONE:
        names = (first,)
    elif power[second] >= NOTICEABLE**2 and (power[first] + power[second]) / total >= TOGETHER:
        names = (first, second)
    return Effect(names, changes, strength)


def effects_of_all(model: CapsNet, data: Images, each: int) -> dict[str, list[dict[str, Any]]]:
    """For every class by name, the effect of each number as a dict: what poses.json holds.

    Means over the first `each` images of the class in `data`.
    """
    found = {}
    for digit, name in enumerate(model.info.class_names):
        images = to_float(data.images[data.labels == digit][:each]).to(model.pose_range.device)
        with torch.inference_mode():
            poses = model(images).poses[:, digit]
        found[name] = [asdict(effect) for effect in effects(model, digit, poses)]
    return found
