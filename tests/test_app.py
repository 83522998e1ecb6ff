"""The page without a browser: command line, endpoints over gradio_client, pure functions of the panels."""

import base64
import io
import json
import subprocess
import sys
from pathlib import Path

import gradio as gr
import httpx
import numpy as np
import pytest
import torch
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from PIL import Image, ImageDraw

import capsnet
from capsnet.demo import answer, api, examples, lengths, page, pixels, theme, tweak, words

ROOT = Path(__file__).resolve().parents[1]
SEVEN = [[[60, 50], [210, 50], [160, 150], [125, 240]]]


@pytest.fixture(scope="module")
def model():
    return capsnet.load_model("capsnet")


@pytest.fixture(scope="module")
def client(model):
    patch = pytest.MonkeyPatch()
    patch.setenv("NO_PROXY", "localhost,127.0.0.1")
    patch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    served = page.build(model, "capsnet")
    _, url, _ = served.launch(prevent_thread_lock=True, quiet=True, **theme.launch_options())
    yield Client(url, verbose=False)
    served.close()
    patch.undo()


def picture_of_a_seven(path):
    image = Image.new("RGB", (400, 300), "white")
    ImageDraw.Draw(image).line([(120, 60), (260, 60), (200, 240)], fill="black", width=24, joint="curve")
    image.save(path, "PNG")
    return path


def asked(client, *arguments, **options):
    """The sentence of the error that a call ends in."""
    with pytest.raises(AppError) as caught:
        client.predict(*arguments, **options)
    sentence = str(caught.value)
    assert sentence.endswith(".") and "\n" not in sentence and "Traceback" not in sentence
    return sentence


# ---- command line


