"""One look: paper for what people draw, dark screens for what the network sees, a colour for each digit."""

from importlib.util import find_spec

import gradio as gr
from starlette.middleware import Middleware

from . import decoding, words
from .guard import Guard
from .pixels import read

SANS = ("ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
MONO = ("ui-monospace", "Menlo", "Consolas", "Liberation Mono", "monospace")


def launch_options(networks: dict) -> dict:
    """What `launch` needs for this page: the look, nothing fetched from elsewhere, nothing remembered, guarded; and the
    decoders of its networks."""
    sans, mono = ([gr.themes.Font(name) for name in names] for names in (SANS, MONO))
    theme = gr.themes.Base(font=sans, font_mono=mono).set(
        body_background_fill="#f4f2ec",
        body_background_fill_dark="#16171b",
        body_text_color="#23211d",
        body_text_color_dark="#ece9e2",
    )
    return {
        "theme": theme,
        # In the head, not through css=, which would rewrite every selector, and before any panel's script.
        "head": f"<style>{read('page.css', 'panels.css')}</style><script>{words.script()}</script>",
        "footer_links": ["api", "settings"],
        "run_history": False,
        "show_error": False,
        "max_file_size": "20mb",
        "mcp_server": find_spec("mcp") is not None,  # the endpoints as tools for language models
        "state_session_capacity": 1000,  # of Gradio's; the page keeps nothing in them
        "app_kwargs": {"middleware": [Middleware(Guard)], "routes": decoding.routes(networks)},
    }
