"""What README shows of programs runs as it stands there."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from test_app import client, model  # noqa: F401 (fixtures)

import capsnet

README = Path(__file__).resolve().parents[1] / "README.md"
PAGE = "http://127.0.0.1:7860"


def block(language: str, part: str) -> str:
    """The block of code in README that has this in it."""
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL) if part in text]
    assert len(found) == 1, part
    return found[0]


def picture(path: Path, *strokes: list) -> None:
    image = Image.new("L", (280, 280), 255)
    for points in strokes:
        ImageDraw.Draw(image).line(points, fill=0, width=18, joint="curve")
    image.save(path)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the pictures that the examples read: a 7, and a 7 with a 1 through it."""
    seven = [(60, 40), (200, 40), (110, 240)]
    picture(tmp_path / "photo.jpg", seven)
    picture(tmp_path / "digit.png", seven)
    picture(tmp_path / "two.png", seven, [(90, 30), (100, 240)])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_package(here):
    names: dict = {}
    exec(block("python", "capsnet.available_models()"), names)
    assert names["model"].info.name == "capsnet" and names["image"].shape == (1, 28, 28)
    assert names["out"].lengths.argmax() == 7 and names["picture"].shape == (1, 1, 28, 28)
    assert names["found"].pictures.shape == (len(names["found"].digits), 1, 36, 36)


def test_the_client(client, here, monkeypatch):  # noqa: F811
    names: dict = {}
    lines = block("python", "gradio_client").replace(f'"{PAGE}"', f'"{client.src}", verbose=False')
    asked = re.findall(r"^client\.predict\(.*\)(?=\s|$)", lines, re.MULTILINE)
    exec(re.sub(r"^client\.predict.*$", "", lines, flags=re.MULTILINE), names)
    by_picture, by_strokes, drawn = (eval(line, names) for line in asked)
    assert by_picture["digit"] == by_strokes["digit"] == 7 and by_picture["reason"] is None
    assert len(by_picture["lengths"]) == 10 and len(by_picture["pose"]) == 16
    with Image.open(drawn) as shown:
        assert shown.size == (280, 280) and shown.format == "PNG"


@pytest.mark.skipif(not all(map(shutil.which, ("bash", "curl"))), reason="needs bash and curl")
def test_the_shell(client):  # noqa: F811
    lines = block("bash", "curl").replace(PAGE, client.src.rstrip("/"))
    done = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("event: complete\ndata: ") and '"digit": 7' in done.stdout.replace('":7', '": 7')


def test_training_from_a_program(tmp_path, digits, monkeypatch):
    """Two classes, ten images each and one epoch in the place of the reader's own."""
    monkeypatch.chdir(tmp_path)
    few = digits[(digits.labels < 2).nonzero()[:, 0]]
    images, labels = few.images.repeat(25, 1, 1, 1), few.labels.repeat(25)
    code = block("python", "capsnet.training import train").replace("epochs=3", "epochs=1, max_batches=2")
    names = {"images": images, "labels": labels}
    exec(code, names)
    assert names["model"].info.class_names == ["a", "b"]
    assert capsnet.load_model(tmp_path / "runs" / "ab").info.class_names == ["a", "b"]
