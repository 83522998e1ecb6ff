"""Losses, each a free function of tensors."""

import math

import torch.nn.functional as F
from torch import Tensor

# Weight of the summed squared error beside the margin loss. The paper prints 0.0005 on the sum over the 784
# pixels of a 28×28 picture, which is 0.392 on their mean. The authors' code also averages the margin loss over
# ten classes and halves it, so that in the paper's units its reconstruction weighs 20 times more: 0.01 on the
# sum, 7.84 on the mean.
PAPER_RECONSTRUCTION_WEIGHT = 0.0005
AUTHORS_RECONSTRUCTION_WEIGHT = 0.01


def present(labels: Tensor, classes: int) -> Tensor:
    """Which classes are there, (B, classes) bool: labels are (B,) class indices, or (B, n) of n digits on one image."""
    return F.one_hot(labels.view(len(labels), -1), classes).amax(1).bool()


def margin_loss(
    lengths: Tensor, labels: Tensor, m_plus: float = 0.9, m_minus: float = 0.1, down_weight: float = 0.5
) -> Tensor:
    """Margin loss: classes that are present want long capsules, the others short ones.

    L = Σₖ Tₖ max(0, m⁺ − |vₖ|)² + λ (1 − Tₖ) max(0, |vₖ| − m⁻)², summed over classes, averaged over the batch.

    Args:
        lengths: (B, K), lengths of the digit capsules (not a softmax of them: that never reaches 0.9).
        labels: (B,) class indices, or (B, K) with 1 for each class that is present.
        m_plus, m_minus: the margins m⁺ and m⁻, lengths in [0, 1].
        down_weight: λ, the weight of absent classes.
    Returns:
        A scalar.
    Raises:
        ValueError: labels of another shape.
    Source: Sabour, Frosst, Hinton 2017, equation 4.
    """
    if labels.shape == lengths.shape:
        present = labels.to(lengths.dtype)
    elif labels.shape == lengths.shape[:1]:
        present = F.one_hot(labels, lengths.shape[1]).to(lengths.dtype)
    else:
        raise ValueError(
            f"labels have shape {tuple(labels.shape)}; pass (B,) class indices or {tuple(lengths.shape)} of 0 and 1."
        )
    too_short = (m_plus - lengths).clamp_min(0).square()
    too_long = (lengths - m_minus).clamp_min(0).square()
    return (present * too_short + down_weight * (1 - present) * too_long).sum(1).mean()


def spread_loss(activations: Tensor, labels: Tensor, margin: float | Tensor) -> Tensor:
    """Spread loss: the right class should be more active than each wrong one, by a margin.

    L = Σ_{i≠t} max(0, m − (a_t − a_i))², summed over classes, averaged over the batch.

    Args:
        activations: (B, K) in [0, 1].
        labels: (B,) class indices t.
        margin: m in (0, 1), growing during training as `spread_margin` says.
    Returns:
        A scalar.
    Raises:
        ValueError: labels of another shape.
    Source: Hinton, Sabour, Frosst 2018, equation 3.
    """
    if labels.shape != activations.shape[:1]:
        raise ValueError(f"labels have shape {tuple(labels.shape)}; pass ({len(activations)},) class indices.")
    wrong = 1 - F.one_hot(labels, activations.shape[1]).to(activations.dtype)
    lead = activations.gather(1, labels[:, None]) - activations  # (B, K)
    return (wrong * (margin - lead).clamp_min(0).square()).sum(1).mean()


def spread_margin(step: float, unit: float = 50_000) -> float:
    """Margin of the spread loss at a training step: from 0.21 along a sigmoid to 0.99, half-way after 4 units.

    m = 0.2 + 0.79 · sigmoid(min(10, step / unit − 4)). The loss rises while the margin grows.

    Args:
        step: optimizer steps done.
        unit: steps; the authors' 50,000, or an eighth of a shorter training, which then ends at 0.98.
    Source: the authors' schedule, in their comments on Hinton, Sabour, Frosst 2018.
    """
    return 0.2 + 0.79 / (1 + math.exp(-min(10.0, step / unit - 4)))


def reconstruction_loss(picture: Tensor, image: Tensor) -> Tensor:
    """Squared error of a reconstruction: summed over the pixels, averaged over the batch.

    Args:
        picture: (B, C, H, W), the decoder's output in [0, 1].
        image: (B, C, H, W), what it should be.
    Returns:
        A scalar, to be weighted by e.g. `PAPER_RECONSTRUCTION_WEIGHT`.
    Raises:
        ValueError: shapes that differ.
    Source: Sabour, Frosst, Hinton 2017, section 4.1.
    """
    if picture.shape != image.shape:
        raise ValueError(f"picture {tuple(picture.shape)} and image {tuple(image.shape)} must have the same shape.")
    return (picture - image).square().flatten(1).sum(1).mean()
