"""The panels without a browser: what a sheet is answered with, and their pure functions."""

import base64
import io
import json

import gradio as gr
import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

import capsnet
from capsnet.demo import (
    answer,
    api,
    compare,
    decoding,
    examples,
    lengths,
    morph,
    pad,
    page,
    perturbations,
    pixels,
    tweak,
    votes,
    words,
)
from capsnet.demo import networks as networks_of
from capsnet.explain import explain
from capsnet.models import CONFIGS
from capsnet.morphometry import MEANINGFUL, PROPERTIES
from capsnet.pose import draw

SEVEN = [[[60, 50], [210, 50], [160, 150], [125, 240]]]


@pytest.fixture(scope="module")
def model():
    return capsnet.load_model("capsnet")


@pytest.fixture(scope="module")
def networks(model):
    other = capsnet.create_model("uniform-capsnet").eval()
    return {"capsnet": model, "other": other}


def picture(model, digit, numbers):
    """In base64, what the decoder draws of one pose."""
    return pixels.encode(draw(model, digit, torch.tensor([numbers])))


def on(network, **sheet):
    return {"network": network, **sheet}


# ---- reading a sheet


def test_a_sheet_of_strokes_fills_all_panels(model, networks):
    shown = page.respond(networks, on("capsnet", kind="strokes", strokes=SEVEN))
    seen, bars, bench = shown["seen"], shown["lengths"], shown["tweak"]
    image = capsnet.prepare_digit({"strokes": SEVEN})
    out = model(image[None])
    assert base64.b64decode(seen["pixels"]) == image.mul(255).round().byte().numpy().tobytes()
    assert bars["digit"] == bench["digit"] == 7 and bars["suspects"] == [7]
    assert bars["lengths"] == pytest.approx(out.lengths[0].tolist(), abs=0.0006)
    assert np.allclose(bench["poses"], out.poses[0].numpy(), atol=0.0006)
    pictures = np.frombuffer(base64.b64decode(bench["pictures"]), np.uint8).reshape(10, 28, 28)
    for k in range(10):  # each picture is that of the rounded pose, just what the sliders ask for
        asked_for = base64.b64decode(picture(model, k, bench["poses"][k]))
        assert np.abs(np.frombuffer(asked_for, np.uint8) - pictures[k].ravel().astype(int)).max() <= 1
    assert len(json.dumps(shown)) < 30_000


def test_a_sample_is_not_prepared_again(networks):
    shown = page.respond(networks, on("capsnet", kind="sample", index=12))
    assert base64.b64decode(shown["seen"]["pixels"]) == examples.digits()["images"][12].tobytes()
    assert shown["lengths"]["digit"] is not None


SCRIBBLE = [[[40, 40], [240, 60], [50, 90], [230, 120], [60, 150], [240, 180], [40, 210], [230, 240]]]


def test_what_is_no_digit_is_said_to_be_none(networks):
    shown = page.respond(networks, on("capsnet", kind="strokes", strokes=SCRIBBLE))
    bars = shown["lengths"]
    assert words.say(bars["sentence"]) == "This does not look like a digit." and bars["suspects"] == []
    nearest = bars["digit"]
    assert words.say(bars["detail"]).startswith(
        f"Nearest is the {nearest}, {bars['figures'][nearest]}, but what its capsule draws"
    )
    assert shown["tweak"]["poses"] and bars["pictures"]  # what each capsule draws shows why
    rows = compare.through_all(networks, on("capsnet", kind="strokes", strokes=SCRIBBLE))
    assert rows[0]["sentence"] == bars["sentence"]


def test_a_network_without_a_threshold_takes_everything_for_a_digit(networks):
    said = answer.ask(networks["other"], capsnet.prepare_digit({"strokes": SCRIBBLE}))
    assert networks["other"].rejection_threshold is None and said.known


