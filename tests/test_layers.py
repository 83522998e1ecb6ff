import pytest
import torch
import torch.nn.functional as F

from capsnet.functional import squash
from capsnet.layers import ConvTrunk, Decoder, PrimaryCapsules, longest


@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 32), (2, 48)])
def test_trunk(channels, size):
    trunk, images = ConvTrunk(channels, 6), torch.rand(2, channels, size, size)
    out = trunk(images)
    assert out.shape == (2, 6, size - 8, size - 8)
    torch.testing.assert_close(out, F.conv2d(images, trunk.conv.weight, trunk.conv.bias).clamp_min(0))
    assert (out == 0).any()


TYPES, DIM = 4, 5


@pytest.fixture
def primary():
    torch.manual_seed(0)
    return PrimaryCapsules(3, TYPES, DIM, kernel=3, stride=2)


def test_primary_capsules_are_in_the_order_type_row_column(primary):
    features = torch.randn(2, 3, 9, 9)
    out = primary(features)
    channels = F.conv2d(features, primary.conv.weight, primary.conv.bias, stride=2)  # (2, 20, 4, 4)
    assert out.grid == (4, 4) and out.poses.shape == (2, TYPES * 16, DIM)
    for t in range(TYPES):
        for row in range(4):
            for column in range(4):
                expected = squash(channels[:, t * DIM : (t + 1) * DIM, row, column])
                torch.testing.assert_close(out.poses[:, t * 16 + row * 4 + column], expected)
    torch.testing.assert_close(out.activations, out.poses.square().sum(-1).sqrt())


@pytest.mark.parametrize(
    ("row", "column", "rows", "columns"),
    [(0, 0, [0], [0]), (4, 4, [1, 2], [1, 2]), (8, 3, [3], [1]), (5, 6, [2], [2, 3])],
)
def test_a_pixel_touches_only_the_capsules_that_see_it(primary, row, column, rows, columns):
    """At stride 2 and 3×3 the capsule in row r sees the pixel rows 2r to 2r + 2."""
    features = torch.randn(1, 3, 9, 9)
    changed = features.clone()
    changed[0, :, row, column] += 1
    difference = (primary(changed).poses - primary(features).poses).abs().amax(2)[0]
    touched = difference.view(TYPES, 4, 4) > 1e-4
    expected = torch.zeros(TYPES, 4, 4, dtype=torch.bool)
    for r in rows:
        expected[:, r, columns] = True
    assert torch.equal(touched, expected)


def test_one_channel_group_is_one_type(primary):
    features = torch.randn(1, 3, 9, 9)
    before = primary(features).poses
    with torch.no_grad():
        primary.conv.weight[2 * DIM] += 1  # the first number of type 2
    changed = (primary(features).poses - before).abs().amax(2)[0].view(TYPES, 16) > 1e-6
    assert changed[2].all() and not changed[[0, 1, 3]].any()


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("batch", [1, 20])
def test_primary_capsules_in_any_memory_layout(batch, layout):
    torch.manual_seed(0)
    primary, features = PrimaryCapsules(16, 2, 4), torch.rand(batch, 16, 20, 20)
    expected = primary.double()(features.double()).poses
    out = primary.float().to(memory_format=layout)(features.contiguous(memory_format=layout))
    assert out.poses.shape == (batch, 72, 4)
    torch.testing.assert_close(out.poses, expected.float(), rtol=1e-4, atol=1e-5)


def test_squash_of_primary_capsules_stays_in_float32(primary):
    with torch.autocast("cpu", torch.bfloat16):
        assert primary(torch.randn(1, 3, 9, 9)).poses.dtype == torch.float32
    assert primary.double()(torch.randn(1, 3, 9, 9, dtype=torch.float64)).poses.dtype == torch.float64


@pytest.fixture
def decoder():
    torch.manual_seed(0)
    return Decoder(10, 16, (1, 28, 28), (512, 1024))


def test_decoder_reads_all_160_numbers(decoder):
    widths = [(m.in_features, m.out_features) for m in decoder.net if hasattr(m, "in_features")]
    assert widths == [(160, 512), (512, 1024), (1024, 784)]


def test_decoder_by_explicit_matrices(decoder):
    poses, digits = torch.randn(2, 10, 16), torch.tensor([3, 9])
    first, second, third = (m for m in decoder.net if hasattr(m, "weight"))
    x = torch.zeros(2, 160)
    x[0, 48:64], x[1, 144:160] = poses[0, 3], poses[1, 9]
    x = (x @ first.weight.T + first.bias).clamp_min(0)
    x = (x @ second.weight.T + second.bias).clamp_min(0)
    x = 1 / (1 + torch.exp(-(x @ third.weight.T + third.bias)))
    torch.testing.assert_close(decoder(poses, digits), x.view(2, 1, 28, 28))


def test_decoder_sees_the_chosen_capsule_alone(decoder):
    poses, digits = torch.randn(2, 10, 16), torch.tensor([3, 9])
    picture = decoder(poses, digits)
    others = torch.randn(2, 10, 16)
    others[[0, 1], digits] = poses[[0, 1], digits]
    assert torch.equal(decoder(others, digits), picture)
    others[0, 3] += 1
    assert not torch.equal(decoder(others, digits)[0], picture[0])


def test_the_same_pose_in_another_capsule_is_another_picture(decoder):
    poses = torch.randn(1, 1, 16).expand(1, 10, 16)
    a, b = decoder(poses, torch.tensor([1])), decoder(poses, torch.tensor([2]))
    assert (a - b).abs().max() > 1e-3


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (2, 48, 48)])
def test_decoder_shapes_and_range(shape):
    picture = Decoder(5, 8, shape, (8, 9))(100 * torch.randn(1, 5, 8), torch.tensor([4]))
    assert picture.shape == (1, *shape) and picture.min() >= 0 and picture.max() <= 1


def test_longest():
    poses = torch.tensor([[[3.0, 4.0], [0.0, -6.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.5], [0.9, 0.9]]])
    assert longest(poses).tolist() == [1, 2]
    assert longest(poses[0]).item() == 1
