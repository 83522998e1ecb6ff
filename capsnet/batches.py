"""What each step of an epoch trains on: an order of the images, and pen digits drawn by code among them."""

import torch
from torch import Tensor

from capsnet.configuration import TrainingConfig
from capsnet.data import Images


def epoch_order(config: TrainingConfig, epoch: int, images: int, pens: int) -> Tensor:
    """A random order of all images and of a random choice of pen digits, which are numbered after the images."""
    generator = torch.Generator().manual_seed(config.seed * 100_003 + epoch)
    share = min(pens, round(images * config.pen_share / (1 - config.pen_share)))
    chosen = torch.cat([torch.arange(images), images + torch.randperm(pens, generator=generator)[:share]])
    return chosen[torch.randperm(len(chosen), generator=generator)]


def pick(indices: Tensor, data: Images, pens: Images) -> tuple[Tensor, Tensor]:
    """Images and labels of those numbers of `epoch_order`."""
    indices = indices.to(data.images.device)
    mnist, pen = indices[indices < len(data)], indices[indices >= len(data)] - len(data)
    return (
        torch.cat([data.images[mnist], pens.images[pen]]),
        torch.cat([data.labels[mnist], pens.labels[pen]]),
    )


def pens_for(config: TrainingConfig, data: Images) -> Images:
    """The pen digits from which each epoch takes its share; none without one.

    Raises:
        ValueError: `data` are not 1×28×28, or no digits.
    """
    if not config.pen_share:
        return data[:0]
    if data.images.shape[1:] != (1, 28, 28):
        shape = "×".join(map(str, data.images.shape[1:]))
        raise ValueError(f"pen digits are images of 1×28×28, not {shape}; train with pen_share 0.")
    if data.class_names not in (None, list("0123456789")):
        raise ValueError(f"pen digits are digits, not {', '.join(data.class_names)}; train with pen_share 0.")
    from capsnet.pens import pen_digits

    images, labels = pen_digits(config.pen_pool, config.seed)
    return Images(torch.from_numpy(images)[:, None], torch.from_numpy(labels), data.class_names).to(data.images.device)
