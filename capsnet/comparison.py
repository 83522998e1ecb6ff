"""What tells routing algorithms apart besides their errors: work, iterations, temperature, how coupling settles."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from capsnet.data import Images, to_float
from capsnet.evaluation import evaluate_mnist
from capsnet.models import CapsNet, Network


@torch.inference_mode()
def macs(model: Network) -> int:
    """Multiplications of the encoder for one image, those in convolutions and matrix products."""
    image = torch.zeros(1, model.info.in_channels, model.info.input_size, model.info.input_size)
    with FlopCounterMode(display=False) as counter:
        model(image.to(next(model.parameters()).device))
    return counter.get_total_flops() // 2


def encoder_parameters(model: Network) -> int:
    """Trainable numbers without the decoder's."""
    return sum(p.numel() for name, p in model.named_parameters() if not name.startswith("decoder."))


def iterates(model: CapsNet) -> bool:
    """Whether its routing goes through more than one iteration."""
    return getattr(model.routing, "iterations", 1) > 1


@contextmanager
def changed(model: CapsNet, **settings: Any) -> Iterator[CapsNet]:
    """The model with other settings of its routing for a while, e.g. iterations."""
    before = {name: getattr(model.routing, name) for name in settings}
    try:
        for name, value in settings.items():
            setattr(model.routing, name, value)
        yield model
    finally:
        for name, value in before.items():
            setattr(model.routing, name, value)


def error_by(model: CapsNet, data: Images, setting: str, values: Sequence[float]) -> dict[float, float]:
    """Error on MNIST images with each value of a setting of the routing; empty if it has no such setting."""
    if not hasattr(model.routing, setting):
        return {}
    errors = {}
    for value in values:
        with changed(model, **{setting: value}):
            errors[value] = evaluate_mnist(model, data).error
    return errors


@torch.inference_mode()
def settling(model: CapsNet, data: Images, iterations: int, batch_size: int = 250) -> list[float]:
    """How far the coupling of a routing that iterates moves from each iteration to the next.

    Returns:
        iterations − 1 numbers: the mean over images, children and parents of |c_t − c_(t−1)|.
    """
    moved = torch.zeros(iterations - 1, dtype=torch.float64)
    with changed(model, iterations=iterations):
        for start in range(0, len(data), batch_size):
            images = to_float(data.images[start : start + batch_size])
            coupling = torch.stack([step["coupling"] for step in model(images, trace=True).trace])  # (r, B, I, J)
            moved += coupling.diff(dim=0).abs().mean((1, 2, 3)).double().cpu() * len(images)
    return (moved / len(data)).tolist()
