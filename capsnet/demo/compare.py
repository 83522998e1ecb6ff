"""The same drawing through every network, side by side."""

from html import escape

import gradio as gr
import torch

import capsnet

from . import pad, words
from .answer import ask, rounded
from .pixels import encode, read

ROW = """
<tr data-network="{name}">
  <th scope="row"><button type="button" aria-label="Go on with {title}">{title}</button> <span>{about}</span></th>
  <td><span class="spectrum" role="img" aria-label="No lengths yet">{bars}</span></td>
  <td><canvas class="screen" width="28" height="28" aria-hidden="true"></canvas></td>
  <td class="says"></td>
  <td class="took"></td>
</tr>"""
BAR = '<i class="digit digit-{hue}" data-name="{name}"></i>'
NAME = '<span class="digit digit-{hue}">{name}</span>'


def build(networks: dict) -> gr.HTML:
    """The panel. It asks only while it is in view, and only about finished drawings."""

    def compare(sheet):
        return through_all(networks, sheet)

    first, *_ = networks
    names = networks[first].info.class_names
    bars, labels = (
        "".join(cell.format(hue=k % 10, name=escape(name)) for k, name in enumerate(names)) for cell in (BAR, NAME)
    )
    rows = "".join(row(name, bars) for name in networks)
    return gr.HTML(
        html_template=read("compare.html")
        .replace("ROWS", rows)
        .replace("LABELS", labels)
        .replace("COMPARE", words.COMPARE),
        js_on_load=read("paint.js", "ask.js", "sheet.js", "view.js", "compare.js"),
        server_functions=[compare],
        apply_default_css=False,
        elem_id="compare",
        network=first,
        names=names,
        empty=words.NOTHING,
        silence=words.SILENCE[0],
    )


def row(name: str, bars: str) -> str:
    _, title, about = words.network(name)
    return ROW.format(name=escape(name), title=escape(title), about=escape(about), bars=bars)


def through_all(networks: dict, sheet) -> list[dict]:
    """What each network says of a sheet, in their order; nothing of a sheet that cannot be read."""
    try:
        image = pad.read_sheet(sheet)
    except (capsnet.EmptyDrawingError, capsnet.InvalidDrawingError):
        return []
    return [through(network, image) for network in networks.values()]


def through(network, image: torch.Tensor) -> dict:
    """What one network says of an image (1, H, W), and how long it took to read it."""
    answer = ask(network, image)
    return {
        "lengths": rounded(answer.lengths),
        "figures": [words.figure(length) for length in answer.lengths.tolist()],
        "digit": answer.digit,
        "sentence": answer.sentence,
        "picture": encode(answer.pictures[answer.digit]),
        "took": words.milliseconds(answer.seconds),
    }
