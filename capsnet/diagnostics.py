"""How a network's capsules do while it trains, measured at the end of an epoch and never within a step."""

import math

import torch

from capsnet.data import Images, to_float
from capsnet.functional import directions
from capsnet.losses import present
from capsnet.models import CapsNet
from capsnet.recognizer import Recognizer

LOOKED_AT = 500  # validation images
TOO_LONG = 50.0  # from here on squash is so flat that hardly a gradient comes through


@torch.inference_mode()
def diagnose(model: Recognizer, validation: Images) -> dict[str, float]:
    """Figures on the first validation images, for the history in metrics.json.

    right_length, wrong_length: mean lengths of the capsule of the right class and of the others.
    coupling_entropy: of how each lower capsule divides itself, from 0, all to one, to 1, evenly; not where a learned
        prior has made a coupling coefficient negative.
    longest_sum: largest |s_j| of a class capsule before the squash; not of matrix capsules, which have none.
    """
    model.eval()
    part = validation[:LOOKED_AT]
    capsules = isinstance(model, CapsNet)
    images = to_float(part.images).contiguous(memory_format=torch.channels_last)
    out = model(images, trace=True) if capsules else model(images)
    classes = out.lengths.shape[1]
    there = present(part.labels, classes)
    found = {"right_length": out.lengths[there].mean().item(), "wrong_length": out.lengths[~there].mean().item()}
    if capsules and bool((out.coupling >= 0).all()):
        found["coupling_entropy"] = torch.special.entr(out.coupling).sum(2).mean().item() / math.log(classes)
    if capsules and not model.matrices:
        sums = out.trace[-1]["evidence"].sum(1)  # (B, J), |s_j| but for the bias
        bias = getattr(model.routing, "bias", None)
        if bias is not None:
            sums = sums + (directions(out.poses) * bias).sum(-1)
        found["longest_sum"] = sums.max().item()
    return found


def warning(found: dict[str, float]) -> str | None:
    """One sentence where capsules are so long that they stop learning; None where all is well."""
    if found.get("longest_sum", 0) <= TOO_LONG:
        return None
    longest = found["longest_sum"]
    return f"a capsule is {longest:.0f} long before the squash, where it hardly learns: lower the learning rate."
