import json

import pytest
import textbook
import torch
import torch.nn.functional as F

from capsnet.functional import lengths
from capsnet.losses import margin_loss, reconstruction_loss
from capsnet.models import CONFIGS, CapsNet, create_model
from capsnet.routing import ROUTING

# Convolution 9×9 · 256 + 256, primary capsules 9×9 · 256 · 256 + 256, W 1152 · 8 · 10 · 16, routing bias 10 · 16,
# decoder 160 · 512 + 512, 512 · 1024 + 1024, 1024 · 784 + 784; the small one likewise with 64, 288 and [256, 512].
# The published count of Efficient-CapsNet leaves out the decoder, the same as CapsNet's.
PARAMETERS = {
    "capsnet": 8_215_568 + 160,
    "capsnet-small": 1_280_720 + 160,
    "efficient-capsnet": 161_824 + 1_411_344,
    # Trunk 112,160, primary 96 · (64 + 1), W 48 · 8 · 10 · 16 or 8 · 10 · 16, bias or prior.
    "dynamic-capsnet": 112_160 + 6_240 + 61_440 + 160 + 574_992,
    "uniform-capsnet": 112_160 + 6_240 + 61_440 + 160 + 574_992,
    "affine-capsnet": 112_160 + 6_240 + 1_280 + 160 + 574_992,
    "windowed-capsnet": 112_160 + 6_240 + 61_440 + 160 + 574_992,
    "attention-capsnet": 112_160 + 6_240 + 61_440 + 480 + 574_992,
    "multi-head-capsnet": 112_160 + 6_240 + 61_440 + 480 + 2 * 10 * 16 * 16 + 574_992,
    # Queries, keys and reflections of 8×8.
    "orth-capsnet": 112_160 + 6_240 + 61_440 + 160 + 3 * 64 + 574_992,
    "cnn": 161_766,
    # Four convolutions with 2 numbers to normalise each channel, 1024 · 256 + 256, 256 · 160 + 160; capsnet's decoder.
    "student": 896 + 18_624 + 2 * 37_056 + 262_400 + 41_120 + 1_411_344,
    # Trunk of five convolutions with 2 numbers to normalise each channel; primary 128 · (16 · 256 + 1), 2 · 8 to
    # normalise; W 144 · 8 · 160 + 160; decoder 161 · 256 + 257 · 320 + 321 · 1296.
    "multi-capsnet": 896 + 18_624 + 74_112 + 295_680 + 590_592 + 524_432 + 184_320 + 160 + 539_472,
    # Primary 16 · 17 · (96 + 1), W 16 · 10 · 16, β 2 · 10.
    "em-capsnet": 112_160 + 26_384 + 2_560 + 20 + 574_992,
}


@pytest.fixture
def model(small):
    torch.manual_seed(0)
    return create_model("small")


def images(batch, channels=1, size=28, dtype=torch.float32):
    """Strokes on paper, as far as the network is concerned: smooth blobs in [0, 1]."""
    generator = torch.Generator().manual_seed(batch)
    coarse = torch.rand(batch, channels, 7, 7, generator=generator, dtype=dtype)
    return F.interpolate(coarse, (size, size), mode="bilinear").sub(0.4).clamp_min(0).div(0.6)


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_every_configuration_has_its_parameter_count_here():
    assert PARAMETERS.keys() == CONFIGS.keys()


@pytest.mark.parametrize("name", CONFIGS)
def test_parameter_count(name):
    assert count(create_model(name)) == PARAMETERS[name]


def test_parameter_count_of_the_paper():
    model = create_model("capsnet", routing_options={"bias": False})
    assert count(model) == 8_215_568
    assert {part: count(getattr(model, part)) for part in ("trunk", "primary", "routing", "decoder")} == {
        "trunk": 20_992,
        "primary": 5_308_672,
        "routing": 1_474_560,
        "decoder": 1_411_344,
    }


@pytest.mark.parametrize("name", sorted(CONFIGS.keys() - {"cnn", "student"}))
def test_every_configuration_runs_forward_and_backward_on_one_image(name):
    torch.manual_seed(0)
    model = create_model(name)
    x = images(1, size=model.info.input_size)
    out = model(x)
    assert model.info.name == name and len(model.info.class_names) == 10
    assert out.lengths.shape == (1, 10) and out.poses.shape == (1, 10, 16)
    assert out.coupling.shape[::2] == (1, 10) and out.trace is None
    if name != "em-capsnet":  # whose lengths are activations of their own
        torch.testing.assert_close(out.lengths, lengths(out.poses))
    # Room to learn in both directions; the exponential squash has slope 1 even at zero.
    least = 0.005 if model.config["routing"] in ("self-attention", "multi-head-attention") else 0.05
    assert least < out.lengths.mean() < 0.9
    picture = model.decode(out.poses, torch.tensor([3]))
    loss = margin_loss(out.lengths, torch.tensor([3])) + 0.0005 * reconstruction_loss(picture, x)
    loss.backward()
    for name, p in model.named_parameters():
        assert p.grad.isfinite().all() and p.grad.abs().max() > 0, name