@pytest.mark.parametrize(
    "sheet, part",
    [
        ({"kind": "strokes", "strokes": []}, "The sheet is empty."),
        ({"kind": "strokes", "strokes": None}, ""),
        ({"kind": "strokes"}, ""),
        ({"kind": "strokes", "strokes": [[[float("nan"), 1], [2, 3]]]}, ""),
        ({"kind": "strokes", "strokes": [[[[[[[1]]]]]]]}, ""),
        ({"kind": "strokes", "strokes": {"a": []}}, ""),
        ({"kind": "sample", "index": 300}, "0 to 299"),
        ({"kind": "sample", "index": -1}, "0 to 299"),
        ({"kind": "sample", "index": True}, "0 to 299"),
        ({"kind": "sample"}, "0 to 299"),
        ({"kind": "file", "data": None}, "empty"),
        ({"kind": "file", "data": ""}, "empty"),
        ({"kind": "file", "data": "§§§"}, "arrive"),
        ({"kind": "file", "data": base64.b64encode(b"junk").decode()}, "picture"),
        ({"kind": "file", "data": "A" * 27_000_000}, "too large"),
        ({"kind": "folder"}, "no sheet"),
        ({}, "no sheet"),
        (
            {"kind": "strokes", "strokes": SEVEN, "network": "nobody"},
            "no model 'nobody': choose one of capsnet, other.",
        ),
        ({"kind": "strokes", "strokes": SEVEN, "network": ["capsnet"]}, "no model"),
        (None, "no model"),
        ([], "no model"),
        ("strokes", "no model"),
    ],
)
def test_an_unusable_sheet_gives_a_sentence(networks, sheet, part):
    shown = page.respond(networks, {"network": "capsnet", **sheet} if isinstance(sheet, dict) else sheet)
    assert shown["seen"] == shown["tweak"] == {}
    bars = shown["lengths"]
    assert bars["lengths"] == [0.0] * 10 and bars["digit"] is None
    sentence = words.say(bars["sentence"])
    assert part in sentence and sentence.endswith(".") and "\n" not in sentence


def test_huge_drawings_are_answered_in_time(networks):
    flood = [[[i % 280, (i * 7) % 280] for i in range(1000)] for _ in range(100)]
    assert page.respond(networks, on("capsnet", kind="strokes", strokes=flood))["lengths"]["sentence"]


def test_an_uploaded_picture(networks):
    image, file = Image.new("L", (400, 300), 255), io.BytesIO()
    ImageDraw.Draw(image).line([(120, 60), (260, 60), (200, 240)], fill=0, width=24, joint="curve")
    image.save(file, "PNG")
    shown = page.respond(networks, on("capsnet", kind="file", data=base64.b64encode(file.getvalue()).decode()))
    assert shown["lengths"]["digit"] == 7


def test_the_browser_gets_the_decoder_as_it_is_stored(networks):
    model = networks["capsnet"]
    shape, halves = decoding.shape(model), np.frombuffer(decoding.weights(model), "<f2").astype(np.float32)
    assert shape["sizes"] == [(160, 512), (512, 1024), (1024, 784)] and halves.nbytes / 2 < 3e6
    values = torch.zeros(160)
    values[48:64] = torch.linspace(-0.2, 0.2, 16)
    for inputs, outputs in shape["sizes"]:
        matrix, halves = halves[: inputs * outputs].reshape(outputs, inputs), halves[inputs * outputs :]
        bias, halves = halves[:outputs], halves[outputs:]
        values = (torch.from_numpy(matrix) @ values + torch.from_numpy(bias)).relu()
    drawn = draw(model, 3, torch.linspace(-0.2, 0.2, 16)[None]).flatten()
    torch.testing.assert_close(torch.where(drawn > 0.5, drawn, 0.5), values.sigmoid())  # relu hides the rest
    assert len(halves) == 0 and shape["version"] != decoding.shape(networks["other"])["version"]


# ---- several networks


