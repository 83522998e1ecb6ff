"""The page without a browser: command line, endpoints over gradio_client, pure functions of the panels."""

import asyncio
import base64
import io
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from PIL import Image, ImageDraw

import capsnet
from capsnet.demo import decoding, page, theme

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
    networks = {"capsnet": model}
    served = page.build(networks)
    _, url, _ = served.launch(prevent_thread_lock=True, quiet=True, **theme.launch_options(networks))
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
        (["--host", "nobody.invalid"], "nobody.invalid"),
        (["--host", "192.0.2.1", "--port", "7860"], "192.0.2.1, port 7860"),  # an address for documentation
        (["--host", "a" * 80], "no host name"),
    ],
)
def test_a_wrong_option_is_one_line_and_status_2(options, part):
    command = [sys.executable, "app.py", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.count("\n") == 1 and part in run.stderr


@pytest.mark.parametrize("host", [[], ["--host", "0.0.0.0"]])
def test_a_port_in_use_is_one_line_and_status_2(host):
    with socket.create_server(("127.0.0.1", 0)) as other:
        number = str(other.getsockname()[1])
        test_a_wrong_option_is_one_line_and_status_2([*host, "--port", number], f"port {number} ")


def test_damaged_weights_are_one_line_and_status_2(tmp_path):
    shutil.copy(ROOT / "weights" / "capsnet" / "config.json", tmp_path)
    weights = (ROOT / "weights" / "capsnet" / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(weights[:100_000])
    test_a_wrong_option_is_one_line_and_status_2(["--model", str(tmp_path)], "whole safetensors file")


# ---- endpoints


def test_exactly_three_endpoints_are_public_and_described(client):
    described = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(described) == {"/recognize", "/recognize_strokes", "/decode"}
    names = {name: [p["parameter_name"] for p in info["parameters"]] for name, info in described.items()}
    assert names["/recognize"] == ["image", "model"]
    assert names["/recognize_strokes"] == ["strokes", "model"]
    assert names["/decode"] == ["digit", "pose", "model"]
    assert all(info["description"] for info in described.values())


def test_the_model_is_by_default_the_pages_own(model):
    described = page.build({"mine": model, "capsnet": model}).get_api_info()["named_endpoints"]
    assert len(described) == 3
    for endpoint in described.values():
        default = {p["parameter_name"]: p["parameter_default"] for p in endpoint["parameters"]}
        assert default["model"] == "mine"


def test_recognize_strokes_is_what_the_model_says(client, model):
    said = client.predict(SEVEN, api_name="/recognize_strokes")
    out = model(capsnet.prepare_digit({"strokes": SEVEN})[None])
    assert said["digit"] == 7 == int(out.lengths.argmax()) and said["reason"] is None
    assert said["lengths"] == pytest.approx(out.lengths[0].tolist(), abs=1e-5)
    assert said["pose"] == pytest.approx(out.poses[0, 7].tolist(), abs=1e-5)


def test_what_is_no_digit_gets_a_reason_and_its_lengths(client, model):
    scribble = [[[40, 40], [240, 60], [50, 90], [230, 120], [60, 150], [240, 180], [40, 210], [230, 240]]]
    said = client.predict(scribble, api_name="/recognize_strokes")
    lengths = model(capsnet.prepare_digit({"strokes": scribble})[None]).lengths[0]
    assert said["digit"] is None and said["lengths"] == pytest.approx(lengths.tolist(), abs=1e-5) and any(said["pose"])
    assert said["reason"].startswith("This does not look like a digit: ")
    assert f"the {int(lengths.argmax())}'s capsule" in said["reason"] and said["reason"].endswith(".")


def test_recognize_a_picture_file(client, tmp_path):
    said = client.predict(handle_file(picture_of_a_seven(tmp_path / "seven.png")), "capsnet", api_name="/recognize")
    assert said["digit"] == 7 and len(said["lengths"]) == 10 and len(said["pose"]) == 16 and said["reason"] is None


def test_over_plain_http_the_model_may_be_left_out(client):
    there = f"{client.src.rstrip('/')}/gradio_api/call/v2/recognize_strokes"
    event = httpx.post(there, json={"strokes": SEVEN}, trust_env=False).json()["event_id"]
    said = httpx.get(f"{there}/{event}", trust_env=False).text
    assert said.startswith("event: complete") and '"digit": 7' in said


@pytest.mark.parametrize("strokes", [[], [[]], [[[5, 5]]], [[[1, "x"]]], "seven", None, [[[1, 2, 3], [4]]], {"a": 1}])
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


def test_the_decoders_weights_are_there_for_the_browser(client, model):
    there = f"{client.src.rstrip('/')}/gradio_api/decoders"
    answer = httpx.get(f"{there}/capsnet", trust_env=False)
    assert answer.content == decoding.weights(model) and "immutable" in answer.headers["cache-control"]
    refused = httpx.get(f"{there}/nobody", trust_env=False)
    assert refused.status_code == 404 and refused.json()["detail"].endswith("choose one of capsnet.")
    assert httpx.post(f"{there}/capsnet", trust_env=False).status_code == 405


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


# ---- tools for language models


def test_endpoints_are_tools(client):
    pytest.importorskip("mcp")
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async def talk():
        async with streamablehttp_client(f"{client.src.rstrip('/')}/gradio_api/mcp/") as (reader, writer, _):
            async with ClientSession(reader, writer) as session:
                await session.initialize()
                tools = {tool.name: tool.description for tool in (await session.list_tools()).tools}
                read = await session.call_tool("recognize_strokes", {"strokes": SEVEN})
                drawn = await session.call_tool("decode_pose", {"digit": 7, "pose": [0.1] * 16})
                refused = await session.call_tool("decode_pose", {"digit": 17, "pose": [0.1] * 16})
                return tools, read, drawn, refused

    with ThreadPoolExecutor(1) as thread:  # in this one a browser's loop may run
        tools, read, drawn, refused = thread.submit(lambda: asyncio.run(asyncio.wait_for(talk(), 120))).result()
    assert tools.keys() == {"recognize", "recognize_strokes", "decode_pose"}
    assert tools["recognize"].startswith("Read the handwritten digit on a picture.")
    assert not read.isError and "'digit': 7" in read.content[0].text
    with Image.open(io.BytesIO(base64.b64decode(drawn.content[0].data))) as picture:
        assert picture.size == (280, 280)
    assert refused.isError and refused.content[0].text == "The digit must be a whole number from 0 to 9."
