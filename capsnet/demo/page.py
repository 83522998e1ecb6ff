"""The page: three panels side by side, one answer to a sheet for all of them; all networks below; endpoints."""

from typing import Any

import gradio as gr

import capsnet
from capsnet.baseline import CNN
from capsnet.models import CapsNet

from . import api, compare, keep, laboratory, lengths, morph, overlap, pad, perturbations, tweak, votes, words
from .answer import ask, refusing
from .networks import named
from .pixels import read

PANELS = 10  # whose scripts listen to what happens on the page


def build(networks: dict, plain: CNN | None = None, of_pairs: CapsNet | None = None) -> gr.Blocks:
    """The whole page around networks that are loaded already, by name; it begins with the first.

    plain: what the laboratory compares them with. of_pairs: what finds two digits; without it there is no such panel.

    Nothing of a visitor stays on the server: a sheet comes in, an answer goes out, and the pose on the
    sliders lives in the browser.
    """

    @refusing
    def answer(sheet):
        return respond(networks, sheet)

    first, *_ = networks

    with gr.Blocks(
        title=words.say(words.message("page.title")), analytics_enabled=False, delete_cache=(300, 300)
    ) as page:
        gr.HTML(html_template=read("top.html"), js_on_load=read("top.js"), apply_default_css=False, elem_id="top")
        with gr.Row(elem_id="board"):
            with gr.Column(elem_id="left"):
                pad.build(answer, first, silence=unread(networks, *words.silence()))
                keep.build(networks, PANELS + (of_pairs is not None))
            lengths.build(networks)
            tweak.build(networks)
        with gr.Row(elem_id="below"):
            morph.build(networks)
            if of_pairs is not None:
                overlap.build(of_pairs)
            with gr.Column(elem_id="inside"):
                votes.build(networks)
                perturbations.build(networks)
            compare.build(networks)
            laboratory.build(networks, plain)
        gr.HTML(
            html_template=read("bottom.html"),
            js_on_load="words.fill(element);",
            apply_default_css=False,
            elem_id="bottom",
        )
        api.add_endpoints(networks)
    return page.queue(api_open=False)  # programs wait in the queue, too


def respond(networks: dict, sheet) -> dict[str, dict]:
    """One sheet from the pad → what each panel shows of it: what the network sees, the lengths, the poses to bend.

    sheet: as in `pad.read_sheet`, and "network": the name of one.
    """
    name: Any = sheet.get("network") if isinstance(sheet, dict) else None
    try:
        model = named(networks, name)
    except ValueError as error:
        return unread(networks, words.of_error(error), "")
    try:
        answer = ask(model, pad.read_sheet(sheet))
    except (capsnet.EmptyDrawingError, capsnet.InvalidDrawingError) as error:
        why = words.empty() if pad.is_empty(sheet) else (words.of_error(error), "")
        return unread(networks, *why)
    return {"seen": pad.show(answer), "lengths": lengths.show(answer), "tweak": tweak.show(answer, name)}


def unread(networks: dict, sentence, detail) -> dict[str, dict]:
    """What the panels show without an answer, and why there is none."""
    first, *_ = networks.values()
    return {"seen": {}, "lengths": lengths.blank(sentence, detail, len(first.info.class_names)), "tweak": {}}