def test_each_network_answers_for_itself(networks):
    shown = {name: page.respond(networks, on(name, kind="strokes", strokes=SEVEN)) for name in networks}
    assert [shown[name]["tweak"]["network"] for name in networks] == ["capsnet", "other"]
    assert shown["capsnet"]["seen"] == shown["other"]["seen"]
    out = networks["other"](capsnet.prepare_digit({"strokes": SEVEN})[None])
    assert shown["other"]["lengths"]["lengths"] == pytest.approx(out.lengths[0].tolist(), abs=0.0006)


@pytest.mark.parametrize("request_", [["nobody", 3, [0.0] * 16], [None, 3, [0.0] * 16], [3, [0.0] * 16], {}, None])
def test_a_sheet_of_no_network_is_refused(networks, request_):
    with pytest.raises(ValueError, match=r"(choose one of|Send a network).*\.$"):
        perturbations.pictures(networks, request_)


def test_all_networks_that_read_the_same(model, monkeypatch, capsys):
    words_of = {"letters": {"class_names": ["a", "b"]}, "colour": {"in_channels": 3}, "em-capsnet": {}, "zzz": {}}

    def load(name):
        if name == "broken":
            raise capsnet.ModelError("broken is no model; train it.")
        return capsnet.create_model("capsnet-small", **words_of[name])

    monkeypatch.setattr(capsnet, "available_models", lambda: ["broken", "capsnet", *words_of])
    monkeypatch.setattr(capsnet, "load_model", load)
    every = networks_of.beside(model, "capsnet")
    assert list(every) == ["capsnet", "em-capsnet", "zzz"] and every["capsnet"] is model  # as in words.NETWORKS
    assert capsys.readouterr().err == "broken is left out: broken is no model; train it.\n"


def test_the_choice_has_groups_in_order(model):
    html = networks_of.choice({"<mine>": model, "em-capsnet": model, "capsnet": model})
    places = [
        html.index(part)
        for part in (words.PUBLISHED, 'value="capsnet"', words.ROUTINGS, "network.em-capsnet.title", words.OTHERS)
    ]
    assert places == sorted(places)
    assert 'value="&lt;mine&gt;"' in html and "<mine>" not in html


def test_every_network_in_the_repository_is_described():
    assert set(capsnet.available_models()) <= words.NETWORKS.keys() <= CONFIGS.keys()
    for name in words.NETWORKS:
        group, title, about = words.network(name)
        assert group in words.GROUPS and words.say(title) and words.say(about).endswith(".")
    assert words.network("mine") == (words.OTHERS, "mine", "")


def test_compared_networks_say_what_they_say_alone(networks):
    rows = compare.through_all(networks, {"kind": "strokes", "strokes": SEVEN})
    assert len(rows) == 2
    for name, row in zip(networks, rows, strict=True):
        alone = page.respond(networks, on(name, kind="strokes", strokes=SEVEN))
        assert row["lengths"] == alone["lengths"]["lengths"] and row["figures"] == alone["lengths"]["figures"]
        assert row["sentence"] == alone["lengths"]["sentence"] and row["digit"] == alone["tweak"]["digit"]
        pictures = base64.b64decode(alone["tweak"]["pictures"])
        assert base64.b64decode(row["picture"]) == pictures[784 * row["digit"] : 784 * (row["digit"] + 1)]
        assert float(row["took"].removesuffix(" ms")) > 0


@pytest.mark.parametrize("sheet", [{"kind": "strokes", "strokes": []}, {"kind": "sample", "index": 999}, None, "x"])
def test_nothing_is_compared_of_an_unusable_sheet(networks, sheet):
    assert compare.through_all(networks, sheet) == []


def test_the_time_is_that_of_reading(monkeypatch):
    ticks = iter([3.0, 3.2])
    monkeypatch.setattr(answer.time, "perf_counter", lambda: next(ticks))
    seconds = answer.ask(capsnet.create_model("uniform-capsnet").eval(), torch.zeros(1, 28, 28)).seconds
    assert seconds == pytest.approx(0.2) and words.milliseconds(seconds) == "200.0 ms"


