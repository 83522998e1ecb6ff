"""The last drawings to go on with, a link that holds one of them, and its picture and pose as files."""

import gradio as gr

from . import examples
from .pixels import read


def build(networks: dict, panels: int) -> gr.HTML:
    """The panel. It asks nothing of the server: drawings are kept in the browser, until the page is closed.

    panels: how many there are on the page; a link is followed once all of them listen.
    """
    first, *_ = networks
    info = networks[first].info
    return gr.HTML(
        html_template=read("keep.html"),
        js_on_load=read("paint.js", "ask.js", "sheet.js", "save.js", "keep.js"),
        apply_default_css=False,
        elem_id="keep",
        panels=panels,
        networks=list(networks),
        names=info.class_names,
        size=info.pose_size,
        samples=len(examples.digits()["labels"]),
    )
