"""What the numbers of a pose do to the digit that the decoder draws, and how to move one property of it alone.

Poses have no names: training finds them. Here the decoder is asked what each does, in the terms of
`capsnet.morphometry`. Everything is said of one digit at a time, since each has a capsule of its own.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from capsnet.data import Images, to_float
from capsnet.morphometry import MEANINGFUL, PROPERTIES, measure
from capsnet.redrawer import Redrawer

# A number's name is the property that makes up so much of the sum of all squared changes, in typical differences …
ALONE = 0.6
TOGETHER = 0.7  # … or else the two that do so,
NOTICEABLE = 1  # each by at least so many typical differences

CONTROLLED = (*MEANINGFUL, "across", "down")  # a direction moves one of them, and the others stay, place included
FITTED = 360  # poses of a digit, a sixth of which judge what is fitted on the others
VARIED = 0.5  # typical differences, standard deviation: a property that varies less among them has no direction,
GAIN = 0.5, 1.5  # nor has one of which less or more than so many times what was asked for happens,
LEAK = 0.5  # or with which another property moves by more


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


def draw(model: Redrawer, digit: int, poses: Tensor) -> Tensor:
    """The decoder's pictures (N, C, H, W) of poses (N, P) of one digit."""
    all_poses = poses.new_zeros(len(poses), len(model.info.class_names), poses.shape[1])
    all_poses[:, digit] = poses
    with torch.inference_mode():
        return model.decode(all_poses, torch.full((len(poses),), digit))


def blend(model: Redrawer, digit_a: int, pose_a: Tensor, digit_b: int, pose_b: Tensor, steps: int) -> Tensor:
    """The decoder's pictures (steps, C, H, W) on the straight way from one pose (P,) to another, both ends included.

    Each pose is where the decoder expects that digit's. One digit bends from A to B; of two, the pose of A shrinks to
    nothing while that of B grows, a mix that the decoder has not seen in training.
    """
    ends = pose_a.new_zeros(2, len(model.info.class_names), len(pose_a))
    ends[0, digit_a], ends[1, digit_b] = pose_a, pose_b
    share = torch.linspace(0, 1, steps).to(ends)[:, None, None]
    with torch.inference_mode():
        return model.decoder.mix((1 - share) * ends[0] + share * ends[1])


def effects(model: Redrawer, digit: int, poses: Tensor) -> list[Effect]:
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


@dataclass(frozen=True)
class Direction:
    """How to move one property of a digit through its pose, taken for linear in it.

    Attributes:
        change: P numbers; added to a pose they raise the property by one unit, and leave the others of `CONTROLLED`.
        slope, offset: the property is offset + slope · pose.
        low, high: 1 % and 99 % quantile of that over the poses it was fitted on.
        gain: what is measured where one unit is asked for.
        leak: how far another of `CONTROLLED` moves at most, in typical differences, where one such is asked for.
    """

    change: list[float]
    slope: list[float]
    offset: float
    low: float
    high: float
    gain: float
    leak: float


def directions(model: Redrawer, digit: int, poses: Tensor) -> dict[str, Direction]:
    """A direction for each property of `MEANINGFUL` that the digit's pose moves, from real poses (N, P) of it.

    Of the many changes that would move a property alone, it is the one most like the poses' own variation (least
    Mahalanobis length), so that what is drawn stays a digit. With fewer than four drawn poses for each number there is
    none.
    """
    held = len(poses) // 6
    judge, fit = poses[:held], poses[held:]
    measured = _controlled(draw(model, digit, fit)).double() / _typical()
    whole = ~measured.isnan().any(1)
    measured, fit = measured[whole], fit[whole].double().cpu()
    if len(fit) < 4 * poses.shape[1]:
        return {}
    varied = measured.std(0) >= VARIED
    if not varied.any():
        return {}
    names = [name for name, its in zip(CONTROLLED, varied.tolist(), strict=True) if its]
    measured, typical = measured[:, varied], _typical()[varied]

    middle = fit.mean(0)
    centred = fit - middle
    covariance = centred.T @ centred / len(fit)  # (P, P)
    covariance += (1e-4 * covariance.diagonal().mean() + 1e-12) * torch.eye(len(covariance), dtype=torch.float64)
    slope = torch.linalg.solve(covariance, centred.T @ (measured - measured.mean(0)) / len(fit))  # (P, Q)
    along = covariance @ slope  # (P, Q)
    change = torch.linalg.solve(slope.T @ along, along.T).T  # (P, Q): slopeᵀ change = I
    change, slope = change / typical, slope * typical  # from typical differences to units
    offset = measured.mean(0) * typical - middle @ slope  # (Q,)
    low, high = (offset + fit @ slope).quantile(torch.tensor([0.01, 0.99], dtype=torch.float64), dim=0)
    found = {}
    for q, name in enumerate(names):
        if name not in MEANINGFUL:
            continue
        gain, leak = _gain_and_leak(model, digit, judge, name, change[:, q].to(poses))
        if GAIN[0] <= gain <= GAIN[1] and leak <= LEAK:
            numbers = change[:, q].tolist(), slope[:, q].tolist()
            found[name] = Direction(*numbers, offset[q].item(), low[q].item(), high[q].item(), gain, leak)
    return found


