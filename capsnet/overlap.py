"""Two digits on one sheet: how many there are, which, what each looks like alone, and what none of them explains."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from capsnet.data import Images, to_float
from capsnet.evaluation import Result
from capsnet.losses import present
from capsnet.models import CapsNet
from capsnet.pairs import fixed_pairs, lay_each, over, partners
from capsnet.recognizer import Recognizer

THRESHOLDS = [n / 100 for n in range(5, 96)]  # lengths tried
MOST = 3  # so many capsules or more are counted together


@dataclass
class Separation:
    """What a network that reads two digits finds on one sheet.

    Attributes:
        lengths: (K,), of all capsules.
        digits: whose capsules are long enough to be there, longest first; none, one, two or more.
        pictures: (len(digits), C, H, W), each of them redrawn alone.
        unexplained: (C, H, W), the ink of the sheet that is in none of the pictures.
    """

    lengths: Tensor
    digits: list[int]
    pictures: Tensor
    unexplained: Tensor


@torch.inference_mode()
def separate(model: CapsNet, image: Tensor) -> Separation:
    """Find the digits on a sheet (C, H, W), values in [0, 1], ink 1 on paper 0.

    Raises:
        ValueError: the model has no presence threshold, or reads images of another shape.
    """
    if model.presence_threshold is None:
        raise ValueError(f"{model.info.name} does not say how long a capsule is whose digit is there.")
    out = model(image[None])
    order = out.lengths[0].argsort(descending=True)
    digits = order[: int(count(out.lengths, model.presence_threshold))]
    pictures = model.decode(out.poses.expand(len(digits), -1, -1), digits) if len(digits) else image[None][:0]
    return Separation(out.lengths[0], digits.tolist(), pictures, (image - over(pictures[None])[0]).clamp_min(0))


def count(lengths: Tensor, threshold: float) -> Tensor:
    """How many digits are there: lengths (N, K) → (N,)."""
    return (lengths > threshold).sum(1)


@torch.inference_mode()
def read_lengths(model: Recognizer, sheets: Tensor, batch_size: int = 250) -> Tensor:
    """Lengths (N, K) of the capsules for sheets (N, C, H, W) uint8."""
    return torch.cat([model(to_float(part)).lengths for part in sheets.split(batch_size)])


def measure_presence(model: Recognizer, validation: Images) -> None:
    """Set `model.presence_threshold` so that pairs of the validation digits count as two and single ones as one.

    Of the thresholds at which the share that is counted rightly is highest, the one in the middle.
    """
    model.eval()
    device = next(model.parameters()).device
    pairs = fixed_pairs(validation)[0].images
    two, one = (read_lengths(model, sheets.to(device)) for sheets in (pairs, singles(validation)))
    right = torch.tensor(
        [((count(two, t) == 2).float().mean() + (count(one, t) == 1).float().mean()).item() for t in THRESHOLDS]
    )
    best = (right == right.max()).nonzero()[:, 0]
    model.presence_threshold = THRESHOLDS[int(best[len(best) // 2])]


def singles(data: Images, seed: int = 1) -> Tensor:
    """Each digit alone on a sheet, (N, C, side, side) uint8."""
    return over(lay_each([data], torch.Generator().manual_seed(seed)))


def twice(data: Images, seed: int = 2) -> Tensor:
    """Two digits of the same class on each sheet, (N, C, side, side) uint8."""
    generator = torch.Generator().manual_seed(seed)
    by_class = data.labels.argsort(stable=True)
    # The next of its class; the last of a class is left out.
    one, other = by_class[:-1], by_class[1:]
    same = data.labels[one] == data.labels[other]
    return over(lay_each([data[one[same]], data[other[same]]], generator))


def thrice(data: Images, seed: int = 3) -> Tensor:
    """Three digits of three classes on each sheet, (M, C, side, side) uint8, M below N."""
    generator = torch.Generator().manual_seed(seed)
    second, third = (data[partners(data.labels, data, generator)] for _ in range(2))
    differ = second.labels != third.labels
    return over(lay_each([data[differ], second[differ], third[differ]], generator))


@dataclass
class Overlap:
    """How well a network reads pairs.

    Attributes:
        result: wrong unless the two longest capsules are those of the two digits.
        neither: share of the pairs with neither digit among the two longest.
        redrawn, sheet: squared error, summed over pixels, against each digit alone, of what its capsule draws and of
            the sheet as it is.
        counts: for sheets of each kind the share with 0, 1, 2 and MOST or more capsules above the threshold.
        threshold: that one.
    """

    result: Result
    neither: float
    redrawn: float
    sheet: float
    counts: dict[str, list[float]]
    threshold: float

    def summary(self) -> dict[str, Any]:
        figures = {name: getattr(self, name) for name in ("neither", "redrawn", "sheet", "counts", "threshold")}
        return {**self.result.summary(), "interval": list(self.result.interval), **figures}


@torch.inference_mode()
def evaluate_overlap(model: CapsNet, test: Images, batch_size: int = 250) -> Overlap:
    """The paper's measure on a pair for each image, and what the network makes of other numbers of digits."""
    pairs, alone = fixed_pairs(test)
    names = model.info.class_names
    wrong, neither, redrawn, sheet = [], 0, 0.0, 0.0
    lengths = []
    for start in range(0, len(pairs), batch_size):
        part, digits = pairs[start : start + batch_size], to_float(alone[start : start + batch_size])
        images = to_float(part.images)
        out = model(images)
        lengths.append(out.lengths)
        answers = out.lengths.topk(2).indices
        hits = present(part.labels, len(names)).gather(1, answers).sum(1)
        neither += int((hits == 0).sum())
        for n in (hits < 2).nonzero()[:, 0].tolist():
            said = ["".join(sorted(names[k] for k in its[n].tolist())) for its in (part.labels, answers)]
            wrong.append((start + n, *said))
        drawn = model.decode(out.poses.repeat_interleave(2, 0), part.labels.flatten())
        redrawn += (drawn - digits.flatten(0, 1)).square().sum().item()
        sheet += (images[:, None] - digits).square().sum().item()
    N = len(pairs)
    threshold = model.presence_threshold if model.presence_threshold is not None else math.nan
    kinds = {"one": singles(test), "two": None, "twice the same": twice(test), "three": thrice(test)}
    counts = {}
    for kind, sheets in kinds.items():
        found = torch.cat(lengths) if sheets is None else read_lengths(model, sheets)
        shares = torch.bincount(count(found, threshold).clamp(max=MOST), minlength=MOST + 1) / len(found)
        counts[kind] = shares.tolist()
    return Overlap(Result(N, len(wrong), wrong), neither / N, redrawn / (2 * N), sheet / (2 * N), counts, threshold)
