"""Matrix capsules: poses of 4×4 numbers beside an activation of their own.

Hinton, Sabour, Frosst 2018, "Matrix capsules with EM routing". https://openreview.net/forum?id=HJWLfGWRb
"""

import torch
from torch import Tensor, nn

from capsnet.functional import at_least_float32
from capsnet.layers import Capsules

SIDE = 4  # of a pose matrix
POSE = SIDE * SIDE  # its numbers, row by row


class MatrixPrimaryCapsules(nn.Module):
    """One convolution gives each position of each type a 4×4 pose, linear, and an activation through a sigmoid.

    (B, in_channels, H, W) → Capsules of poses (B, types·H'·W', 16) and activations in (0, 1), in the order
    (type, row, column).
    Source: Hinton, Sabour, Frosst 2018, section 5: 1×1. That poses start around the identity is ours.
    """

    def __init__(self, in_channels: int, types: int = 32, kernel: int = 1, stride: int = 1):
        super().__init__()
        self.types, self.dim = types, POSE
        self.conv = nn.Conv2d(in_channels, types * (POSE + 1), kernel, stride)  # all poses first, then activations
        # Poses are multiplied layer by layer and averaged over children: around the identity they keep their size.
        assert self.conv.bias is not None
        with torch.no_grad():
            self.conv.bias[: types * POSE] = torch.eye(SIDE).flatten().repeat(types)
            self.conv.bias[types * POSE :] = 0

    def map_size(self, side: int) -> int:
        return (side - self.conv.kernel_size[0]) // self.conv.stride[0] + 1

    def forward(self, features: Tensor) -> Capsules:
        x = at_least_float32(self.conv(features))  # (B, types·17, H', W'); the sigmoid stays in float32 under autocast
        B, _, H, W = x.shape
        poses, activations = x.split([self.types * POSE, self.types], dim=1)
        poses = poses.reshape(B, self.types, POSE, H * W).transpose(2, 3)  # (B, types, H'·W', 16)
        return Capsules(poses.reshape(B, -1, POSE), activations.reshape(B, -1).sigmoid(), (H, W))