def test_pose_numbers_of_squashed_capsules_end_at_1(model):
    assert tweak.bounds(model)["most"] == 1
    assert tweak.bounds(capsnet.create_model("em-capsnet"))["most"] == answer.LARGEST


# ---- every number by itself


def test_each_row_moves_one_number(model):
    pose = [0.01 * i for i in range(16)]
    poses = perturbations.perturbed(model, 4, pose).view(16, 11, 16)
    assert torch.allclose(poses[:, 5], torch.tensor(pose))  # the middle is the drawing's own
    width = torch.tensor(tweak.ranges(model.pose_range)[4]).diff(dim=1)[:, 0]
    for p in range(16):
        moved = poses[p] - torch.tensor(pose)
        assert torch.allclose(moved[:, p], torch.linspace(-0.5, 0.5, 11) * width[p], atol=1e-6)
        assert (moved[:, torch.arange(16) != p] == 0).all()
    assert perturbations.perturbed(model, 4, [1.0] * 16).abs().max() == 1  # no squashed vector has more


def test_the_sheet_is_what_the_decoder_draws(networks):
    pose = [0.05] * 16
    pictures = base64.b64decode(perturbations.pictures(networks, ["other", 3, pose]))
    pictures = np.frombuffer(pictures, np.uint8).reshape(16, 11, 784).astype(int)
    poses = perturbations.perturbed(networks["other"], 3, pose).view(16, 11, 16)
    for row, column in ((0, 0), (7, 5), (15, 10)):
        alone = picture(networks["other"], 3, poses[row, column].tolist())
        assert np.abs(pictures[row, column] - np.frombuffer(base64.b64decode(alone), np.uint8)).max() <= 1


@pytest.mark.parametrize(
    "request_",
    [None, [], ["capsnet", 3], ["nobody", 3, [0.0] * 16], ["capsnet", 10, [0.0] * 16], ["capsnet", 3, [0.0]]],
)
def test_a_sheet_of_nothing_is_refused(networks, request_):
    with pytest.raises(ValueError, match=r"^[A-Z][^\n]*\.$"):
        perturbations.pictures(networks, request_)


# ---- who voted for what


def test_votes_are_the_evidence(networks):
    sheet = {"kind": "strokes", "strokes": SEVEN}
    shown = votes.count(networks, on("capsnet", **sheet))
    image = pad.read_sheet(sheet)
    explanation = explain(networks["capsnet"], image)
    assert shown["pixels"] == pixels.encode(image) and shown["field"] == [17, 2] and shown["each"] == 32
    assert shown["digit"] == 7 and len(shown["rounds"]) == 3
    for shown_round, one in zip(shown["rounds"], explanation.rounds, strict=True):
        assert shown_round["figures"] == [words.figure(length) for length in one.lengths.tolist()]
        evidence = one.evidence
        balance = torch.tensor(shown_round["for"]) - torch.tensor(shown_round["against"])
        assert torch.allclose(balance, evidence.sum(0), atol=2e-3)
        assert torch.allclose(torch.tensor(shown_round["against"]), -evidence.clamp_max(0).sum(0), atol=1e-3)
        places = torch.tensor(shown_round["places"])
        assert places.shape == (10, 6, 6) and torch.allclose(places.sum((1, 2)), balance, atol=0.02)
    assert words.say(shown["about"]) == (
        "In this network 1,152 capsules vote, 32 at each of 6 × 6 places; each sees 17 × 17 pixels."
        " From round to round, votes that agree with the others count more."
    )


