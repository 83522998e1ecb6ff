"""One's own pictures as data: a folder in which each class has a folder of its name, with its pictures in it."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from capsnet.callbacks import progress_bar
from capsnet.data import DataError, Images
from capsnet.digits import prepare_digit
from capsnet.errors import EmptyDrawingError, InvalidDrawingError
from capsnet.pictures import read_picture

VALIDATION_SHARE = 10  # one picture in so many of each class


def load_folder(folder: str | Path, size: int = 28, drawings: bool = False) -> Images:
    """All pictures below `folder`, in the order of their classes and names; the classes are its folders' names.

    Pictures of any size are scaled to fit, and what is left of the square gets the colour of their top left corner.
    They have one channel if none of them has colours, else three.

    Args:
        size: side of the square images.
        drawings: bring each into MNIST's form first, as the page does with what is drawn on it.
    Raises:
        DataError: fewer than two classes, a class with fewer than two pictures, or one that cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; name one that holds a folder of pictures for each class.")
    classes = {path.name: _pictures(path) for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] != "."}
    if len(classes) < 2:
        raise DataError(f"{folder} has {len(classes)} folders; it needs one for each of at least two classes.")
    for name, paths in classes.items():
        if len(paths) < 2:
            raise DataError(f"{folder / name} has {len(paths)} pictures; a class needs two, to train and to choose.")
    images, total = [], sum(map(len, classes.values()))
    with progress_bar(total=total, desc=f"reading {folder.name}") as bar:
        for paths in classes.values():
            for path in paths:
                images.append(_read(path, size, drawings))
                bar.update()
    if any(len(image) == 3 for image in images):
        images = [image.expand(3, -1, -1) for image in images]
    labels = torch.arange(len(classes)).repeat_interleave(torch.tensor([len(paths) for paths in classes.values()]))
    return Images(torch.stack(images), labels, list(classes))


def split_folder(data: Images) -> tuple[Images, Images]:
    """Training images and, a tenth of each class and at least one, validation images; always the same."""
    held_out = torch.zeros(len(data), dtype=torch.bool)
    generator = torch.Generator().manual_seed(0)
    for label in range(int(data.labels.max()) + 1):
        own = (data.labels == label).nonzero()[:, 0]
        own = own[torch.randperm(len(own), generator=generator)]
        held_out[own[: max(len(own) // VALIDATION_SHARE, 1)]] = True
    return data[~held_out], data[held_out]


def _pictures(folder: Path) -> list[Path]:
    endings = Image.registered_extensions()
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in endings and path.name[0] != ".")


def _read(path: Path, size: int, drawings: bool) -> Tensor:
    """(1 or 3, size, size) uint8; one channel where there is no colour."""
    try:
        if drawings:
            return (prepare_digit(path, size) * 255).round().byte()
        values = read_picture(path)
    except (EmptyDrawingError, InvalidDrawingError) as error:
        raise DataError(f"{path} is no picture to train with: {error}") from None
    values = (values * 255).round().astype(np.uint8)
    if values.ndim == 3 and (values == values[..., :1]).all():
        values = values[..., 0]
    scale = size / max(values.shape[:2])
    height, width = (max(round(side * scale), 1) for side in values.shape[:2])
    square = np.empty((size, size, *values.shape[2:]), np.uint8)
    square[:] = values[0, 0]
    top, left = (size - height) // 2, (size - width) // 2
    scaled = Image.fromarray(values).resize((width, height), Image.Resampling.LANCZOS)
    square[top : top + height, left : left + width] = np.asarray(scaled)
    return torch.from_numpy(square.reshape(size, size, -1)).movedim(2, 0).contiguous()
