"""Endpoints for programs: stateless, beside the page's own private events."""

import gradio as gr
from gradio.processing_utils import save_pil_to_cache
from gradio.utils import get_upload_folder
from PIL import Image

import capsnet

from .answer import ask, decode
from .pad import read_strokes

PICTURE_SIDE = 280


def add_endpoints(served, served_name: str) -> None:
    """Add /recognize, /recognize_strokes and /decode to the Blocks that is being built.

    served, served_name: the page's own model. The endpoints take its name and every name of
    `capsnet.available_models()`, never a path or a repository: what is loaded is not a visitor's to choose.
    """
    loaded = {served_name: served}

    def named(name):
        names = sorted({served_name, *capsnet.available_models()})
        if name not in names:
            raise gr.Error(f"There is no model {name!r}: choose one of {', '.join(names)}.", print_exception=False)
        if name not in loaded:
            loaded[name] = capsnet.load_model(name)
        return loaded[name]

    def recognize(image: gr.FileData, model: str = served_name) -> dict:
        """Read the handwritten digit on a picture.

        image: a picture file (PNG, JPEG, ...) with one digit, dark on light or light on dark.
        model: name of the network, by default the page's own.
        Returns {"digit": 0 to 9 or null, "lengths": a number from 0 to 1 for every digit, "pose": the 16
        numbers of the longest capsule, "reason": null, or one sentence that says why there is no digit}.
        """
        network = named(model)
        path = image.get("path") if isinstance(image, dict) and image.get("meta") else None
        if not isinstance(path, str) or not path:
            raise gr.Error("Send a picture file, for example PNG or JPEG.", print_exception=False)
        return read(network, lambda: capsnet.prepare_digit(path))

    def recognize_strokes(strokes: list[list[list[float]]], model: str = served_name) -> dict:
        """Read a handwritten digit from its strokes.

        strokes: [[[x, y], ...], ...], x to the right, y down, in any unit.
        model: name of the network, by default the page's own.
        Returns {"digit": 0 to 9 or null, "lengths": a number from 0 to 1 for every digit, "pose": the 16
        numbers of the longest capsule, "reason": null, or one sentence that says why there is no digit}.
        """
        return read(named(model), lambda: read_strokes(strokes))

    def decode_pose(digit: int, pose: list[float], model: str = served_name) -> gr.FileData:
        """Draw a digit from its pose.

        digit: 0 to 9.
        pose: the 16 numbers of its capsule.
        model: name of the network, by default the page's own.
        Returns a PNG of 280 × 280 pixels, ink white on black.
        """
        network = named(model)
        try:
            picture = decode(network, digit, pose)
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from None
        path = save_pil_to_cache(to_png(picture), get_upload_folder(), name="digit", format="png")
        return gr.FileData(path=path, mime_type="image/png")

    gr.api(recognize, api_name="recognize", concurrency_limit=4)
    gr.api(recognize_strokes, api_name="recognize_strokes", concurrency_limit=4)
    gr.api(decode_pose, api_name="decode", concurrency_limit=4)


def read(model, prepare) -> dict:
    """The answer of /recognize and /recognize_strokes; a drawing that cannot be read is an answer too."""
    try:
        answer = ask(model, prepare())
    except (capsnet.EmptyDrawingError, capsnet.InvalidDrawingError) as error:
        zeros = [0.0] * len(model.info.class_names), [0.0] * model.info.pose_size
        return {"digit": None, "lengths": zeros[0], "pose": zeros[1], "reason": str(error)}
    return {
        "digit": answer.digit,
        "lengths": answer.lengths.tolist(),
        "pose": answer.poses[answer.digit].tolist(),
        "reason": None,
    }


def to_png(picture) -> Image.Image:
    """A picture (1, H, W) of values 0 to 1 as a grey image of 280 × 280 with visible pixels, ink white."""
    grey = (picture[0].clamp(0, 1) * 255).round().byte().numpy()
    return Image.fromarray(grey).resize((PICTURE_SIDE, PICTURE_SIDE), Image.Resampling.NEAREST)