def test_capsules_that_see_everything_say_so(networks):
    shown = votes.count(networks, on("other", kind="strokes", strokes=SEVEN))
    assert len(shown["rounds"]) == 1 and shown["each"] == 12
    places = "In this network 48 capsules vote, 12 at each of 2 × 2 places"
    assert words.say(shown["about"]) == f"{places}; each sees 25 × 25 pixels, nearly the whole drawing."
    whole = "In this network 16 capsules vote; each sees 27 × 27 pixels, nearly the whole drawing."
    assert words.say(words.voters(16, (1, 1), 27)) == whole
    assert (
        words.say(words.voters(36, (6, 6), 17))
        == "In this network 36 capsules vote, at 6 × 6 places; each sees 17 × 17 pixels."
    )


@pytest.mark.parametrize(
    "sheet, why",
    [
        (None, "There is no model"),
        ("x", "There is no model"),
        (on("nobody", kind="sample", index=1), "There is no model 'nobody'"),
        (on("capsnet", kind="strokes", strokes=[]), "Nobody has voted yet"),
        (on("capsnet"), "This is no sheet"),
        (on("capsnet", kind="file", data=""), "The file is empty"),
    ],
)
def test_nobody_votes_on_an_unusable_sheet(networks, sheet, why):
    shown = votes.count(networks, sheet)
    assert shown.keys() == {"why"} and words.say(shown["why"]).startswith(why)


def test_votes_for_matrix_capsules_have_one_sign(networks):
    torch.manual_seed(0)
    networks = {**networks, "em": capsnet.create_model("em-capsnet").eval()}
    shown = votes.count(networks, on("em", kind="strokes", strokes=SEVEN))
    assert shown["about"]["counts"] == words.message("votes.matrices") and np.shape(shown["rounds"][0]["places"]) == (
        10,
        9,
        9,
    )
    for one in shown["rounds"]:
        assert all(min(a, b) == 0 for a, b in zip(one["for"], one["against"], strict=True))


# ---- two drawings

TWO = {"kind": "strokes", "strokes": [[[70, 90], [100, 55], [150, 55], [180, 90], [160, 130], [70, 220], [190, 220]]]}
PAIR = {"a": {"kind": "strokes", "strokes": SEVEN}, "b": TWO}


def bytes_of(pictures: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(pictures), np.uint8).reshape(-1, 784).astype(int)


def test_a_pair_is_read_as_each_sheet_alone(networks):
    shown = morph.show(networks, on("capsnet", **PAIR))
    one, other = (page.respond(networks, on("capsnet", **PAIR[key]))["tweak"] for key in ("a", "b"))
    assert shown["digits"] == [one["digit"], other["digit"]] == [7, 2]
    assert words.say(shown["says"]) == "From a 7 to a 2: move the slider, or play."
    assert words.say(words.way("8", "8")).startswith("From one 8 to another:")
    assert shown["seen"] == pixels.encode(torch.stack([pad.read_sheet(PAIR["a"]), pad.read_sheet(TWO)]))
    frames = bytes_of(shown["frames"])
    assert len(frames) == morph.STEPS
    for frame, its in ((frames[0], one), (frames[-1], other)):
        assert np.abs(frame - bytes_of(its["pictures"])[its["digit"]]).max() <= 2
    assert len(json.dumps(shown)) < 50_000


def test_style_is_a_pose_for_the_sliders(networks, model):
    style = morph.show(networks, on("capsnet", **PAIR))["style"]
    asked_for = picture(model, 2, style["pose"])
    assert np.abs(bytes_of(style["picture"]) - bytes_of(asked_for)).max() <= 1
    shared = model.pose_directions["7"].keys() & model.pose_directions["2"].keys()
    assert style["found"] and words.say(style["says"]).startswith("Taken over, as far as a 2 goes: thickness, slant")
    assert all(name in words.say(style["says"]) for name in shared)
    alone = morph.show(networks, on("capsnet", a=TWO, b=TWO))
    own = page.respond(networks, on("capsnet", **TWO))["tweak"]["poses"][2]
    assert alone["style"]["pose"] == pytest.approx(own, abs=0.0011)  # it has its own style already


