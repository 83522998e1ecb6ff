"""Endpoints for programs: stateless, beside the page's own private events."""

import gradio as gr
from gradio.processing_utils import save_pil_to_cache
from gradio.utils import get_upload_folder
from PIL import Image

import capsnet

from . import words
from .answer import ask, decode
from .networks import named
from .pad import read_strokes

PICTURE_SIDE = 280


def add_endpoints(networks: dict) -> None:
    """Add /recognize, /recognize_strokes and /decode to the Blocks that is being built.

    networks: those of the page, the first of which is the default. The endpoints take their names, never a path or a
    repository: what is loaded is not a visitor's to choose.
    """
    first, *_ = networks

    def chosen(name):
        try:
            return named(networks, name)
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from None

    def recognize(image: gr.FileData, model: str = first) -> dict:
        """Read the handwritten digit on a picture.

        image: a picture file (PNG, JPEG, ...) with one digit, dark on light or light on dark.
        model: name of the network, by default the one that the page begins with.
        Returns {"digit": 0 to 9 or null, "lengths": a number from 0 to 1 for every digit, "pose": the 16
        numbers of the longest capsule, "reason": null, or one sentence that says why there is no digit}. A drawing
        that does not look like a digit has lengths and a pose, too; of one that cannot be read they are zeros.
        """
        network = chosen(model)
        path = image.get("path") if isinstance(image, dict) and image.get("meta") else None
        if not isinstance(path, str) or not path:
            raise gr.Error("Send a picture file, for example PNG or JPEG.", print_exception=False)
        return read(network, lambda: capsnet.prepare_digit(path))

    def recognize_strokes(strokes: list[list[list[float]]], model: str = first) -> dict:
        """Read a handwritten digit from its strokes.

        strokes: [[[x, y], ...], ...], x to the right, y down, in any unit.
        model: name of the network, by default the one that the page begins with.
        Returns {"digit": 0 to 9 or null, "lengths": a number from 0 to 1 for every digit, "pose": the 16
        numbers of the longest capsule, "reason": null, or one sentence that says why there is no digit}. A drawing
        that does not look like a digit has lengths and a pose, too; of one that cannot be read they are zeros.
        """
        return read(chosen(model), lambda: read_strokes(strokes))

    def decode_pose(digit: int, pose: list[float], model: str = first) -> gr.FileData:
        """Draw a digit from its pose.

        digit: 0 to 9.
        pose: the 16 numbers of its capsule.
        model: name of the network, by default the one that the page begins with.
        Returns a PNG of 280 × 280 pixels, ink white on black.
        """
        network = chosen(model)
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
        "digit": answer.digit if answer.known else None,
        "lengths": answer.lengths.tolist(),
        "pose": answer.poses[answer.digit].tolist(),
        "reason": None if answer.known else words.say(words.unlike(model.info.class_names[answer.digit])),
    }


def to_png(picture) -> Image.Image:
    """A picture (1, H, W) of values 0 to 1 as a grey image of 280 × 280 with visible pixels, ink white."""
    grey = (picture[0].clamp(0, 1) * 255).round().byte().numpy()
    return Image.fromarray(grey).resize((PICTURE_SIDE, PICTURE_SIDE), Image.Resampling.NEAREST)
