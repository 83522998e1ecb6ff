"""The page: three panels side by side, one event from a sheet to all of them, endpoints for programs."""

import gradio as gr

import capsnet

from . import api, lengths, pad, theme, tweak, words
from .answer import ask


def build(model, name: str) -> gr.Blocks:
    """The whole page around one model that is loaded already; programs find it under that name.

    Nothing of a visitor stays on the server: a sheet comes in, an answer goes out, and the pose on the
    sliders lives in the browser.
    """

    def read(sheet):
        return respond(model, sheet)

    with gr.Blocks(title=words.TITLE, analytics_enabled=False, delete_cache=(300, 300)) as page:
        gr.HTML(theme.HEADER, apply_default_css=False, elem_id="top")
        with gr.Row(elem_id="board"):
            with gr.Column(elem_id="left"):
                sheet, seen = pad.build()
            bars = lengths.build(model.info.class_names)
            bench = tweak.build(model)
        gr.HTML(theme.FOOTER, apply_default_css=False, elem_id="bottom")

        # Without the queue an answer is one request, without a stream: an empty event takes 13 ms, not 31.
        sheet.draw(
            read,
            sheet,
            [seen, bars, bench],
            trigger_mode="always_last",
            queue=False,
            show_progress="hidden",
            api_visibility="private",
        )
        api.add_endpoints(model, name)
    return page


def respond(model, sheet) -> tuple[dict, dict, dict]:
    """One sheet from the pad → what the network sees, the lengths, and the poses to bend."""
    try:
        answer = ask(model, pad.read_sheet(sheet))
    except (capsnet.EmptyDrawingError, capsnet.InvalidDrawingError) as error:
        why = words.EMPTY if pad.is_empty(sheet) else (str(error), "")
        return {}, lengths.blank(*why, len(model.info.class_names)), {}
    return pad.show(answer), lengths.show(answer), tweak.show(answer)
