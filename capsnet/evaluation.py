"""What a trained model can do: error on MNIST, and on digits that people drew with other tools.

A folder of drawn digits holds, a set each, `NAME.npz` or a folder NAME with pictures and labels.csv (file,label):
strokes   pts (P, 2), stroke_off (S + 1,), item_off (N + 1,), labels (N,), writers (N,): item n is the strokes
          item_off[n]:item_off[n + 1], stroke s the points stroke_off[s]:stroke_off[s + 1]; x right, y down
pictures  images (N, H, W) or (N, H, W, 3) uint8, labels (N,)
Items whose label is no class of the model are left out.
"""

import csv
import math
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capsnet.data import DataError, Images, to_float
from capsnet.digits import prepare_digit
from capsnet.errors import EmptyDrawingError, InvalidDrawingError
from capsnet.models import Network

PER_WRITER = 5  # items of each label that one writer may contribute: an even sample of writers


@dataclass
class Result:
    """Of `images` images, `errors` were read wrongly; `wrong` holds (index, label, answer) of each of those."""

    images: int
    errors: int
    wrong: list[tuple[int, str, str]]

    @property
    def error(self) -> float:
        return self.errors / self.images

    @property
    def interval(self) -> tuple[float, float]:
        """Between what the error of endless such images lies with a confidence of 95 % (Wilson 1927)."""
        z, n, p = 1.96, self.images, self.error
        middle, spread = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        return max((middle - spread) / (1 + z**2 / n), 0.0), min((middle + spread) / (1 + z**2 / n), 1.0)

    def confusions(self) -> list[tuple[tuple[str, str], int]]:
        """((label, answer), how often), most frequent first."""
        return Counter((label, answer) for _, label, answer in self.wrong).most_common()

    def summary(self) -> dict[str, Any]:
        return {"images": self.images, "errors": self.errors, "error": self.error}


@torch.inference_mode()
def read(model: Network, images: Tensor, batch_size: int = 500) -> tuple[Tensor, Tensor]:
    """Length (N,) of the longest capsule of each image (N, C, H, W) in [0, 1], and which it is (N,)."""
    longest = [model(part).lengths.max(1) for part in images.split(batch_size)]
    lengths, answers = map(torch.cat, zip(*longest, strict=True))
    return lengths, answers


def evaluate_images(model: Network, images: Tensor, labels: list[str]) -> Result:
    """Read images (N, C, H, W) in [0, 1] and compare with `labels`, class names."""
    answers = [model.info.class_names[k] for k in read(model, images)[1].tolist()]
    wrong = [(n, label, got) for n, (label, got) in enumerate(zip(labels, answers, strict=True)) if label != got]
    return Result(len(labels), len(wrong), wrong)


def evaluate_mnist(model: Network, data: Images) -> Result:
    """Error on images of MNIST, or of another set with the model's classes, as they are."""
    return evaluate_images(model, to_float(data.images), [model.info.class_names[k] for k in data.labels.tolist()])


def prepare_all(drawings: list[Any], size: int) -> dict[int, Tensor]:
    """The image (1, size, size) of each drawing in which `prepare_digit` finds something to read, by its number."""
    images: dict[int, Tensor] = {}
    for n, drawing in enumerate(drawings):
        with suppress(EmptyDrawingError, InvalidDrawingError):
            images[n] = prepare_digit(drawing, size)
    return images


def evaluate_drawings(model: Network, drawings: list[Any], labels: list[str]) -> Result:
    """Read drawings through `prepare_digit`; one in which it finds no digit is read wrongly, as "nothing"."""
    images = prepare_all(drawings, model.info.input_size)
    wrong = [(n, label, "nothing") for n, label in enumerate(labels) if n not in images]
    if images:
        read = evaluate_images(model, torch.stack(list(images.values())), [labels[n] for n in images])
        numbers = list(images)
        wrong += [(numbers[n], label, answer) for n, label, answer in read.wrong]
    return Result(len(labels), len(wrong), sorted(wrong))


def evaluate_drawn(model: Network, folder: Path) -> dict[str, Result]:
    """Error on each set of digits in `folder`, drawings passing through `prepare_digit`.

    Raises:
        DataError: no sets there.
    """
    results = {
        name: evaluate_drawings(model, drawings, labels)
        for name, drawings, labels in drawn_sets(folder, model.info.class_names)
        if labels is not None
    }
    if not results:
        raise _no_sets(folder)
    return results


def drawn_sets(folder: Path, class_names: list[str]) -> Iterator[tuple[str, list[Any], list[str] | None]]:
    """Name, drawings and labels of each set in `folder`, as in `load_drawings`.

    Of most sets, what has no class is left out. A set of letters or symbols is one in which more has none than has
    one: of those the rest is left out, and labels are None.

    Raises:
        DataError: no sets there.
    """
    sets = sorted(p for p in folder.glob("*") if p.suffix == ".npz" or (p / "labels.csv").exists())
    if not sets:
        raise _no_sets(folder)
    for path in sets:
        drawings, labels = load_drawings(path)
        has_class = [label in class_names for label in labels]
        of_digits = 2 * sum(has_class) >= len(labels)
        kept = [n for n, its in enumerate(has_class) if its == of_digits]
        yield path.stem, [drawings[n] for n in kept], [labels[n] for n in kept] if of_digits else None


def _no_sets(folder: Path) -> DataError:
    return DataError(f"{folder} holds no sets of drawn digits; their form is described in capsnet/evaluation.py.")


def load_drawings(path: Path) -> tuple[list[Any], list[str]]:
    """Drawings, as `prepare_digit` takes them, and labels of one set."""
    if path.is_dir():
        with open(path / "labels.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        return [path / row["file"] for row in rows], [row["label"] for row in rows]
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    labels = [str(label) for label in arrays["labels"]]
    if "images" in arrays:
        return list(arrays["images"]), labels
    points, stroke, item = arrays["pts"].astype(float), arrays["stroke_off"], arrays["item_off"]
    chosen = _even_sample(list(zip(arrays["writers"].tolist(), labels, strict=True)))
    drawings = [
        {"strokes": [points[stroke[s] : stroke[s + 1]].tolist() for s in range(item[n], item[n + 1])]} for n in chosen
    ]
    return drawings, [labels[n] for n in chosen]


def _even_sample(keys: list[tuple[str, str]]) -> list[int]:
    """Indices, in order, of a random choice with each key at most `PER_WRITER` times; always the same."""
    order = list(range(len(keys)))
    random.Random(0).shuffle(order)
    seen: Counter[tuple[str, str]] = Counter()
    chosen = []
    for n in order:
        seen[keys[n]] += 1
        if seen[keys[n]] <= PER_WRITER:
            chosen.append(n)
    return sorted(chosen)