@pytest.mark.parametrize(("channels", "size", "side"), [(1, 28, 6), (3, 32, 8), (2, 48, 16), (1, 36, 10), (1, 17, 1)])
def test_other_sizes_and_channels(small, channels, size, side):
    model = create_model("small", in_channels=channels, input_size=size)
    for batch in (1, 3):
        out = model(images(batch, channels, size))
        assert out.coupling.shape == (batch, 2 * side**2, 10)
        assert model.decode(out.poses).shape == (batch, channels, size, size)
    assert (model.info.in_channels, model.info.input_size) == (channels, size)


MATRIX = {"primary": "matrix", "primary_options": {"types": 2, "kernel": 14}}
NETWORKS = [
    *({"routing": name} for name in ROUTING if not name.startswith("em")),
    {**MATRIX, "routing": "em"},
    {"projection": 2},
    {"hidden": [{"routing": "dynamic", "capsules": 6, "pose_size": 8}]},
    {"hidden": [{"routing": "windowed", "capsules": 6, "pose_size": 8, "options": {"window": 3}}], "projection": 3},
    {**MATRIX, "hidden": [{"routing": "em-conv", "capsules": 3, "pose_size": 16}], "routing": "em"},
]


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("settings", NETWORKS, ids=str)
def test_every_routing_serves(small, settings, batch):
    torch.manual_seed(0)
    model, x = create_model("small", **settings).eval(), images(batch)
    out = model(x, trace=True)
    assert out.poses.shape == (batch, 10, 16) and out.coupling.shape[::2] == (batch, 10)
    assert (out.lengths < 1).all() and torch.equal(out.trace[-1]["coupling"], out.coupling)
    alone = model(x[:1])
    torch.testing.assert_close(alone.lengths, out.lengths[:1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(alone.coupling, out.coupling[:1], rtol=1e-4, atol=1e-5)
    margin_loss(out.lengths, torch.arange(batch)).backward()
    decoder = set(model.decoder.parameters())
    trained = [p for p in model.parameters() if p not in decoder]
    assert all(p.grad.isfinite().all() and p.grad.abs().max() > 0 for p in trained)
    again = CapsNet(**json.loads(json.dumps(model.config)))
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.eval()(x).lengths, out.lengths)


def test_projected_capsules_are_routed_by_a_product_of_two_matrices(small):
    """Uniform coupling of projected capsules is uniform coupling of the capsules with W P in the place of W."""
    model = create_model("small", projection=2, routing_options={"iterations": 1}).double()
    plain = create_model("small", routing_options={"iterations": 1}).double()
    with torch.no_grad():
        product = torch.einsum("pa,ipjd->iajd", model.projection.linear.weight, model.routing.weight)
        plain.load_state_dict({**model.state_dict(), "routing.weight": product}, strict=False)
    x = images(3, dtype=torch.float64)
    assert model.routing.weight.numel() * 2 == plain.routing.weight.numel()
    torch.testing.assert_close(model(x).poses, plain(x).poses)


def test_matrix_capsules_are_drawn_only_for_a_given_digit():
    model = create_model("em-capsnet").eval()
    out = model(images(2))
    assert model.decode(out.poses, out.lengths.argmax(1)).shape == (2, 1, 28, 28)
    with pytest.raises(ValueError, match="pass digits: out.lengths.argmax"):
        model.decode(out.poses)


def test_other_classes_and_poses(small):
    model = create_model("small", class_names=["ring", "bar", "dot"], pose_size=5, kind="pair")
    out = model(images(2))
    assert out.poses.shape == (2, 3, 5) and model.decode(out.poses).shape == (2, 1, 28, 28)
    assert model.info.class_names == ["ring", "bar", "dot"]
    assert (model.info.pose_size, model.info.kind) == (5, "pair")


OPTIONS = [{}, {"bias": False, "iterations": 1}, {"leaky": True, "temperature": 0.5, "iterations": 2}]


@pytest.mark.parametrize("batch", [2, 5])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_textbook_in_values_and_gradients(small, options, batch):
    torch.manual_seed(0)
    ours = create_model("small", routing_options=options).double()
    with torch.no_grad():
        ours.routing.weight.mul_(3)  # far from uniform coupling
    theirs = textbook.CapsNet(ours)
    x, labels = images(batch, dtype=torch.float64), torch.arange(batch) * 7 % 10
    out, (expected_lengths, expected_poses, expected_coupling) = ours(x), theirs(x)
    torch.testing.assert_close(out.lengths, expected_lengths)
    torch.testing.assert_close(out.poses, expected_poses)
    torch.testing.assert_close(out.coupling, expected_coupling)
    picture = ours.decode(out.poses, labels)
    torch.testing.assert_close(picture, theirs.decode(expected_poses, labels))
    loss = margin_loss(out.lengths, labels) + 0.0005 * reconstruction_loss(picture, x)
    expected = theirs.loss(x, labels)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    for name, p in ours.named_parameters():
        torch.testing.assert_close(p.grad, theirs.weights[name].grad, rtol=1e-8, atol=1e-12, msg=name)


@pytest.mark.parametrize("batch", [1, 20])
def test_float32_equals_the_textbook(model, batch):
    """20 images take the Fourier form and factored votes, one image neither."""
    x = images(batch)
    out, exact = model(x), textbook.CapsNet(model.double())(x.double())
    torch.testing.assert_close(out.lengths, exact[0].float(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(out.coupling, exact[2].float(), rtol=1e-4, atol=1e-5)


def test_an_image_alone_is_read_as_in_a_batch(model):
    x = images(20)
    with torch.no_grad():
        whole, alone = model(x), model(x[:1])
    torch.testing.assert_close(alone.lengths, whole.lengths[:1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(alone.poses, whole.poses[:1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(alone.coupling, whole.coupling[:1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model.decode(alone.poses), model.decode(whole.poses)[:1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 20])
def test_the_same_images_give_the_same_answer_in_training_and_evaluation(model, batch):
    x = images(batch)
    first = model.train()(x)
    model(images(batch + 1))
    again = model.eval()(x)
    assert torch.equal(first.lengths, again.lengths) and torch.equal(first.coupling, again.coupling)


def test_channels_last(model):
    x = images(20)
    with torch.no_grad():
        plain = model(x).lengths
        last = model.to(memory_format=torch.channels_last)(x.contiguous(memory_format=torch.channels_last)).lengths
    torch.testing.assert_close(last, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 6])
def test_blank_paper_has_finite_gradients(small, batch):
    model = create_model("small")
    with torch.no_grad():  # primary capsules of exactly zero
        model.trunk.conv.bias.zero_()
        model.primary.conv.bias.zero_()
        model.routing.bias.zero_()
    x = torch.zeros(batch, 1, 28, 28, requires_grad=True)
    out = model(x)
    assert (out.lengths == 0).all()
    picture = model.decode(out.poses, torch.zeros(batch, dtype=torch.long))
    (margin_loss(out.lengths, torch.zeros(batch, dtype=torch.long)) + reconstruction_loss(picture, x)).backward()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_decode_draws_the_given_digit_or_the_longest_capsule(model):
    poses = torch.randn(2, 10, 16) * 0.1
    poses[0, 4], poses[1, 7] = 0.2, 0.2
    labels = torch.tensor([1, 7])
    assert torch.equal(model.decode(poses), model.decode(poses, torch.tensor([4, 7])))
    assert torch.equal(model.decode(poses, labels), model.decoder(poses, labels))
    assert not torch.equal(model.decode(poses, labels)[0], model.decode(poses)[0])


def test_decode_takes_a_list_of_digits_of_the_right_length(model):
    poses = torch.rand(2, 10, 16)
    assert torch.equal(model.decode(poses, [3, 5]), model.decode(poses, torch.tensor([3, 5])))
    with pytest.raises(ValueError, match=r"digits have shape \(1,\) of torch.int64; pass \(2,\)"):
        model.decode(poses, [3])
    with pytest.raises(ValueError, match=r"digits have shape \(2,\) of torch.float32; pass \(2,\)"):
        model.decode(poses, [3.0, 1.0])
    for beyond in ([3, 10], [-1, 0]):
        with pytest.raises(ValueError, match="digits are class indices from 0 to 9, not"):
            model.decode(poses, beyond)


def test_trace(model):
    out = model(images(2), trace=True)
    assert [step["coupling"].shape for step in out.trace] == [(2, 72, 10)] * 3
    torch.testing.assert_close(out.trace[-1]["capsules"].poses, out.poses)


@pytest.mark.parametrize("batch", [2, 20])
def test_bf16_autocast_is_finite_and_close(model, batch):
    x, labels = images(batch), torch.arange(batch) % 10
    plain = model(x)
    with torch.autocast("cpu", torch.bfloat16):
        out = model(x)
        picture = model.decode(out.poses, labels)
    assert out.lengths.dtype == picture.dtype == torch.float32
    torch.testing.assert_close(out.lengths, plain.lengths, rtol=0, atol=0.02)
    torch.testing.assert_close(picture, model.decode(plain.poses, labels), rtol=0, atol=0.02)
    (margin_loss(out.lengths, labels) + reconstruction_loss(picture, x)).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("batch", [2, 20])
def test_compiled_equals_eager(model, batch):
    x = images(batch)
    compiled = torch.compile(model, backend="aot_eager")
    torch.testing.assert_close(compiled(x).lengths, model(x).lengths, rtol=1e-4, atol=1e-5)


def test_configuration_rebuilds_the_model(small):
    options = {"iterations": 2, "leaky": True}
    model = create_model("small", routing_options=options, in_channels=3, input_size=20, class_names=["a", "b"])
    again = CapsNet(**json.loads(json.dumps(model.config)))
    assert again.info == model.info and again.config == model.config
    again.load_state_dict(model.state_dict())
    x = images(2, 3, 20)
    assert torch.equal(again(x).lengths, model(x).lengths)
    assert (again.routing.iterations, again.routing.leaky) == (2, True)


def test_pose_range_is_saved_with_the_weights_but_not_trained(model):
    assert model.state_dict()["pose_range"].shape == (2, 10, 16)
    assert "pose_range" not in dict(model.named_parameters())
    assert (model.pose_range[0] == -1).all() and (model.pose_range[1] == 1).all()


@pytest.mark.parametrize("shape", [(28, 28), (1, 28, 28), (2, 3, 28, 28), (2, 1, 32, 32), (2, 28, 28, 1)], ids=str)
def test_images_of_another_shape(model, shape):
    with pytest.raises(ValueError) as error:
        model(torch.zeros(shape))
    assert str(error.value) == f"images have shape {shape}; this model reads (batch, 1, 28, 28)."


@pytest.mark.parametrize("shape", [(10, 16), (2, 16), (2, 9, 16), (2, 10, 8)], ids=str)
def test_poses_of_another_shape(model, shape):
    with pytest.raises(ValueError) as error:
        model.decode(torch.zeros(shape))
    assert str(error.value) == f"poses have shape {shape}; this model draws from (batch, 10, 16)."


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trunk_options": {"channels": 0}}, "channels is 0; it must be at least 1."),
        ({"primary_options": {"types": 0}}, "types is 0; it must be at least 1."),
        ({"pose_size": -2}, "pose_size is -2; it must be at least 1."),
        ({"in_channels": 4}, "in_channels is 4; images have 1 to 3 channels."),
        ({"in_channels": 0}, "in_channels is 0; images have 1 to 3 channels."),
        ({"input_size": 16}, "input_size is 16; this network needs at least 17."),
        ({"input_size": -3}, "input_size is -3; this network needs at least 17."),
        ({"trunk": "oak"}, "there is no trunk 'oak'; choose one of conv, efficient."),
        ({"primary": "linear"}, "there is no primary 'linear'; choose one of conv, depthwise, matrix."),
        ({"routing": "em"}, 'EM routing is for poses of 16 numbers, not from 8 to 16; take primary="matrix" below it.'),
        ({"class_names": []}, "class_names are []; give at least two, each another word."),
        ({"class_names": ["a", "a"]}, "class_names are ['a', 'a']; give at least two, each another word."),
        ({"primary": "depthwise", "primary_options": {"dim": 0}}, "dim is 0; it must be at least 1."),
        ({"hidden": [{"routing": "dynamic", "capsules": 0, "pose_size": 8}]}, "capsules is 0; it must be at least 1."),
        ({"projection": 0}, "projection is 0; it must be at least 1."),
        (
            {"primary": "matrix", "primary_options": {"types": 2}, "routing": "em-conv"},
            "routing 'em-conv' leaves 3240 capsules for 10 classes; use it hidden.",
        ),
        (
            {"primary": "matrix", "primary_options": {"kernel": 19}, "routing": "em-conv"},
            "routing 'em-conv' needs a larger grid than 2×2.",
        ),
        ({"routing_options": {"iterations": 0}}, "iterations is 0; routing needs at least 1."),
    ],
)
def test_impossible_settings(settings, message):
    with pytest.raises(ValueError) as error:
        create_model("capsnet-small", **settings)
    assert str(error.value) == message


def test_options_of_a_replaced_part_go_with_it():
    model = create_model("capsnet-small", primary="depthwise")
    assert model.config["trunk_options"] == {"channels": 64} and "primary_options" not in model.config
    assert (model.primary.types, model.primary.dim) == (8, 8)


def test_unknown_routing():
    with pytest.raises(ValueError, match="^there is no routing 'static'; choose one of dynamic, self-attention, "):
        create_model("capsnet-small", routing="static")


def test_unknown_configuration():
    with pytest.raises(ValueError, match="^there is no configuration 'capsule'; choose one of capsnet, capsnet-small"):
        create_model("capsule")
