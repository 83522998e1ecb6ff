import math

import pytest
import torch
import torch.nn.functional as F

from capsnet.functional import squash
from capsnet.layers import ConvTrunk, Decoder, DepthwiseCapsules, EfficientTrunk, PrimaryCapsules, he_normal_, longest


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


def test_primary_capsules_normalised_before_the_squash():
    torch.manual_seed(0)
    primary = PrimaryCapsules(3, TYPES, DIM, kernel=3, normalise=True)
    with torch.no_grad():
        primary.norm.weight.uniform_(0.5, 2), primary.norm.bias.normal_()
    features = torch.randn(2, 3, 9, 9)
    out = primary(features)
    channels = F.conv2d(features, primary.conv.weight, primary.conv.bias, stride=2)
    x = channels[1, 2 * DIM : 3 * DIM, 3, 1]  # of the third type
    x = (x - x.mean()) / ((x - x.mean()).square().mean() + 1e-5).sqrt()
    expected = squash((x * primary.norm.weight + primary.norm.bias)[None])[0]
    torch.testing.assert_close(out.poses[1, 2 * 16 + 3 * 4 + 1], expected)
    still = PrimaryCapsules(3, 1, 4, kernel=3, normalise=True)
    still(torch.zeros(1, 3, 9, 9)).poses.sum().backward()  # nothing to normalise by
    assert all(p.grad.isfinite().all() for p in still.parameters())


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


@pytest.fixture
def efficient_trunk():
    """A small one, whose normalisation has seen something."""
    torch.manual_seed(0)
    trunk = EfficientTrunk(2, (4, 5, 6, 8))
    for layer in trunk.layers[2::3]:
        for tensor in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
            torch.nn.init.uniform_(tensor, 0.5, 1.5)
    return trunk.eval()


def test_efficient_trunk_normalises_after_relu(efficient_trunk):
    images = torch.rand(2, 2, 20, 20)
    x, modules = images, list(efficient_trunk.layers)
    for conv, norm, stride in zip(modules[0::3], modules[2::3], (1, 1, 1, 2), strict=True):
        x = F.conv2d(x, conv.weight, conv.bias, stride).clamp_min(0)
        x = (x - norm.running_mean[:, None, None]) / (norm.running_var[:, None, None] + 1e-3).sqrt()
        x = x * norm.weight[:, None, None] + norm.bias[:, None, None]
    torch.testing.assert_close(efficient_trunk(images), x)
    assert [tuple(m.weight.shape[2:]) for m in modules[0::3]] == [(5, 5), (3, 3), (3, 3), (3, 3)]


@pytest.mark.parametrize(("channels", "size", "left"), [(1, 13, 2), (1, 28, 9), (3, 32, 11), (2, 33, 12), (2, 48, 19)])
@pytest.mark.parametrize("batch", [1, 3])
def test_efficient_trunk_and_its_capsules_at_any_size(batch, channels, size, left):
    trunk = EfficientTrunk(channels, (4, 4, 4, 8))
    assert trunk.map_size(size) == left
    features = trunk(torch.rand(batch, channels, size, size))  # also in training, where one image is normalised alone
    assert features.shape == (batch, 8, left, left)
    out = DepthwiseCapsules(8, 4, left)(features)
    assert out.poses.shape == (batch, 2, 4) and out.grid == (1, 1)


def test_efficient_trunk_of_more_convolutions():
    trunk = EfficientTrunk(1, (4, 5, 6, 7, 8), (1, 2, 1, 1, 1))
    assert [m.kernel_size for m in trunk.layers[0::3]] == [(5, 5), (3, 3), (3, 3), (3, 3), (3, 3)]
    assert trunk.map_size(36) == 9 and trunk(torch.rand(2, 1, 36, 36)).shape == (2, 8, 9, 9)
    with pytest.raises(ValueError, match=r"^channels are 3 and strides 2; each convolution needs both\.$"):
        EfficientTrunk(1, (4, 5, 6), (1, 2))


