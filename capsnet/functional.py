"""Pure tensor maths of capsules. The last dimension is always the pose of a capsule."""

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """bf16 and fp16 become float32; float32 and float64 stay as they are."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def lengths(poses: Tensor) -> Tensor:
    """Length of each pose vector, in [0, 1) after `squash`: the probability that the entity is there.

    Args:
        poses: (..., D).
    Returns:
        (...). The gradient at a zero vector is zero, where that of sqrt(sum(v²)) is NaN.
    Source: Sabour, Frosst, Hinton 2017, section 2.
    """
    return torch.linalg.vector_norm(poses, dim=-1)


def directions(poses: Tensor) -> Tensor:
    """Unit vectors (..., D) along poses (..., D); zero where a pose is zero."""
    return poses / lengths(poses)[..., None].clamp_min(torch.finfo(poses.dtype).tiny)


def squash(s: Tensor) -> Tensor:
    """Shrink short vectors to almost zero and long ones to just below length 1, keeping their direction.

    v = |s|² / (1 + |s|²) · s / |s|, written without the division by |s|, so that zero vectors and their
    gradients stay finite.

    Args:
        s: (..., D).
    Returns:
        (..., D), lengths in [0, 1).
    Source: Sabour, Frosst, Hinton 2017, equation 1.
    """
    norm = torch.linalg.vector_norm(s, dim=-1, keepdim=True)
    return s * (norm / torch.addcmul(norm.new_ones(()), norm, norm))


def exponential_squash(s: Tensor) -> Tensor:
    """Shrink vectors to below length 1, keeping their direction; short ones keep almost their length.

    v = (1 − e^{−|s|}) s / |s|. Near zero v is s itself, with slope 1; `squash` has slope 0 there.

    Args:
        s: (..., D).
    Returns:
        (..., D), lengths in [0, 1).
    Source: Mazzia, Salvetti, Chiaberge 2021, "Efficient-CapsNet".
    """
    norm = torch.linalg.vector_norm(s, dim=-1, keepdim=True).clamp_min(torch.finfo(s.dtype).tiny)
    return s * (-torch.expm1(-norm) / norm)
