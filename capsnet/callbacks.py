"""What follows a training: the bar and the lines in a terminal, a notebook or a log file, and TensorBoard."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tqdm.auto import tqdm

from capsnet.data import Images, to_float
from capsnet.models import Network
from capsnet.redrawer import Redrawer

# Called after every epoch with what the history has of it, the model and the validation images.
Callback = Callable[[dict[str, float], Network, Images], None]


def progress_bar(*, disable: bool = False, **options: Any) -> tqdm:
    """A bar of images in a terminal or a notebook; none in a log file, where it would be a line every time it moves."""
    seen = sys.stderr.isatty() or "ipykernel" in sys.modules
    return tqdm(unit=" images", leave=False, disable=disable or not seen, **options)


def say(line: str) -> None:
    """Print a line above the bar, at once in a log file, too."""
    tqdm.write(line)
    sys.stdout.flush()


class TensorBoard:
    """A callback that writes every figure of an epoch, and what the decoder makes of eight images, for TensorBoard.

    Args:
        folder: what `tensorboard --logdir` is given.
    Raises:
        ValueError: tensorboard is not installed.
    """

    def __init__(self, folder: str | Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ValueError("logdir is for tensorboard, which is not installed; pip install tensorboard") from None
        self.writer = SummaryWriter(str(folder))

    @torch.inference_mode()
    def __call__(self, epoch: dict[str, float], model: Network, validation: Images) -> None:
        step = int(epoch["epoch"])
        for name, value in epoch.items():
            if name != "epoch":
                self.writer.add_scalar(name, value, step)
        if isinstance(model, Redrawer):
            images = to_float(validation.images[:8])
            out = model.eval()(images)
            pictures = model.decode(out.poses, out.lengths.argmax(1))
            self.writer.add_images(
                "eight images, then their reconstructions", torch.cat([images, pictures]).cpu(), step
            )
        self.writer.flush()