def transplant(
    model: Redrawer, digit_a: int, pose_a: Tensor, digit_b: int, pose_b: Tensor
) -> tuple[Tensor, tuple[str, ...]]:
    """Pose B (P,) in the style of pose A (P,), and the properties that were taken over.

    What style is, is a choice of ours: as much as in A of every property that both digits have a direction for, but
    not beyond `low` and `high` of B's digit, unless B is there itself. The other properties of `CONTROLLED` stay as in
    B: in the linear model moving several at once is exact. Where there is nothing to take over, B stays as it is.
    """
    found = model.pose_directions or {}
    of_a, of_b = (found.get(model.info.class_names[digit], {}) for digit in (digit_a, digit_b))
    shared = tuple(name for name in MEANINGFUL if name in of_a and name in of_b)
    moved = pose_b.clone()
    for name in shared:
        wanted, own = amount(of_a[name], pose_a), amount(of_b[name], pose_b)
        within = max(min(of_b[name]["low"], own), min(wanted, max(of_b[name]["high"], own)))
        moved += (within - own) * pose_b.new_tensor(of_b[name]["change"])
    return moved, shared


def amount(direction: dict[str, Any], pose: Tensor) -> float:
    """How much of its property there is in a pose (P,), in the property's unit; a `Direction` as a dict."""
    return direction["offset"] + (pose @ pose.new_tensor(direction["slope"])).item()


def _controlled(pictures: Tensor) -> Tensor:
    """(N, C, H, W) → (N, Q), the properties of `CONTROLLED`."""
    order = list(PROPERTIES)
    return measure(pictures)[:, [order.index(name) for name in CONTROLLED]]


def _typical() -> Tensor:
    """(Q,): typical differences of the same."""
    return torch.tensor([PROPERTIES[name].typical for name in CONTROLLED], dtype=torch.float64)


def _gain_and_leak(model: Redrawer, digit: int, poses: Tensor, name: str, change: Tensor) -> tuple[float, float]:
    """What one typical difference that is asked for does, in typical differences, as a mean over poses (N, P)."""
    step = PROPERTIES[name].typical * change
    ends = [_controlled(draw(model, digit, poses + side * step)) for side in (-0.5, 0.5)]
    moved = ((ends[1] - ends[0]) / _typical()).nanmean(0).nan_to_num()  # (Q,)
    own = CONTROLLED.index(name)
    others = torch.cat([moved[:own], moved[own + 1 :]])
    return moved[own].item(), others.abs().max().item()


def measure_poses(model: Redrawer, data: Images, each: int) -> dict[str, dict[str, Any]]:
    """What poses.json holds: "effects" and "directions", as dicts, of every class by name.

    Args:
        each: over how many images of a class, its first in `data`, effects are means.
    """
    found: dict[str, dict[str, Any]] = {"effects": {}, "directions": {}}
    for digit, name in enumerate(model.info.class_names):
        images = to_float(data.images[data.labels == digit][: max(each, FITTED)]).to(model.pose_range.device)
        with torch.inference_mode():
            poses = model(images).poses[:, digit]
        found["effects"][name] = [asdict(effect) for effect in effects(model, digit, poses[:each])]
        found["directions"][name] = {p: asdict(d) for p, d in directions(model, digit, poses[:FITTED]).items()}
    return found