def test_a_network_that_was_not_measured_has_no_style(networks):
    style = morph.show(networks, on("other", **PAIR))["style"]
    assert not style["found"] and style["says"] == words.message("morph.unstyled")


def test_a_film_goes_there_and_back(networks):
    shown = morph.animate(networks, on("capsnet", **PAIR))
    film = Image.open(io.BytesIO(base64.b64decode(shown["gif"])))
    assert shown["name"] == "morph-7-to-2.gif" and film.format == "GIF"
    assert film.size == (280, 280) and film.n_frames == 2 * (morph.STEPS - 1) and film.info["loop"] == 0
    frames = bytes_of(morph.show(networks, on("capsnet", **PAIR))["frames"])
    for at, step in ((0, 0), (10, 10), (30, 30), (45, 15)):
        film.seek(at)
        assert film.info["duration"] == (morph.REST if step in (0, 30) else morph.FRAME)
        small = np.asarray(film.convert("L"), int)[5::10, 5::10].ravel()
        assert np.abs(small - frames[step]).max() <= 2


@pytest.mark.parametrize(
    "request_, why",
    [
        (None, "There is no model"),
        ([], "There is no model"),
        (on("nobody", **PAIR), "There is no model 'nobody'"),
        (on("capsnet"), "A: This is no sheet"),
        (on("capsnet", a=TWO), "B: This is no sheet"),
        (on("capsnet", a=TWO, b="x"), "B: This is no sheet"),
        (on("capsnet", a={"kind": "strokes", "strokes": []}, b=TWO), "A: The sheet is empty"),
        (on("capsnet", a=TWO, b={"kind": "file", "data": base64.b64encode(b"junk").decode()}), "B: This file"),
    ],
)
def test_an_unusable_pair_gives_a_sentence(networks, request_, why):
    for answer_of in (morph.show, morph.animate):
        shown = answer_of(networks, request_)
        assert shown.keys() == {"why"} and words.say(shown["why"]).startswith(why)
        assert words.say(shown["why"]).endswith(".")


def test_what_was_taken_over_is_listed():
    assert words.say(words.style(("slant",), "8")) == "Taken over, as far as an 8 goes: slant."
    assert words.say(words.style(("thickness", "slant", "loop"), "0")).endswith(": thickness, slant and loop.")


# ---- small parts


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none(model, number):
    with pytest.raises(ValueError, match="finite"):
        answer.check_pose(model, [number] + [0.0] * 15)


def test_pixels_travel_as_bytes():
    pictures = torch.tensor([[0.0, 0.5], [1.0, 2.0]])
    assert base64.b64decode(pixels.encode(pictures)) == bytes([0, 128, 255, 255])


def test_examples_are_balanced_mnist_test_digits():
    every = examples.digits()
    assert every["images"].shape == (300, 28, 28) and every["images"].dtype == np.uint8
    assert (np.bincount(every["labels"]) == 30).all()
    assert (np.diff(every["numbers"].astype(int)) > 0).all()
    assert list(every["labels"][:10]) == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]  # how MNIST's test set begins


def test_pick_never_repeats():
    picks = [examples.pick(5)["index"] for _ in range(200)]
    assert 5 not in picks and len(set(picks)) > 50
    one = examples.pick()
    assert one["label"] == examples.digits()["labels"][one["index"]]
    assert base64.b64decode(one["pixels"]) == examples.digits()["images"][one["index"]].tobytes()


NAMES = list("0123456789")


@pytest.mark.parametrize(
    "numbers, suspects, sentence, detail",
    [
        ({7: 0.93, 1: 0.12}, [7], "This is a 7.", "Its capsule is 0.93 long; next is the 1, 0.12."),
        ({8: 0.71, 3: 0.2}, [8], "Looks like an 8.", "Its capsule is 0.71 long; next is the 3, 0.20."),
        ({9: 0.85, 4: 0.8}, [4, 9], "Between a 4 and a 9.", "Their capsules are 0.80 and 0.85 long."),
        ({2: 0.31}, [], "Hardly any capsule answers.", "The longest, the 2, is only 0.31 long."),
    ],
)
def test_verdict(numbers, suspects, sentence, detail):
    found, *said = words.verdict([numbers.get(k, 0.05) for k in range(10)], NAMES)
    assert (found, *map(words.say, said)) == (suspects, sentence, detail)