def test_efficient_trunk_leaves_nothing_of_12_pixels():
    assert EfficientTrunk(1).map_size(12) == 0


@pytest.mark.parametrize(("size", "side"), [(27, 6), (28, 6), (29, 7), (30, 7), (17, 1), (16, 0)])
def test_map_sizes(size, side):
    trunk, primary = ConvTrunk(1, 4), PrimaryCapsules(4, 2, 3)
    assert primary.map_size(trunk.map_size(size)) == side
    if side:
        assert primary(trunk(torch.rand(1, 1, size, size))).grid == (side, side)
    assert DepthwiseCapsules(6, 3, kernel=4).map_size(6) == 3


def test_start_of_the_efficient_network_is_that_of_keras():
    torch.manual_seed(0)
    trunk, primary = EfficientTrunk(1), DepthwiseCapsules()
    convs = [*trunk.layers[0::3], primary.conv]
    for conv, fan in zip(convs[1:4], (32 * 9, 64 * 9, 64 * 9), strict=True):
        assert conv.weight.std().item() == pytest.approx(math.sqrt(2 / fan), rel=0.03)
    glorot = math.sqrt(6 / (81 + 81 * 128))  # of one input and 128 outputs, 81 places each
    assert 0.99 * glorot < primary.conv.weight.abs().max() <= glorot
    assert primary.conv.weight.std().item() == pytest.approx(glorot / math.sqrt(3), rel=0.03)
    assert all((conv.bias == 0).all() for conv in convs)


def test_he_normal():
    weight = torch.empty(20, 30, 40)
    torch.manual_seed(0)
    he_normal_(weight, 50)
    assert weight.mean().abs() < 0.01 and weight.std().item() == pytest.approx(0.2, rel=0.02)
    cut = 2 * 0.2 / 0.8796  # more than a normal distribution of this deviation would be cut: 2.27 deviations
    assert 0.99 * cut < weight.abs().max() <= cut


def test_depthwise_capsules_are_in_the_order_type_row_column():
    torch.manual_seed(0)
    primary, features = DepthwiseCapsules(6, 3, kernel=4), torch.randn(2, 6, 6, 5)
    out = primary(features)
    assert out.poses.shape == (2, 2 * 3 * 2, 3) and out.grid == (3, 2)
    for t in range(2):
        for row in range(3):
            for column in range(2):
                window = features[:, :, row : row + 4, column : column + 4]
                s = (window * primary.conv.weight[:, 0]).sum((2, 3)) + primary.conv.bias  # a number a channel
                s = s[:, 3 * t : 3 * t + 3]
                n = s.square().sum(1, keepdim=True).sqrt()
                torch.testing.assert_close(out.poses[:, t * 6 + row * 2 + column], (1 - torch.exp(-n)) * s / n)
    torch.testing.assert_close(out.activations, out.poses.square().sum(-1).sqrt())


def test_depthwise_capsules_need_whole_capsules():
    with pytest.raises(ValueError) as error:
        DepthwiseCapsules(10, 8)
    assert str(error.value) == "channels is 10; capsules of 8 need a multiple of 8."


def test_efficient_network_below_routing_in_evaluation(efficient_trunk):
    """Each image by itself, also in bf16, compiled, and with its channels side by side in memory."""
    images, primary = torch.rand(3, 2, 20, 20), DepthwiseCapsules(8, 4, 5)
    network = torch.nn.Sequential(efficient_trunk, primary)
    out = network(images).poses
    torch.testing.assert_close(network(images[:1]).poses, out[:1])
    torch.testing.assert_close(network(images.contiguous(memory_format=torch.channels_last)).poses, out)
    compiled = torch.compile(network, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(images).poses, out)
    with torch.autocast("cpu", torch.bfloat16):
        half = network(images).poses
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, out, rtol=0, atol=0.05)