@pytest.mark.parametrize(
    "options, part",
    [
        (["--port", "70000"], "70000"),
        (["--port", "0"], "1 to 65535"),
        (["--port", "http"], "http"),
        (["--colour", "red"], "--colour"),
        (["--model", "nobody"], "nobody"),
    ],
)
def test_a_wrong_option_is_one_line_and_status_2(options, part):
    command = [sys.executable, "app.py", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.count("\n") == 1 and part in run.stderr


# ---- endpoints


def test_exactly_three_endpoints_are_public_and_described(client):
    described = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(described) == {"/recognize", "/recognize_strokes", "/decode"}
    names = {name: [p["parameter_name"] for p in info["parameters"]] for name, info in described.items()}
    assert names["/recognize"] == ["image", "model"]
    assert names["/recognize_strokes"] == ["strokes", "model"]
    assert names["/decode"] == ["digit", "pose", "model"]
    assert all(info["description"] for info in described.values())


def test_recognize_strokes_is_what_the_model_says(client, model):
    said = client.predict(SEVEN, api_name="/recognize_strokes")
    out = model(capsnet.prepare_digit({"strokes": SEVEN})[None])
    assert said["digit"] == 7 == int(out.lengths.argmax()) and said["reason"] is None
    assert said["lengths"] == pytest.approx(out.lengths[0].tolist(), abs=1e-5)
    assert said["pose"] == pytest.approx(out.poses[0, 7].tolist(), abs=1e-5)


def test_recognize_a_picture_file(client, tmp_path):
    said = client.predict(
        handle_file(picture_of_a_seven(tmp_path / "seven.png")), "capsnet", api_name="/recognize"
    )
    assert (
        said["digit"] == 7
        and len(said["lengths"]) == 10
        and len(said["pose"]) == 16
        and said["reason"] is None
    )


@pytest.mark.parametrize(
    "strokes", [[], [[]], [[[5, 5]]], [[[1, "x"]]], "seven", None, [[[1, 2, 3], [4]]], {"a": 1}]
)
def test_strokes_that_cannot_be_read_get_a_reason(client, strokes):
    said = client.predict(strokes, api_name="/recognize_strokes")
    assert said["digit"] is None and said["lengths"] == [0.0] * 10 and said["pose"] == [0.0] * 16
    assert said["reason"].endswith(".") and "\n" not in said["reason"]


def test_pictures_that_cannot_be_read_get_a_reason(client, tmp_path):
    Image.new("L", (60, 60), 255).save(tmp_path / "blank.png")
    (tmp_path / "junk.png").write_bytes(b"no picture at all")
    for name in ("blank.png", "junk.png"):
        said = client.predict(handle_file(tmp_path / name), api_name="/recognize")
        assert said["digit"] is None and said["lengths"] == [0.0] * 10 and said["reason"].endswith(".")


def test_a_path_on_the_server_is_no_picture(client, tmp_path):
    path = str(picture_of_a_seven(tmp_path / "private.png"))
    for image in (path, {"path": path}, None, 7):
        assert "picture" in asked(client, image, api_name="/recognize")
    # Said to be an upload but never uploaded: by hand, for the client would upload it.
    there = f"{client.src.rstrip('/')}/gradio_api/call/recognize"
    claim = {"data": [{"path": path, "meta": {"_type": "gradio.FileData"}}, "capsnet"]}
    event = httpx.post(there, json=claim, trust_env=False).json()["event_id"]
    assert httpx.get(f"{there}/{event}", trust_env=False).text.startswith("event: error")


def test_decode_is_what_the_model_draws(client, model):
    pose = [0.01 * i - 0.08 for i in range(16)]
    image = Image.open(client.predict(3, pose, api_name="/decode"))
    assert image.format == "PNG" and image.size == (280, 280) and image.mode == "L"
    poses = torch.zeros(1, 10, 16)
    poses[0, 3] = torch.tensor(pose)
    drawn = model.decode(poses, torch.tensor([3]))[0, 0].detach().mul(255).round().numpy()
    big = np.asarray(image).reshape(28, 10, 28, 10)
    assert np.abs(big - drawn[:, None, :, None]).max() <= 1


ZERO = [0.0] * 16


@pytest.mark.parametrize(
    "digit, pose, name, part",
    [
        (10, ZERO, "capsnet", "0 to 9"),
        (-1, ZERO, "capsnet", "0 to 9"),
        (3.5, ZERO, "capsnet", "whole number"),
        ("3", ZERO, "capsnet", "whole number"),
        (None, ZERO, "capsnet", "whole number"),
        (True, ZERO, "capsnet", "whole number"),
        (3, ZERO[1:], "capsnet", "16 numbers"),
        (3, [], "capsnet", "16 numbers"),
        (3, "0" * 16, "capsnet", "16 numbers"),
        (3, None, "capsnet", "16 numbers"),
        (3, [*ZERO[1:], "0"], "capsnet", "finite"),
        (3, [*ZERO[1:], None], "capsnet", "finite"),
        (3, [*ZERO[1:], 1e300], "capsnet", "finite"),
        (3, ZERO, "nobody", "no model 'nobody'"),
        (3, ZERO, "../capsnet", "no model"),
        (3, ZERO, None, "no model"),
        (3, ZERO, ["capsnet"], "no model"),
    ],
)
def test_wrong_arguments_of_decode(client, digit, pose, name, part):
    assert part in asked(client, digit, pose, name, api_name="/decode")


def test_an_unknown_model_is_refused_everywhere(client, tmp_path):
    assert "nobody" in asked(client, SEVEN, "nobody", api_name="/recognize_strokes")
    picture = handle_file(picture_of_a_seven(tmp_path / "seven.png"))
    assert "nobody" in asked(client, picture, "nobody", api_name="/recognize")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none(model, number):
    with pytest.raises(ValueError, match="finite"):
        answer.check_pose(model, [*ZERO[1:], number])


# ---- reading a sheet


def test_a_sheet_of_strokes_fills_all_panels(model):
    seen, bars, bench = page.respond(model, {"id": 1, "kind": "strokes", "strokes": SEVEN})
    image = capsnet.prepare_digit({"strokes": SEVEN})
    out = model(image[None])
    assert base64.b64decode(seen["pixels"]) == image.mul(255).round().byte().numpy().tobytes()
    assert bars["digit"] == bench["digit"] == 7 and bars["suspects"] == [7]
    assert bars["lengths"] == pytest.approx(out.lengths[0].tolist(), abs=0.0006)
    assert np.allclose(bench["poses"], out.poses[0].numpy(), atol=0.0006)
    pictures = np.frombuffer(base64.b64decode(bench["pictures"]), np.uint8).reshape(10, 28, 28)
    for k in range(10):  # each picture is that of the rounded pose, just what the sliders ask for
        asked_for = base64.b64decode(tweak.picture(model, [k, bench["poses"][k]]))
        assert np.abs(np.frombuffer(asked_for, np.uint8) - pictures[k].ravel().astype(int)).max() <= 1
    assert len(json.dumps([seen, bars, bench])) < 30_000


def test_a_sample_is_not_prepared_again(model):
    seen, bars, _ = page.respond(model, {"id": 1, "kind": "sample", "index": 12})
    assert base64.b64decode(seen["pixels"]) == examples.digits()["images"][12].tobytes()
    assert bars["digit"] is not None


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
        (None, "no sheet"),
        ([], "no sheet"),
        ("strokes", "no sheet"),
    ],
)
def test_an_unusable_sheet_gives_a_sentence(model, sheet, part):
    seen, bars, bench = page.respond(model, sheet)
    assert (seen, bench) == ({}, {})
    assert bars["lengths"] == [0.0] * 10 and bars["digit"] is None
    assert part in bars["sentence"] and bars["sentence"].endswith(".") and "\n" not in bars["sentence"]


def test_huge_drawings_are_answered_in_time(model):
    flood = [[[i % 280, (i * 7) % 280] for i in range(1000)] for _ in range(100)]
    _, bars, _ = page.respond(model, {"kind": "strokes", "strokes": flood})
    assert bars["sentence"]


def test_an_uploaded_picture(model):
    file = io.BytesIO()
    picture_of_a_seven(file)
    _, bars, _ = page.respond(model, {"kind": "file", "data": base64.b64encode(file.getvalue()).decode()})
    assert bars["digit"] == 7


# ---- small parts


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
    assert words.verdict([numbers.get(k, 0.05) for k in range(10)], NAMES) == (suspects, sentence, detail)


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
        panel = lengths.build(["a", "<b>", "c"])
    places = [panel.html_template.index(f'data-name="{name}"') for name in ("a", "&lt;b&gt;", "c")]
    assert places == sorted(places)
