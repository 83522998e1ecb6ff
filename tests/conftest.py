import pytest
import torch
from PIL import Image, ImageDraw
from small import SMALL

from capsnet.data import Images
from capsnet.models import CONFIGS, create_model
from capsnet.pens import pen_digits

# Small tensors gain nothing from threads, and on a busy machine threads wait for one another.
torch.set_num_threads(1)


@pytest.fixture
def small(monkeypatch):
    """Settings of a small network, which `create_model` knows as "small" during the test."""
    monkeypatch.setitem(CONFIGS, "small", SMALL)
    return dict(SMALL)


@pytest.fixture
def pair(monkeypatch):
    """A small network for pairs, which `create_model` knows as "small-pair" during the test."""
    monkeypatch.setitem(CONFIGS, "small-pair", {**SMALL, "kind": "pair", "input_size": 36})
    torch.manual_seed(0)
    return create_model("small-pair")


@pytest.fixture(scope="session")
def digits():
    """40 digits in MNIST's form, four of each kind."""
    images, labels = pen_digits(40, seed=5)
    return Images(torch.from_numpy(images)[:, None], torch.from_numpy(labels))


@pytest.fixture
def shapes(tmp_path):
    """A folder of twelve grey pictures of each of three shapes, of several sizes."""
    folder = tmp_path / "shapes"
    for n in range(12):
        for name in ("circle", "cross", "square"):
            size = 21 + 3 * n, 40
            image = Image.new("L", size)
            draw, box = ImageDraw.Draw(image), (3, 4 + n, 17, 24 + n)
            if name == "circle":
                draw.ellipse(box, outline=255, width=3)
            elif name == "square":
                draw.rectangle(box, outline=255, width=3)
            else:
                draw.line(box, fill=255, width=3)
                draw.line((box[0], box[3], box[2], box[1]), fill=255, width=3)
            (folder / name).mkdir(parents=True, exist_ok=True)
            image.save(folder / name / f"{n:02}.png")
    (folder / "cross" / "notes.txt").write_text("no picture")
    return folder
