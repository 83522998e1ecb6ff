"""The plain network: its layers by hand, and that it goes the same way as the others through training and files."""

import pytest
import torch
import torch.nn.functional as F

from capsnet.baseline import CNN
from capsnet.card import write_card
from capsnet.checkpoint import load_model, read_json, save_model
from capsnet.configuration import TrainingConfig, recipe
from capsnet.data import to_float
from capsnet.models import create_model
from capsnet.rejection import DOUBT, judge
from capsnet.step import evaluate
from capsnet.training import train


@pytest.fixture
def model():
    torch.manual_seed(0)
    return create_model("cnn").eval()


def test_as_many_parameters_as_efficient_capsnet_without_its_decoder(model):
    trunk = sum(p.numel() for p in create_model("efficient-capsnet").trunk.parameters())
    head = 128 * (81 + 1) + 128 * 148 + 148 + 148 * 10 + 10
    count = sum(p.numel() for p in model.parameters())
    assert count == trunk + head and abs(count - 161_824) < 139  # a unit more or less is 139


def test_its_lengths_are_the_softmax_of_what_its_layers_give(model, digits):
    images = to_float(digits.images[:3])
    depthwise, *_, first, _, second = model.head
    features = model.trunk(images)  # (3, 128, 9, 9)
    summed = (features * depthwise.weight[:, 0]).sum((2, 3)) + depthwise.bias
    by_hand = F.relu(F.relu(summed) @ first.weight.T + first.bias) @ second.weight.T + second.bias
    out = model(images)
    assert torch.allclose(out.logits, by_hand, atol=1e-5)
    assert torch.allclose(out.lengths, by_hand.exp() / by_hand.exp().sum(1, keepdim=True), atol=1e-6)


def test_one_image_alone_is_read_as_among_others(model, digits):
    images = to_float(digits.images)
    assert torch.allclose(model(images[:1]).lengths, model(images).lengths[:1], atol=1e-6)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"input_size": 12}, "needs at least 13"),
        ({"units": 0}, "units is 0"),
        ({"class_names": ["one"]}, "at least two"),
        ({"in_channels": 4}, "1 to 3 channels"),
        ({"rejection_threshold": -1.0}, "above 0"),
    ],
)
def test_settings_that_fit_no_network(settings, message):
    with pytest.raises(ValueError, match=message):
        CNN(**settings)


def test_images_of_another_shape_are_refused(model):
    with pytest.raises(ValueError, match=r"reads \(batch, 1, 28, 28\)"):
        model(torch.zeros(1, 3, 28, 28))


def test_its_strangeness_is_the_doubt_of_its_softmax(model, digits):
    images = to_float(digits.images[:8])
    top = model(images).lengths.sort(1, descending=True).values
    found = judge(model, images)
    assert torch.allclose(found.strangeness, DOUBT * (1 - top[:, 0] + top[:, 1]), atol=1e-6)


def test_the_loss_is_the_cross_entropy(model, digits):
    config = recipe("cnn")
    picked = model(to_float(digits.images)).lengths[torch.arange(len(digits)), digits.labels]
    assert evaluate(model, digits, config)["loss"] == pytest.approx(-picked.log().mean().item(), rel=1e-5)


def test_it_is_trained_saved_and_loaded_like_the_others(digits, tmp_path):
    config = recipe("cnn", epochs=2, batch_size=8, pen_share=0.0, precision="fp32", warm_up=0.0)
    trained = train(config, digits, digits, tmp_path, log=lambda line: None)
    history = read_json(tmp_path / "metrics.json")["history"]
    assert history[1]["loss"] < history[0]["loss"]
    again = load_model(tmp_path)
    assert isinstance(again, CNN) and again.info == trained.info and again.info.pose_size == 0
    assert again.rejection_threshold == trained.rejection_threshold > 0
    images = to_float(digits.images)
    assert torch.allclose(again(images).lengths, trained.eval()(images).lengths, atol=2e-2)  # stored in fp16
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "cross-entropy" in card and "pose" not in card and "capsules long" not in card
    save_model(again, tmp_path / "copy")
    for name in ("training.json", "metrics.json"):
        (tmp_path / "copy" / name).write_bytes((tmp_path / name).read_bytes())
    write_card(tmp_path / "copy", again)
    assert (tmp_path / "copy" / "README.md").read_text(encoding="utf-8") == card


@pytest.mark.parametrize("model, loss", [("cnn", "margin"), ("cnn", "spread"), ("capsnet", "cross-entropy")])
def test_a_loss_that_does_not_fit_the_model_is_refused(model, loss):
    with pytest.raises(ValueError, match=f"{model} is trained with"):
        TrainingConfig(model=model, loss=loss).check()
