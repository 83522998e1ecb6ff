"""A few hundred MNIST test digits that come with the page, so that it works offline (see mnist_digits.md)."""

import random
from functools import cache

import numpy as np
import torch

from .pixels import FOLDER, encode


@cache
def digits() -> dict[str, np.ndarray]:
    """images uint8 (300, 28, 28), ink 255; labels (300,); numbers (300,), their places in the test set."""
    with np.load(FOLDER / "mnist_digits.npz", allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def image(index: int) -> torch.Tensor:
    """One digit as the network takes it, unchanged but for its scale: float32 (1, 28, 28), ink 1.

    Raises ValueError where there is no such digit.
    """
    images = digits()["images"]
    if type(index) is not int or not 0 <= index < len(images):
        raise ValueError(f"There is no MNIST digit {index!r}: choose 0 to {len(images) - 1}.")
    return torch.from_numpy(images[index].astype(np.float32) / 255)[None]


def pick(previous: int | None = None, index: int | None = None, label: int | None = None) -> dict:
    """A digit, by default a random one but the previous: index, label, number in the test set, pixels in base64.

    label: of which digit it is to be. Raises ValueError where there is no such digit.
    """
    every = digits()
    if index is None:
        labels = every["labels"].tolist()
        fit = [i for i, one in enumerate(labels) if i != previous and label in (None, one)]
        if not fit:
            raise ValueError(f"There is no MNIST digit like {label!r}: choose 0 to 9.")
        index = random.choice(fit)
    pixels = encode(image(index))
    return {
        "index": index,
        "label": int(every["labels"][index]),
        "number": int(every["numbers"][index]),
        "pixels": pixels,
    }
