"""How well a network tells digits from what is none: letters, symbols, scribbles, noise."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capsnet.data import Images, to_float
from capsnet.evaluation import drawn_sets, prepare_all
from capsnet.models import Network
from capsnet.pens import smooth_curve
from capsnet.rejection import FALSE_ALARMS, Judgement, judge
from capsnet.strokes import rasterize

MADE = 2_000  # images of each kind of nonsense


@dataclass
class Outsiders:
    """How a set that holds no digits is told from validation digits.

    Attributes:
        images: how many there are.
        rejected: how many of them are stranger than the model's threshold.
        auroc: of the strangeness; `by_picture` and `by_length` of the unlikeness alone and of the longest length alone.
    """

    images: int
    rejected: int
    auroc: float
    by_picture: float
    by_length: float


@dataclass
class FalseAlarms:
    """Of `images` digits that are read correctly, `rejected` are stranger than the model's threshold."""

    images: int
    rejected: int


@dataclass
class Rejection:
    """The model's threshold, false alarms by set of drawn digits, and what is told from digits, by set."""

    threshold: float
    digits: dict[str, FalseAlarms]
    outsiders: dict[str, Outsiders]

    def summary(self) -> dict[str, Any]:
        return {"false_alarms": FALSE_ALARMS, **asdict(self)}


def evaluate_rejection(model: Network, validation: Images, folder: Path) -> Rejection:
    """Judge the drawn sets in `folder`, as in `capsnet.evaluation`, and nonsense made of the validation images.

    Raises:
        DataError: no sets there.
        ValueError: the model has no rejection threshold.
    """
    threshold = model.rejection_threshold
    if threshold is None:
        raise ValueError(f"{model.info.name} does not say how strange an image is that is no digit.")
    known = judge(model, to_float(validation.images))
    digits, outsiders = {}, {}
    for name, drawings, labels in drawn_sets(folder, model.info.class_names):
        prepared = prepare_all(drawings, model.info.input_size)
        found = judge(model, torch.stack(list(prepared.values())))
        if labels is None:
            outsiders[name] = _outsiders(threshold, known, found)
        else:
            right = torch.tensor([model.info.class_names.index(labels[n]) for n in prepared]) == found.answers
            strange = found.strangeness[right] > threshold
            digits[name] = FalseAlarms(len(strange), int(strange.sum()))
    for name, images in nonsense(to_float(validation.images[:MADE])):
        outsiders[name] = _outsiders(threshold, known, judge(model, images))
    return Rejection(threshold, digits, outsiders)


def _outsiders(threshold: float, digits: Judgement, others: Judgement) -> Outsiders:
    return Outsiders(
        images=len(others.answers),
        rejected=int((others.strangeness > threshold).sum()),
        auroc=auroc(digits.strangeness, others.strangeness),
        by_picture=auroc(digits.unlikeness, others.unlikeness),
        by_length=auroc(-digits.longest, -others.longest),
    )


def auroc(low: Tensor, high: Tensor) -> float:
    """How often one of `high` (M,) is above one of `low` (N,), in [0, 1]; ties count half.

    The area under the receiver operating characteristic, by ranks (Mann, Whitney 1947).
    """
    _, place, count = torch.unique(torch.cat([low, high]), return_inverse=True, return_counts=True)
    ranks = (count.cumsum(0) - (count - 1) / 2)[place].double()  # from 1; equal values share the mean of theirs
    above = ranks[len(low) :].sum() - len(high) * (len(high) + 1) / 2
    return (above / (len(low) * len(high))).item()


def nonsense(digits: Tensor, seed: int = 0) -> Iterator[tuple[str, Tensor]]:
    """Scribbles, noise, and the digits (N, C, H, W) with their pixels shuffled: each name with N images."""
    generator = torch.Generator().manual_seed(seed)
    yield "scribbles", scribbles(len(digits), digits.shape[-1], seed).expand_as(digits)
    yield "noise", torch.rand(digits.shape, generator=generator)
    order = torch.rand(digits.flatten(1).shape, generator=generator).argsort(1)
    yield "shuffled pixels", digits.flatten(1).gather(1, order).view_as(digits)


def scribbles(count: int, size: int = 28, seed: int = 0) -> Tensor:
    """One or two curves through 5 to 14 random points each, drawn like digits: (N, 1, size, size) in [0, 1]."""
    random = np.random.default_rng(seed)

    def curve() -> np.ndarray:
        points = random.uniform(0, 1, (random.integers(5, 15), 2))
        return smooth_curve(points, np.zeros(len(points), dtype=bool))

    pictures = [rasterize([curve() for _ in range(random.integers(1, 3))], size) for _ in range(count)]
    return torch.from_numpy(np.stack(pictures))[:, None]
