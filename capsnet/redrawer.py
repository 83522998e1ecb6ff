"""What networks that say how a digit is written have in common: a pose for each class, and a decoder that draws it."""

from typing import Any

import torch
from torch import Tensor

from capsnet.layers import Decoder, longest
from capsnet.recognizer import Recognizer


class Redrawer(Recognizer):
    """A network that reads images, says of each class how it is written, in a pose, and redraws it from that.

    Its output has lengths (B, K) in [0, 1) and poses (B, K, P), whose lengths they are unless `matrices`.

    Attributes:
        decoder: from the pose of one class to an image.
        pose_range: (2, K, P), low and high end (1 % and 99 % quantile) of every pose number over the training images of
            each class: the range in which moving it makes sense. Measured after training and kept with the weights.
        pose_effects, pose_directions: by class name, what each pose number does to the picture, and how to move one
            property of it; measured, see `capsnet.pose`. None where that was not done.
    """

    decoder: Decoder
    pose_range: Tensor
    pose_effects: dict[str, list[dict[str, Any]]] | None = None
    pose_directions: dict[str, dict[str, dict[str, Any]]] | None = None

    def _add_decoder(self, hidden: list[int] | None) -> None:
        """Make decoder and pose range, with so many units in the decoder's hidden layers; the paper's with None."""
        info, K = self.info, len(self.info.class_names)
        shape = (info.in_channels, info.input_size, info.input_size)
        self.decoder = Decoder(K, info.pose_size, shape, tuple(hidden or (512, 1024)))
        self.register_buffer("pose_range", torch.tensor([-1.0, 1.0])[:, None, None].repeat(1, K, info.pose_size))

    @property
    def matrices(self) -> bool:
        """Whether poses are matrices, not squashed, whose length does not say how sure the class is."""
        return False

    def decode(self, poses: Tensor, digits: Tensor | None = None) -> Tensor:
        """Redraw images from the pose of one capsule each; the other capsules are set to zero.

        Args:
            poses: (B, K, P).
            digits: (B,), whose capsule to draw from: the label while training; None takes the longest capsule.
        Returns:
            (B, C, H, W) in [0, 1].
        Raises:
            ValueError: poses or digits of another shape, or no digits for matrix capsules.
        """
        if poses.ndim != 3 or poses.shape[1:] != self.pose_range.shape[1:]:
            draws = ", ".join(map(str, self.pose_range.shape[1:]))
            raise ValueError(f"poses have shape {tuple(poses.shape)}; this model draws from (batch, {draws}).")
        if digits is None and self.matrices:
            raise ValueError("poses of matrix capsules do not say which is active; pass digits: out.lengths.argmax(1).")
        digits = longest(poses) if digits is None else torch.as_tensor(digits, device=poses.device)
        if digits.shape != poses.shape[:1] or digits.dtype.is_floating_point or digits.dtype == torch.bool:
            given = f"{tuple(digits.shape)} of {digits.dtype}"
            raise ValueError(f"digits have shape {given}; pass ({len(poses)},), a class index for each pose.")
        # Not on a GPU, which would have to finish first, nor compiled, where values are not known yet.
        looked_at = digits.device.type == "cpu" and not torch.compiler.is_compiling()
        if looked_at and not ((digits >= 0) & (digits < poses.shape[1])).all():
            raise ValueError(f"digits are class indices from 0 to {poses.shape[1] - 1}, not {digits.tolist()}.")
        return self.decoder(poses, digits)
