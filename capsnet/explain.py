"""Why a network answers as it does: what every capsule argues for each class, and which part of the picture it sees."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from capsnet.functional import directions
from capsnet.layers import Capsules
from capsnet.models import CapsNet


@dataclass
class Round:
    """One iteration of routing: lengths (K,), coupling (I, K), and evidence (I, K) as in `capsnet.layers.Routed`."""

    lengths: Tensor
    coupling: Tensor
    evidence: Tensor


@dataclass
class Explanation:
    """How one image was routed.

    Attributes:
        rounds: one for each iteration; a single one where routing does not iterate.
        children: the capsules that voted, (1, I, D).
        field: side of the square of pixels that one of them sees, and how many pixels further the next one's begins:
            the one in row r and column c of the grid sees from pixel (stride · r, stride · c) on.
    """

    rounds: list[Round]
    children: Capsules
    field: tuple[int, int]

    def by_place(self, round: int) -> Tensor:
        """Evidence of all capsules at each place of the grid together, (K, H, W); one place without a grid."""
        grid = self.children.grid or (1, 1)
        return self.rounds[round].evidence.T.unflatten(1, (-1, *grid)).sum(1)


@torch.inference_mode()
def explain(model: CapsNet, image: Tensor) -> Explanation:
    """Route one image (C, H, W), values in [0, 1], and keep what every capsule argued in every iteration.

    Raises:
        ValueError: an image of another shape.
    """
    children = model.encode(image[None])
    steps = model.routing(children, trace=True).trace
    rounds = [Round(step["capsules"].activations[0], step["coupling"][0], step["evidence"][0]) for step in steps]
    if model.hidden:  # whose places are not told apart: each sees much of the image
        children = replace(children, grid=None)
    return Explanation(rounds, children, receptive_field(model))


def receptive_field(model: CapsNet) -> tuple[int, int]:
    """Side and stride, in pixels, of what the capsules below the class capsules see; the whole image above others."""
    if model.hidden:
        return model.info.input_size, model.info.input_size
    side, stride = 1, 1
    for part in (model.trunk, model.primary):
        for conv in part.modules():
            if isinstance(conv, nn.Conv2d):
                side += (conv.kernel_size[0] - 1) * stride
                stride *= conv.stride[0]
    return side, stride


def alike(capsules: Capsules) -> float:
    """Length of the mean direction of one image's capsules (1, I, D), each counted by its activation.

    0 where they point every way, 1 where all point the same way.
    """
    weights = capsules.activations[0] / capsules.activations[0].sum().clamp_min(torch.finfo(torch.float32).tiny)
    return torch.linalg.vector_norm(weights @ directions(capsules.poses[0])).item()
