"""The same drawing through every network, side by side."""

from html import escape

import gradio as gr
import torch

import capsnet

from . import pad, words
from .answer import ask, refusing, rounded
from .pixels import encode, read

ROW = """
<tr data-network="{name}">
  <th scope="row">
    <button type="button" data-say-aria-label="{choose}" data-say="{title}"></button> <span data-say="{about}"></span>
  </th>
  <td><span class="spectrum" role="img" data-say-aria-label="compare.no_lengths">{bars}</span></td>
  <td><canvas class="screen" width="28" height="28" aria-hidden="true"></canvas></td>
  <td class="says"></td>
  <td class="took"></td>
</tr>"""
BAR = '<i class="digit digit-{hue}" data-name="{name}"></i>'
NAME = '<span class="digit digit-{hue}">{name}</span>'


def build(networks: dict) -> gr.HTML:
    """The panel. It asks only while it is in view, and only about finished drawings."""

    @refusing
    def compare(sheet):
        return through_all(networks, sheet)

    first, *_ = networks
    names = networks[first].info.class_names
    bars, labels = (
        "".join(cell.format(hue=k % 10, name=escape(name)) for k, name in enumerate(names)) for cell in (BAR, NAME)
    )
    rows = "".join(row(name, bars) for name in networks)
    return gr.HTML(
        html_template=read("compare.html").replace("ROWS", rows).replace("LABELS", labels),
        js_on_load=read("paint.js", "ask.js", "sheet.js", "view.js", "compare.js"),
        server_functions=[compare],
        apply_default_css=False,
        elem_id="compare",
        network=first,
        names=names,
    )


def row(name: str, bars: str) -> str:
    _, title, about = words.network(name)
    choose = words.attribute(words.message("compare.choose", title=title))
    said = {"title": words.attribute(title), "about": words.attribute(about), "choose": choose}
    return ROW.format(name=escape(name), bars=bars, **said)


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
