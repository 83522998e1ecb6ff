"""The page: three panels side by side, one answer to a sheet for all of them, endpoints for programs."""

import gradio as gr

import capsnet

from . import api, lengths, pad, theme, tweak, words
from .answer import ask


def build(model, name: str) -> gr.Blocks:
    """The whole page around one model that is loaded already; programs find it under that name.

    Nothing of a visitor stays on the server: a sheet comes in, an answer goes out, and the pose on the
    sliders lives in the browser.
    """

    def answer(sheet):
        return respond(model, sheet)

    with gr.Blocks(title=words.TITLE, analytics_enabled=False, delete_cache=(300, 300)) as page:
        gr.HTML(theme.HEADER, apply_default_css=False, elem_id="top")
        with gr.Row(elem_id="board"):
            with gr.Column(elem_id="left"):
                pad.build(answer, silence=unread(model, *words.SILENCE))
            lengths.build(model.info.class_names)
            tweak.build(model)
        gr.HTML(theme.FOOTER, apply_default_css=False, elem_id="bottom")
        api.add_endpoints(model, name)
    return page


def respond(model, sheet) -> dict[str, dict]:
    """One sheet from the pad → what each panel shows of it: what the network sees, the lengths, the poses to bend."""
    try:
        answer = ask(model, pad.read_sheet(sheet))
    except (capsnet.EmptyDrawingError, capsnet.InvalidDrawingError) as error:
        why = words.EMPTY if pad.is_empty(sheet) else (str(error), "")
        return unread(model, *why)
    return {"seen": pad.show(answer), "lengths": lengths.show(answer), "tweak": tweak.show(answer)}


def unread(model, sentence: str, detail: str) -> dict[str, dict]:
    """What the panels show without an answer, and why there is none."""
    return {"seen": {}, "lengths": lengths.blank(sentence, detail, len(model.info.class_names)), "tweak": {}}
