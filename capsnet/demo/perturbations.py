"""Every number of the pose by itself, step by step, as in the paper's figure 4."""

import gradio as gr
import torch
from fastapi import HTTPException

from . import words
from .answer import check_digit, check_pose, decode_all
from .networks import named
from .pixels import encode, read
from .tweak import bounds

STEPS = 11  # pictures a row; the middle one is the drawing's own

ROW = '<li><span>{n}</span> <span class="does"></span></li>'


def build(networks: dict) -> gr.HTML:
    """The panel. A click on a picture tells the page through the DOM event "perturb" which number to move, and how far.

    It asks only while it is in view.
    """

    def perturb(request):
        try:
            return pictures(networks, request)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None

    info = next(iter(networks.values())).info
    rows = "".join(ROW.format(n=i + 1) for i in range(info.pose_size))
    return gr.HTML(
        html_template=read("perturbations.html")
        .replace("ROWS", rows)
        .replace("WIDTH", str(STEPS * info.input_size))
        .replace("HEIGHT", str(info.pose_size * info.input_size))
        .replace("PERTURB", words.PERTURB),
        js_on_load=read("paint.js", "ask.js", "view.js", "perturbations.js"),
        server_functions=[perturb],
        apply_default_css=False,
        elem_id="perturbations",
        steps=STEPS,
        names=info.class_names,
        silence=words.SILENCE[0],
    )


def pictures(networks: dict, request) -> str:
    """P × STEPS pictures in base64 for the [network, digit, pose] of a drawing. Raises ValueError on anything else."""
    if not isinstance(request, list) or len(request) != 3:
        raise ValueError("Send a network, a digit and a pose.")
    name, digit, pose = request
    model = named(networks, name)
    return encode(decode_all(model, check_digit(model, digit), perturbed(model, digit, check_pose(model, pose))))


def perturbed(model, digit: int, pose: list[float]) -> torch.Tensor:
    """(P · STEPS, P): number p moved by −½ to ½ of its slider's range in row p, the others as they are."""
    own, known = torch.tensor(pose), bounds(model)
    low, high = torch.tensor(known["ranges"][digit]).T
    steps = torch.linspace(-0.5, 0.5, STEPS)
    moved = (own + steps[:, None] * (high - low)).clamp(-known["most"], known["most"])  # (STEPS, P)
    poses = own.repeat(len(own), STEPS, 1)  # (P, STEPS, P)
    poses.diagonal(dim1=0, dim2=2).copy_(moved)
    return poses.flatten(0, 1)
