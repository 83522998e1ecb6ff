import torch
import torch.nn.functional as F

from capsnet.matrix import MatrixPrimaryCapsules


def test_primary_capsules_are_in_the_order_type_row_column():
    torch.manual_seed(0)
    primary, features = MatrixPrimaryCapsules(3, 4, kernel=2, stride=2), torch.randn(2, 3, 6, 5)
    out = primary(features)
    channels = F.conv2d(features, primary.conv.weight, primary.conv.bias, stride=2)  # (2, 68, 3, 2)
    assert out.grid == (3, 2) and out.poses.shape == (2, 24, 16) and out.activations.shape == (2, 24)
    for type in range(4):
        for row in range(3):
            for column in range(2):
                child = type * 6 + row * 2 + column
                torch.testing.assert_close(out.poses[:, child], channels[:, type * 16 : type * 16 + 16, row, column])
                torch.testing.assert_close(out.activations[:, child], channels[:, 64 + type, row, column].sigmoid())


def test_primary_capsules_start_at_the_identity_half_active():
    out = MatrixPrimaryCapsules(5, 3)(torch.zeros(1, 5, 2, 2))
    torch.testing.assert_close(out.poses.view(12, 4, 4), torch.eye(4).expand(12, 4, 4))
    assert (out.activations == 0.5).all()


def test_primary_capsules_leave_autocast_in_float32():
    with torch.autocast("cpu", torch.bfloat16):
        out = MatrixPrimaryCapsules(5, 3)(torch.zeros(1, 5, 2, 2))
    assert out.poses.dtype == out.activations.dtype == torch.float32
