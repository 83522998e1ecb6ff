"""Not a digit: how strange an image is to a network, and from where on the network says that it is no digit.

The capsule of a digit is long for a letter that resembles it, too. The decoder knows more: it draws digits only, so
what it draws of a letter's pose is not that letter. Frosst, Sabour, Hinton 2018 (*DARCCC: Detecting Adversaries by
Reconstruction from Class Conditional Capsules*, https://arxiv.org/abs/1811.06969) reject images far from their
reconstruction; the measure here is ours.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.data import Images, to_float
from capsnet.models import Network
from capsnet.recognizer import Recognizer
from capsnet.redrawer import Redrawer

FALSE_ALARMS = 0.01  # of validation digits that the threshold rejects
DOUBT = 0.5  # what the lengths count beside the picture


def unlikeness(images: Tensor, pictures: Tensor) -> Tensor:
    """One minus the cosine between images and pictures (B, C, H, W), both in [0, 1] → (B,) in [0, 1].

    Both are blurred over 3×3 pixels first: a line that is a pixel off makes no other digit.
    """
    image, picture = (F.avg_pool2d(one.float(), 3, 1, 1).flatten(1) for one in (images, pictures))
    return 1 - F.cosine_similarity(image, picture)


def strangeness(images: Tensor, pictures: Tensor, lengths: Tensor) -> Tensor:
    """How little images look like digits to the network that read them: (B,), from 0 to 1 + 2 · DOUBT.

    The unlikeness of image and picture, and DOUBT times one minus the longest length plus the second longest.

    Args:
        images: (B, C, H, W) in [0, 1].
        pictures: (B, C, H, W), what the decoder draws of the longest capsule's pose.
        lengths: (B, K) in [0, 1].
    """
    first, second = lengths.float().topk(2).values.T
    return unlikeness(images, pictures) + DOUBT * (1 - first + second)


def is_digit(model: Recognizer, images: Tensor, pictures: Tensor, lengths: Tensor) -> Tensor:
    """Whether images are no stranger than the model's threshold, (B,); every one where that was not measured.

    Args: as in `strangeness`.
    """
    limit = math.inf if model.rejection_threshold is None else model.rejection_threshold
    return strangeness(images, pictures, lengths) <= limit


@dataclass
class Judgement:
    """Of N images: `strangeness`, its part `unlikeness`, `longest` length, `answers` (whose it is); each (N,)."""

    strangeness: Tensor
    unlikeness: Tensor
    longest: Tensor
    answers: Tensor


@torch.inference_mode()
def judge(model: Network, images: Tensor, batch_size: int = 500) -> Judgement:
    """Read images (N, C, H, W) in [0, 1] and measure how strange each is.

    A model that does not draw knows its lengths alone: there the unlikeness is zero.
    """
    parts = []
    for part in images.split(batch_size):
        out = model(part)
        longest, answers = out.lengths.max(1)
        pictures = model.decode(out.poses, answers) if isinstance(model, Redrawer) else part
        parts.append((strangeness(part, pictures, out.lengths), unlikeness(part, pictures), longest, answers))
    return Judgement(*map(torch.cat, zip(*parts, strict=True)))


def measure_threshold(model: Network, validation: Images) -> None:
    """Set `model.rejection_threshold` so that `FALSE_ALARMS` of the validation images are stranger."""
    model.eval()
    found = judge(model, to_float(validation.images))
    model.rejection_threshold = torch.quantile(found.strangeness, 1 - FALSE_ALARMS).item()
