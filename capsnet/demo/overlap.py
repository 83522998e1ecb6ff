"""Two digits over each other: which they are, each redrawn alone in its own colour, and what neither explains."""

import random
from html import escape

import gradio as gr
import torch

from capsnet.models import CapsNet
from capsnet.overlap import Separation, separate
from capsnet.pairs import lay, over, shifts

from . import examples, pad, words
from .answer import refusing, rounded
from .compare import BAR
from .pixels import encode, read

ALONE = 3  # so many digits are shown at most


def build(reader: CapsNet) -> gr.HTML:
    """The panel around the network that reads two digits. It asks only while it is in view."""

    @refusing
    def overlap(request):
        return show(reader, request)

    names = reader.info.class_names
    bars = "".join(BAR.format(hue=k % 10, name=escape(name)) for k, name in enumerate(names))
    return gr.HTML(
        html_template=read("overlap.html").replace("BARS", bars).replace("SIDE", str(reader.info.input_size)),
        js_on_load=read("paint.js", "ask.js", "sheet.js", "view.js", "overlap.js"),
        server_functions=[overlap],
        apply_default_css=False,
        elem_id="overlap",
        names=names,
        side=reader.info.input_size,
        threshold=reader.presence_threshold,
    )


def show(reader: CapsNet, request) -> dict:
    """What the panel shows of a sheet, see `pad.read_sheet`, or of {"kind": "pair"}; or "why" there is nothing."""
    answer = None
    if isinstance(request, dict) and request.get("kind") == "pair":
        image, answer = random_pair()
    else:
        try:
            image = pad.read_sheet(request, reader.info.input_size)
        except ValueError as error:
            return {"why": words.message("overlap.empty") if pad.is_empty(request) else words.of_error(error)}
    found = separate(reader, image)
    ink = found.unexplained.sum() / image.sum().clamp_min(1)
    return {
        "seen": encode(image),
        "lengths": rounded(found.lengths),
        "digits": found.digits[:ALONE],
        "pictures": encode(found.pictures[:ALONE]),
        "unexplained": encode(found.unexplained),
        "share": words.message("overlap.unexplained", share=f"{100 * ink:.0f}"),
        "says": sentence(found, reader.info.class_names),
        "answer": answer,
    }


def random_pair() -> tuple[torch.Tensor, dict]:
    """Two of the page's MNIST digits over each other, (1, 36, 36), and which they are, as a message."""
    one = examples.pick()
    others = [k for k in examples.digits()["labels"].tolist() if k != one["label"]]
    other = examples.pick(label=random.choice(others))
    digits = torch.stack([examples.image(its["index"]) for its in (one, other)])
    names = {"one": str(one["label"]), "other": str(other["label"])}
    return over(lay(digits, shifts(2, torch.default_generator))[None])[0], words.message("overlap.answer", **names)


def sentence(found: Separation, names: list[str]) -> dict:
    """How many digits were found, and which."""
    digits = [names[k] for k in sorted(found.digits)]
    if not digits:
        return words.message("overlap.none")
    if len(digits) == 1:
        return words.message("overlap.one", name=digits[0])
    if len(digits) == 2:
        return words.message("overlap.two", one=digits[0], other=digits[1])
    return words.message("overlap.more", names=digits)
