"""Evidence adds up to what a capsule says, and receptive fields are what a capsule sees."""

import pytest
import torch

from capsnet.explain import alike, explain, receptive_field
from capsnet.functional import directions
from capsnet.layers import Capsules
from capsnet.models import CONFIGS, create_model

SMALL = ["capsnet-small", *(name for name in CONFIGS if name not in ("capsnet", "capsnet-small", "cnn", "student"))]


@pytest.fixture(scope="module", params=SMALL)
def model(request):
    torch.manual_seed(0)
    model = create_model(request.param).eval()
    with torch.no_grad():  # so that no bias, prior or β is the same for all
        for name, parameter in model.routing.named_parameters():
            if name in ("bias", "prior", "beta_a"):
                parameter += 0.1 * torch.randn_like(parameter)
    return model


@pytest.fixture
def image(model):
    side = model.info.input_size
    return torch.rand(1, side, side, generator=torch.Generator().manual_seed(1))


def before_squash(name, length):
    """What evidence and bias together are, from the length that comes of it."""
    if name == "em-capsnet":
        return length.logit()
    if name in ("efficient-capsnet", "attention-capsnet", "multi-head-capsnet"):
        return -torch.log1p(-length)
    return (length / (1 - length)).sqrt()


@torch.no_grad()
def test_evidence_and_bias_add_up_to_the_length(model, image):
    name, routing = model.info.name, model.routing
    explanation = explain(model, image)
    for t, (step, round) in enumerate(zip(model(image[None], trace=True).trace, explanation.rounds, strict=True)):
        total = round.evidence.sum(0)
        if name == "em-capsnet":
            total = total + 1600 * routing.inverse_temperature * (1 - 0.95 ** (t + 1)) * routing.beta_a
        elif getattr(routing, "bias", None) is not None:
            total = total + (routing.bias * directions(step["capsules"].poses[0])).sum(-1)
        torch.testing.assert_close(total, before_squash(name, round.lengths), rtol=1e-3, atol=1e-4)
        assert (round.evidence < 0).any() or name == "em-capsnet"


def test_the_last_round_is_the_answer(model, image):
    with torch.inference_mode():
        out = model(image[None])
    explanation = explain(model, image)
    assert len(explanation.rounds) == getattr(model.routing, "iterations", 1)
    torch.testing.assert_close(explanation.rounds[-1].lengths, out.lengths[0])
    torch.testing.assert_close(explanation.rounds[-1].coupling, out.coupling[0])


def test_evidence_by_place_is_the_sum_over_types(model, image):
    explanation = explain(model, image)
    height, width = explanation.children.grid
    places, evidence = explanation.by_place(0), explanation.rounds[0].evidence
    assert places.shape == (10, height, width)
    expected = sum(evidence[t * height * width + (height - 1) * width] for t in range(model.primary.types))
    torch.testing.assert_close(places[:, -1, 0], expected)


@torch.no_grad()
def test_a_capsule_sees_its_field_and_nothing_else(model, image):
    """Other pixels outside change nothing, every border row and column inside changes something."""
    side, stride = receptive_field(model)
    height, width = model.encode(image[None]).grid
    row, column = height - 1, width // 2

    def at_the_place(picture):
        poses = model.encode(picture[None]).poses[0].unflatten(0, (-1, height, width))
        return poses[:, row, column]

    top, left = stride * row, stride * column
    before, outside = at_the_place(image), 1 - image
    field = (0, slice(top, top + side), slice(left, left + side))
    outside[field] = image[field]
    torch.testing.assert_close(at_the_place(outside), before)
    for edge in ((top, left), (top + side - 1, left + side - 1)):
        inside = image.clone()
        inside[0, edge[0], left : left + side] = 1 - inside[0, edge[0], left : left + side]
        assert not torch.equal(at_the_place(inside), before)
        inside = image.clone()
        inside[0, top : top + side, edge[1]] = 1 - inside[0, top : top + side, edge[1]]
        assert not torch.equal(at_the_place(inside), before)


def test_fields_by_hand():
    # 9×9, then 9×9 of those at stride 2: 9 + 8; a new one every 2 pixels.
    assert receptive_field(create_model("capsnet-small")) == (17, 2)
    # 5, 3, 3, 3 with stride 2 at the end: 5 + 2 + 2 + 2; the 9×9 above it reach 8 · 2 further.
    assert receptive_field(create_model("em-capsnet")) == (11, 2)
    assert receptive_field(create_model("efficient-capsnet")) == (27, 2)
    hidden = [{"routing": "dynamic", "capsules": 32, "pose_size": 8}]
    assert receptive_field(create_model("capsnet-small", hidden=hidden)) == (28, 28)


def test_capsules_above_hidden_layers_are_one_place():
    image = torch.rand(1, 28, 28)
    model = create_model("capsnet-small", hidden=[{"routing": "dynamic", "capsules": 32, "pose_size": 8}]).eval()
    explanation = explain(model, image)
    assert explanation.rounds[-1].evidence.shape == (32, 10) and explanation.by_place(-1).shape == (10, 1, 1)
    hidden = [{"routing": "em-conv", "capsules": 4, "pose_size": 16}]
    model = create_model("em-capsnet", primary_options={"types": 4}, hidden=hidden).eval()
    assert explain(model, image).by_place(-1).shape == (10, 1, 1)


def test_alike_by_hand():
    def of(poses, activations):
        return alike(Capsules(torch.tensor([poses]), torch.tensor([activations])))

    assert of([[2.0, 0.0], [0.5, 0.0]], [1.0, 0.3]) == pytest.approx(1)
    assert of([[1.0, 0.0], [-1.0, 0.0]], [0.5, 0.5]) == pytest.approx(0)
    assert of([[1.0, 0.0], [0.0, 1.0]], [0.75, 0.25]) == pytest.approx((0.75**2 + 0.25**2) ** 0.5)
    assert of([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0]) == 0
