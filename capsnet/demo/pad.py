"""The drawing pad with its buttons, and what the network sees of it."""

import base64
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import gradio as gr
import torch
import torch.nn.functional as F

import capsnet

from . import examples
from .answer import Answer, refusing
from .pixels import encode, read

LARGEST_FILE = 20_000_000  # bytes


def build(answer, network: str, silence: dict) -> tuple[gr.HTML, gr.HTML]:
    """The pad, and what is seen of it.

    answer: a function of that name, from a sheet (see `read_sheet`) with the "network" that is to read it to what every
    panel shows of it, by their elem_id; the pad hands it on as the DOM event "answer". network: the first one.
    silence: the same as an answer, for a server that cannot be reached.
    """

    @refusing
    def sample(request):
        request = request if isinstance(request, dict) else {}
        return examples.pick(request.get("previous"), request.get("index"), request.get("label"))

    pad = gr.HTML(
        html_template=read("pad.html").replace("LARGEST_FILE", str(LARGEST_FILE)),
        js_on_load=read("paint.js", "ask.js", "sheet.js", "pad.js", "opening.js"),
        server_functions=[answer, sample],
        apply_default_css=False,
        elem_id="pad",
        network=network,
        silence=silence,
        opening=json.loads(read("opening.json"))["strokes"],
    )
    seen = gr.HTML(
        {},
        html_template=read("seen.html"),
        js_on_load=read("paint.js", "seen.js", "motion.js"),
        apply_default_css=False,
        elem_id="seen",
    )
    return pad, seen


def show(answer: Answer) -> dict:
    """What the view of the network's 28 × 28 paints of an answer."""
    return {"pixels": encode(answer.image)}


def read_sheet(sheet, side: int = 28) -> torch.Tensor:
    """A sheet from the browser as the network takes it: float32 (1, side, side), ink 1 on paper 0.

    sheet: a dict with "kind": "strokes" and "strokes": [[[x, y], ...], ...], "sample" and "index" of a sample
    digit, which goes to the network as it is, in the middle, or "file" and "data", the file's content in base64. Raises
    EmptyDrawingError or InvalidDrawingError with one sentence.
    """
    kind = sheet.get("kind") if isinstance(sheet, dict) else None
    if kind == "strokes":
        return read_strokes(sheet.get("strokes"), side)
    if kind == "sample":
        try:
            image = examples.image(sheet.get("index"))
            return F.pad(image, [(side - image.shape[-1]) // 2] * 4)
        except ValueError as error:
            raise capsnet.InvalidDrawingError(str(error)) from None
    if kind == "file":
        return read_file(sheet.get("data"), side)
    raise capsnet.InvalidDrawingError("This is no sheet: send strokes, a sample digit or a file.")


def is_empty(sheet) -> bool:
    """Whether nothing was put on the sheet at all."""
    return isinstance(sheet, dict) and sheet.get("kind") == "strokes" and sheet.get("strokes") == []


def read_strokes(strokes, side: int = 28) -> torch.Tensor:
    """Strokes as the network takes them; an empty list of strokes is an empty sheet."""
    if isinstance(strokes, list) and not strokes:
        raise capsnet.EmptyDrawingError("The sheet is empty: draw a digit.")
    return capsnet.prepare_digit({"strokes": strokes}, side)


def read_file(data, side: int = 28) -> torch.Tensor:
    """A picture file in base64 as the network takes it; it is on the disk only while it is read."""
    if not isinstance(data, str) or not data:
        raise capsnet.InvalidDrawingError("The file is empty: choose a picture, for example PNG or JPEG.")
    if len(data) * 3 // 4 > LARGEST_FILE:
        raise capsnet.InvalidDrawingError(f"The file is too large: choose one under {LARGEST_FILE // 1_000_000} MB.")
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        raise capsnet.InvalidDrawingError("The file did not arrive whole: choose it again.") from None
    with TemporaryDirectory() as folder:
        path = Path(folder) / "This file"  # what an error's sentence calls it
        path.write_bytes(content)
        return capsnet.prepare_digit(path, side)
