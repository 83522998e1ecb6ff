"""Every number of the pose by itself, step by step, as in the paper's figure 4."""

import gradio as gr
import torch

from capsnet.pose import draw

from .answer import check_digit, check_pose, refusing
from .networks import named
from .pixels import encode, read
from .tweak import most, ranges

STEPS = 11  # pictures a row; the middle one is the drawing's own

ROW = '<li><span>{n}</span> <span class="does"></span></li>'


def build(networks: dict) -> gr.HTML:
    """The panel. A click on a picture takes its pose to the sliders, through the DOM event "bend".

    It asks only while it is in view.
    """

    @refusing
    def perturb(request):
        return pictures(networks, request)

    info = next(iter(networks.values())).info
    rows = "".join(ROW.format(n=i + 1) for i in range(info.pose_size))
    return gr.HTML(
        html_template=read("perturbations.html")
        .replace("ROWS", rows)
        .replace("WIDTH", str(STEPS * info.input_size))
        .replace("HEIGHT", str(info.pose_size * info.input_size)),
        js_on_load=read("paint.js", "ask.js", "view.js", "show_sliders.js", "perturbations.js"),
        server_functions=[perturb],
        apply_default_css=False,
        elem_id="perturbations",
        steps=STEPS,
        names=info.class_names,
    )


def pictures(networks: dict, request) -> str:
    """P × STEPS pictures in base64 for the [network, digit, pose] of a drawing.

    Raises:
        ValueError: anything else is sent; one sentence.
    """
    if not isinstance(request, list) or len(request) != 3:
        raise ValueError("Send a network, a digit and a pose.")
    model = named(networks, request[0])
    digit, pose = check_digit(model, request[1]), check_pose(model, request[2])
    return encode(draw(model, digit, perturbed(model, digit, pose)))


def perturbed(model, digit: int, pose: list[float]) -> torch.Tensor:
    """(P · STEPS, P): number p moved by −½ to ½ of its slider's range in row p, the others as they are."""
    own, (low, high) = torch.tensor(pose), torch.tensor(ranges(model.pose_range)[digit]).T
    steps = torch.linspace(-0.5, 0.5, STEPS)
    moved = (own + steps[:, None] * (high - low)).clamp(-most(model), most(model))  # (STEPS, P)
    poses = own.repeat(len(own), STEPS, 1)  # (P, STEPS, P)
    poses.diagonal(dim1=0, dim2=2).copy_(moved)
    return poses.flatten(0, 1)
