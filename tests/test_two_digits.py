"""The panel of two digits without a browser: what is told of pairs, drawings and requests that make no sense."""

import base64

import numpy as np
import pytest
import torch

from capsnet.demo import examples, networks, overlap, pad, pixels, words
from capsnet.overlap import Separation, separate
from capsnet.pairs import over

CROSS = {"kind": "strokes", "strokes": [[[60, 40], [200, 40], [110, 240]], [[30, 140], [250, 140]]]}


@pytest.fixture
def reader(pair):
    pair.eval().presence_threshold = 0.3
    return pair


def shown(found: dict, name: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(found[name]), np.uint8).reshape(-1, 36, 36)


def test_a_drawing_is_taken_apart(reader):
    image = pad.read_sheet(CROSS, 36)
    lengths = separate(reader, image).lengths.sort(descending=True).values
    reader.presence_threshold = lengths[3:5].mean().item()  # so that four digits are there
    found = overlap.show(reader, CROSS)
    assert image.shape == (1, 36, 36) and found["seen"] == pixels.encode(image) and found["answer"] is None
    wanted = separate(reader, image)
    assert found["digits"] == wanted.digits[:3] and len(wanted.digits) == 4
    assert shown(found, "pictures").shape[0] == 3 and found["pictures"] == pixels.encode(wanted.pictures[:3])
    assert found["lengths"] == pytest.approx(wanted.lengths.tolist(), abs=6e-4)
    assert found["unexplained"] == pixels.encode(wanted.unexplained)
    share = 100 * wanted.unexplained.sum() / image.sum()
    assert words.say(found["share"]) == f"left over, {share:.0f} % of the ink, blurred edges included"


def test_a_random_pair_is_two_different_digits_and_says_which(reader, monkeypatch):
    seen = []
    monkeypatch.setattr(overlap, "over", lambda sheets: seen.append(sheets) or over(sheets))
    every = {tuple(map(int, np.sort(one.reshape(-1))[-200:])): k for k, one in enumerate(examples.digits()["images"])}
    for _ in range(20):
        found = overlap.show(reader, {"kind": "pair"})
        digits = [np.round(sheet.numpy() * 255).astype(int) for sheet in seen[-1][0]]
        indices = [every[tuple(np.sort(one.reshape(-1))[-200:])] for one in digits]
        one, other = (examples.digits()["labels"][k] for k in indices)
        assert one != other and words.say(found["answer"]).endswith(f"Right answer: {one} and {other}.")
        assert np.array_equal(shown(found, "seen")[0], np.minimum(digits[0] + digits[1], 255)[0])
    assert len({tuple(map(tuple, sheets[0, 0, 0].tolist())) for sheets in seen}) > 10


def test_a_sample_lies_in_the_middle(reader):
    image = pad.read_sheet({"kind": "sample", "index": 4}, 36)
    assert torch.equal(image[:, 4:32, 4:32], examples.image(4))
    assert image.count_nonzero() == examples.image(4).count_nonzero()
    assert torch.equal(pad.read_sheet({"kind": "sample", "index": 4}), examples.image(4))


@pytest.mark.parametrize(
    ("digits", "text"),
    [
        ([], "No capsule is long enough: this looks like no digit."),
        ([8], "One digit only, an 8. The same digit twice looks like one, too."),
        ([8, 3], "Two digits: a 3 and an 8."),
        ([8, 3, 1], "More than two: 1, 3, 8. It learned from two at most, so trust this less."),
    ],
)
def test_how_many_it_says(digits, text):
    found = Separation(torch.zeros(10), digits, torch.zeros(len(digits), 1, 36, 36), torch.zeros(1, 36, 36))
    assert words.say(overlap.sentence(found, list("0123456789"))) == text


def test_an_empty_sheet_and_nonsense(reader):
    empty = overlap.show(reader, {"kind": "strokes", "strokes": []})
    assert words.say(empty["why"]).startswith("There is nothing to take apart yet")
    for nonsense in (None, [], 3, {"kind": "pairs"}, {"kind": "sample", "index": 10**9}, {"kind": "strokes"}):
        why = words.say(overlap.show(reader, nonsense)["why"])
        assert why and "\n" not in why and why.endswith(".")


def test_which_network_reads_pairs(reader, small, monkeypatch):
    from capsnet.models import create_model

    kinds = []

    def available(kind):
        kinds.append(kind)
        return ["other", "this"]

    letters = create_model("small-pair", class_names=["a", "b", "c"])
    letters.presence_threshold = 0.5
    loaded = {"other": letters, "this": reader}
    monkeypatch.setattr("capsnet.available_models", available)
    monkeypatch.setattr("capsnet.load_model", loaded.get)
    model = create_model("small")
    assert networks.of_pairs(model) is reader and kinds == ["pair"]
    del reader.config["presence_threshold"]  # nobody measured it
    assert networks.of_pairs(model) is None