def test_sentence_and_bars_round_alike(model):
    for length in (0.8749, 0.8751, 0.865, 0.625):  # rounded twice, the first would be 0.88 beside the bar
        poses = torch.zeros(10, 16)
        poses[7, 0] = length
        rest = {
            "image": torch.zeros(1, 28, 28),
            "poses": poses,
            "pictures": torch.zeros(10, 1, 28, 28),
            "digit": 7,
            "known": True,
            "seconds": 0,
        }
        lengths_of = poses.norm(dim=-1)
        suspects, sentence, detail = words.verdict(lengths_of.tolist(), NAMES)
        said = answer.Answer(lengths=lengths_of, suspects=suspects, sentence=sentence, detail=detail, **rest)
        assert f"is {lengths.show(said)['figures'][7]} long" in words.say(detail)


def test_ranges_are_low_and_high_of_each_number():
    pose_range = torch.stack([torch.full((2, 3), -0.25), torch.full((2, 3), 0.12345)])
    assert tweak.ranges(pose_range) == [[[-0.25, 0.123]] * 3] * 2


def test_a_png_shows_every_pixel_as_a_square():
    picture = torch.zeros(1, 28, 28)
    picture[0, 1, 2] = 1.0
    big = np.asarray(api.to_png(picture))
    assert (big[10:20, 20:30] == 255).all() and big.sum() == 255 * 100


def test_bars_stand_in_the_order_of_the_classes():
    with gr.Blocks():
        panel = lengths.build({"mine": capsnet.create_model("capsnet-small", class_names=["a", "<b>", "c"])})
    places = [panel.html_template.index(f'data-name="{name}"') for name in ("a", "&lt;b&gt;", "c")]
    assert places == sorted(places)


def test_sliders_say_what_they_do():
    def effect(*names, **changes):
        return {"names": list(names), "changes": changes, "strength": 2.0}

    assert words.say(words.move(effect("thickness", thickness=0.7, slant=-0.1))) == "thicker"
    assert words.say(words.move(effect("thickness", "slant", thickness=-0.7, slant=-0.3))) == "thinner, leans left"
    assert words.move(effect(width=1.0)) == []
    for language in ("en", "zh"):
        every = {
            words.say(words.move(effect(name, **{name: sign})), language) for name in PROPERTIES for sign in (-1, 1)
        }
        assert len(every) == 2 * len(PROPERTIES)


def test_sliders_know_how_to_move_one_property(model):
    found = tweak.moves(model)
    assert len(found) == 10 and all({"thickness", "slant"} <= of_class.keys() <= set(MEANINGFUL) for of_class in found)
    slant, measured = found[7]["slant"], model.pose_directions["7"]["slant"]
    assert slant.keys() == {"change", "slope", "offset", "low", "high"}
    assert slant["change"] == pytest.approx(measured["change"], rel=1e-3)
    assert slant["low"] == pytest.approx(measured["low"], rel=1e-3) and slant["low"] < slant["high"]
    assert len(json.dumps(found)) < 20_000


def test_without_measured_poses_sliders_say_nothing():
    untrained = capsnet.create_model("capsnet-small")
    assert tweak.does(untrained) == [[[]] * 16] * 10 and tweak.moves(untrained) == [{}] * 10
    untrained.pose_effects = {str(k): [{"names": ["loop"], "changes": {"loop": k - 4.5}}] * 16 for k in range(10)}
    said = [[words.say(does) for does in row] for row in tweak.does(untrained)]
    assert said == [["smaller loop"] * 16] * 5 + [["larger loop"] * 16] * 5
