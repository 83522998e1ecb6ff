"""What the laboratory is told: curves against single readings, sentences, requests that make no sense."""

import base64

import numpy as np
import pytest
import torch

from capsnet.demo import examples, laboratory, networks, words
from capsnet.distortions import DISTORTIONS, distort
from capsnet.models import create_model


@pytest.fixture
def pair(small):
    torch.manual_seed(0)
    return create_model("small").eval(), create_model("cnn").eval()


@pytest.mark.parametrize("kind", DISTORTIONS)
def test_steps_hold_all_amounts_in_even_parts(kind):
    steps, amounts = laboratory.steps(kind), DISTORTIONS[kind].amounts
    assert set(amounts) <= set(steps) and steps == sorted(steps) and len(steps) == 25
    assert steps[1] - steps[0] == pytest.approx((amounts[1] - amounts[0]) / 3, abs=1e-4)


def test_a_curve_is_what_single_readings_say(pair):
    capsules, plain = pair
    image = examples.image(3)
    found = laboratory.curves(capsules, plain, image, "rotation")
    steps, digit = found["amounts"], found["digit"]
    assert steps[found["start"]] == 0 and digit == int(capsules(image[None]).lengths.argmax())
    pictures = np.frombuffer(base64.b64decode(found["pictures"]), np.uint8).reshape(25, 28, 28)
    for n in (0, 7, found["start"], 24):
        changed = distort(image[None], "rotation", steps[n])
        assert np.abs(pictures[n] / 255 - changed[0, 0].numpy()).max() < 0.003
        out = capsules(changed)
        assert found["lengths"][n] == pytest.approx(out.lengths[0].tolist(), abs=6e-4)
        assert found["pose"][n] == pytest.approx(out.poses[0, digit].tolist(), abs=6e-4)
        assert found["plain"][n] == pytest.approx(plain(changed).lengths[0].tolist(), abs=6e-4)
    assert len(found["told"]) == 2
    moved = np.ptp(np.array(found["pose"]), axis=0)
    one, other = (int(found["moved"][name]) - 1 for name in ("one", "other"))
    assert one < other and min(moved[one], moved[other]) == pytest.approx(np.sort(moved)[-2], abs=2e-3)
    assert moved[int(found["moved"]["least"]) - 1] == pytest.approx(moved.min(), abs=2e-3)


def test_without_a_plain_network_there_is_none_of_its_curves(pair):
    found = laboratory.curves(pair[0], None, examples.image(0), "noise")
    assert "plain" not in found and len(found["told"]) == 1


@pytest.mark.parametrize(
    "answers, low, high",
    [([1, 7, 7, 7, 3], "−5", "5"), ([7, 7, 7, 7, 7], "−10", "10"), ([7, 1, 7, 2, 7], "0", "0")],
)
def test_how_far_an_answer_holds(pair, answers, low, high):
    lengths = torch.nn.functional.one_hot(torch.tensor(answers), 10).float()
    told = laboratory.sentence("laboratory.capsules", pair[0], lengths, [-10, -5, 0, 5, 10], "rotation")
    assert words.say(told) == f"The capsules stay with the 7 from {low} to {high} degrees clockwise."


def test_requests_that_make_no_sense_are_told_so(pair):
    several = {"small": pair[0]}
    sheet = {"kind": "sample", "index": 1, "network": "small", "distortion": "noise"}
    assert "amounts" in laboratory.show(several, None, sheet)
    assert "no model" in words.say(laboratory.show(several, None, {**sheet, "network": "large"})["why"])
    for nonsense in (None, "melt", 3, []):
        assert "no such change" in laboratory.show(several, None, {**sheet, "distortion": nonsense})["why"]
    for nonsense in (None, [], "sheet", 7):
        assert laboratory.show(several, None, nonsense)["why"]
    empty = {**sheet, "kind": "strokes", "strokes": []}
    assert words.say(laboratory.show(several, None, empty)["why"]).startswith("There is nothing to change yet")


def test_the_plain_network_reads_what_the_others_read(monkeypatch, capsys):
    model = create_model("capsnet-small")
    found = networks.plain(model)
    assert found.info.name == "cnn" and not found.training
    assert networks.plain(create_model("capsnet-small", class_names=["a", "b"])) is None
    monkeypatch.setattr("capsnet.available_models", lambda kind: ["gone"])
    assert networks.plain(model) is None and "gone is left out" in capsys.readouterr().err
