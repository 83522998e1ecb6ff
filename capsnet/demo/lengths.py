"""Ten capsule lengths as bars in fixed order, and the sentence that sums them up."""

from html import escape

import gradio as gr

from . import words
from .answer import Answer, rounded
from .networks import choice
from .pixels import encode, read

BAR = """
<li><button type="button" class="bar digit digit-{hue}" data-capsule="{k}" data-name="{name}" disabled>
  <span class="name">{name}</span>
  <span class="track"><span class="fill"></span></span>
  <span class="value">0.00</span>
  <canvas class="screen" width="28" height="28" aria-hidden="true"></canvas>
</button></li>"""


def build(networks: dict) -> gr.HTML:
    """The panel; a click on a bar tells the page through the DOM event "capsule" which one is to be bent."""
    first, *_ = networks
    class_names = networks[first].info.class_names
    bars = "".join(BAR.format(k=k, hue=k % 10, name=escape(name)) for k, name in enumerate(class_names))
    page = read("lengths.html").replace("BARS", bars).replace("CHOICE", choice(networks))
    return gr.HTML(
        blank(*words.empty(), len(class_names)),
        html_template=page,
        js_on_load=read("paint.js", "lengths.js", "networks.js"),
        apply_default_css=False,
        elem_id="lengths",
        network=first,
    )


def show(answer: Answer) -> dict:
    """What the panel paints of an answer."""
    return {
        "lengths": rounded(answer.lengths),
        "figures": [words.figure(length) for length in answer.lengths.tolist()],
        "digit": answer.digit,
        "suspects": answer.suspects,
        "sentence": answer.sentence,
        "detail": answer.detail,
        "pictures": encode(answer.pictures),
    }


def blank(sentence, detail, count: int) -> dict:
    """The panel without an answer: no length, no winner, and why."""
    return {
        "lengths": [0.0] * count,
        "figures": [words.figure(0.0)] * count,
        "digit": None,
        "suspects": [],
        "sentence": sentence,
        "detail": detail,
        "pictures": None,
    }
