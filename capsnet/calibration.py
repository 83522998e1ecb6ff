"""Whether the length of the longest capsule is the probability that the answer is right."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsnet.data import Images, to_float
from capsnet.evaluation import drawn_sets, prepare_all, read
from capsnet.models import Network

BINS = 10


@dataclass
class Calibration:
    """Of each tenth of the lengths, from 0 up: how many answers, their mean length, how many of them are right.

    Attributes:
        images, lengths, right: a number for each bin; 0 in bins without images.
    """

    images: list[int]
    lengths: list[float]
    right: list[int]

    @property
    def expected_error(self) -> float:
        """Expected calibration error: the mean, over images, of |share of right answers − mean length| of their bin.

        Source: Guo, Pleiss, Sun, Weinberger 2017, equation 3.
        """
        bins = zip(self.images, self.lengths, self.right, strict=True)
        return sum(abs(right - count * length) for count, length, right in bins) / max(sum(self.images), 1)

    @property
    def overconfidence(self) -> float:
        """Mean length minus share of right answers."""
        total = sum(count * length for count, length in zip(self.images, self.lengths, strict=True))
        return (total - sum(self.right)) / max(sum(self.images), 1)

    def summary(self) -> dict[str, Any]:
        return {"error": self.expected_error, "overconfidence": self.overconfidence, **asdict(self)}


def calibration(lengths: Tensor, right: Tensor) -> Calibration:
    """Sort answers by the longest length.

    Args:
        lengths: (N,) in [0, 1].
        right: (N,) bool.
    """
    place = (lengths * BINS).long().clamp(max=BINS - 1)
    images = torch.bincount(place, minlength=BINS)
    sums = torch.bincount(place, lengths.double(), minlength=BINS)
    hits = torch.bincount(place[right], minlength=BINS)
    return Calibration(images.tolist(), (sums / images.clamp_min(1)).tolist(), hits.tolist())


def evaluate_calibration(model: Network, test: Images, folder: Path) -> dict[str, Calibration]:
    """Calibration on MNIST images and on all drawn digits in `folder` together, as in `capsnet.evaluation`.

    Raises:
        DataError: no sets there.
    """
    names = model.info.class_names
    images: list[Tensor] = []
    labels: list[int] = []
    for _, drawings, of_digits in drawn_sets(folder, names):
        if of_digits is not None:
            prepared = prepare_all(drawings, model.info.input_size)
            images += prepared.values()
            labels += [names.index(of_digits[n]) for n in prepared]
    sets = {"MNIST test": (to_float(test.images), test.labels)}
    if images:
        sets["drawn digits"] = torch.stack(images), torch.tensor(labels)
    found = {}
    for name, (pictures, answers) in sets.items():
        lengths, read_as = read(model, pictures)
        found[name] = calibration(lengths, read_as == answers)
    return found
