"""Two drawings: the way from the pose of one to that of the other, and one in the style of the other."""

import base64
import io
from dataclasses import dataclass

import gradio as gr
import torch

from capsnet.pose import blend, draw, transplant
from capsnet.redrawer import Redrawer
from capsnet.rejection import is_digit

from . import pad, words
from .answer import refusing, rounded
from .api import to_png
from .networks import named
from .pixels import encode, read
from .tweak import most

STEPS = 31  # pictures from one pose to the other, both included
FRAME, REST = 60, 600  # ms that the film shows a picture, and each end


class UnreadableSheet(ValueError):
    """Sheet A or B cannot be read, and why."""

    def __init__(self, letter: str, error: ValueError):
        super().__init__(f"{letter}: {error}")
        self.letter, self.error = letter, error


@dataclass
class Pair:
    """What a network reads on two sheets, A and B."""

    model: Redrawer
    images: torch.Tensor  # (2, 1, H, W), what it saw
    digits: list[int]  # the longest capsule of each
    poses: torch.Tensor  # (2, P), theirs, rounded as they travel
    known: list[bool]  # whether each looks like a digit at all

    def frames(self) -> torch.Tensor:
        """(STEPS, C, H, W): from A to B."""
        (digit_a, digit_b), (pose_a, pose_b) = self.digits, self.poses
        return blend(self.model, digit_a, pose_a, digit_b, pose_b, STEPS)

    def styled(self) -> tuple[torch.Tensor, tuple[str, ...]]:
        """B's pose (P,) in the style of A, rounded, and which properties were taken over."""
        (digit_a, digit_b), (pose_a, pose_b) = self.digits, self.poses
        pose, properties = transplant(self.model, digit_a, pose_a, digit_b, pose_b)
        bound = most(self.model)
        return torch.tensor(rounded(pose.clamp(-bound, bound))), properties


def build(networks: dict) -> gr.HTML:
    """The panel. Sheet A lives in the browser; B is the one on the pad. It asks only while it is in view.

    A pose that is to be bent goes to the sliders as the DOM event "bend".
    """

    @refusing
    def morph(request):
        return show(networks, request)

    @refusing
    def film(request):
        return animate(networks, request)

    first, *_ = networks
    info = networks[first].info
    return gr.HTML(
        html_template=read("morph.html"),
        js_on_load=read("paint.js", "ask.js", "sheet.js", "view.js", "save.js", "show_sliders.js", "morph.js"),
        server_functions=[morph, film],
        apply_default_css=False,
        elem_id="morph",
        network=first,
        names=info.class_names,
        steps=STEPS,
    )


def read_pair(networks: dict, request) -> Pair:
    """Read both sheets of a request {"network", "a", "b"}, see `pad.read_sheet`, in one forward pass.

    Raises ValueError with one sentence where there is no such network, UnreadableSheet where a sheet cannot be read.
    """
    request = request if isinstance(request, dict) else {}
    model = named(networks, request.get("network"))
    sheets = []
    for key in ("a", "b"):
        try:
            sheets.append(pad.read_sheet(request.get(key)))
        except ValueError as error:
            raise UnreadableSheet(key.upper(), error) from None
    images = torch.stack(sheets)
    with torch.inference_mode():
        out = model(images)
        digits = out.lengths.argmax(1)
        known = is_digit(model, images, model.decode(out.poses, digits), out.lengths)
    poses = out.poses[torch.arange(2), digits]
    return Pair(model, images, digits.tolist(), torch.tensor(rounded(poses)), known.tolist())


def why(error: ValueError):
    """The message of what `read_pair` raises."""
    if isinstance(error, UnreadableSheet):
        return words.message("morph.unreadable", letter=error.letter, why=words.of_error(error.error))
    return words.of_error(error)


def show(networks: dict, request) -> dict:
    """What the panel shows of a request as in `read_pair`, or "why" there is nothing to show."""
    try:
        pair = read_pair(networks, request)
    except ValueError as error:
        return {"why": why(error)}
    pose, properties = pair.styled()
    names = [pair.model.info.class_names[digit] for digit in pair.digits]
    return {
        "digits": pair.digits,
        "known": pair.known,
        "says": words.way(*names),
        "seen": encode(pair.images),
        "frames": encode(pair.frames()),
        "style": {
            "pose": rounded(pose),
            "picture": encode(draw(pair.model, pair.digits[1], pose[None])),
            "found": bool(properties),
            "says": words.style(properties, names[1]),
        },
    }


def animate(networks: dict, request) -> dict:
    """A GIF, in base64, of the way there and back, with a name for the file; or "why" there is none."""
    try:
        pair = read_pair(networks, request)
    except ValueError as error:
        return {"why": why(error)}
    there = [to_png(frame) for frame in pair.frames()]
    back = there[-2:0:-1]
    between = [FRAME] * (STEPS - 2)
    file = io.BytesIO()
    there[0].save(
        file,
        "GIF",
        save_all=True,
        append_images=there[1:] + back,
        duration=[REST, *between, REST, *between],
        loop=0,
    )
    a, b = (pair.model.info.class_names[digit] for digit in pair.digits)
    return {"name": f"morph-{a}-to-{b}.gif", "gif": base64.b64encode(file.getvalue()).decode("ascii")}
