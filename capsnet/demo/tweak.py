"""Sixteen sliders over one capsule's pose, and the decoder's picture of where they stand."""

import gradio as gr
import torch

from . import words
from .answer import DECIMALS, Answer, decode, rounded
from .pixels import encode, read

SLIDER = """
<li class="slider" data-number="{i}">
  <label for="pose-{i}"><span>{n}</span> <span class="does"></span></label>
  <span class="rail">
    <input type="range" id="pose-{i}" step="{step}" min="-1" max="1" value="0" disabled>
  </span>
  <input type="number" step="any" value="0" aria-label="Pose number {n}" disabled>
  <button type="button" class="back" aria-label="Reset pose number {n}" title="Reset" disabled></button>
  <output for="pose-{i}"></output>
</li>"""


def build(model) -> gr.HTML:
    """The panel. Its value is a drawing's ten poses; where its sliders stand only the browser knows."""

    def bend(request):
        return picture(model, request)

    sliders = "".join(SLIDER.format(i=i, n=i + 1, step=10**-DECIMALS) for i in range(model.info.pose_size))
    return gr.HTML(
        {},
        html_template=read("tweak.html")
        .replace("SLIDERS", sliders)
        .replace("POSE", words.POSE)
        .replace("RANGE", words.RANGE),
        js_on_load=read("paint.js", "ask.js", "tweak.js"),
        server_functions=[bend],
        apply_default_css=False,
        elem_id="tweak",
        names=model.info.class_names,
        ranges=ranges(model.pose_range),
        does=does(model),
    )


def does(model) -> list[list[str]]:
    """K × P: what each slider does to the right, in words; nothing where that was not measured."""
    if model.pose_effects is None:
        return [[""] * model.info.pose_size for _ in model.info.class_names]
    return [[words.move(effect) for effect in model.pose_effects[name]] for name in model.info.class_names]


def ranges(pose_range: torch.Tensor) -> list[list[list[float]]]:
    """(2, K, P) low and high → K × P × [low, high], rounded as the sliders step."""
    low, high = pose_range.float().cpu().tolist()
    return [
        [[round(a, DECIMALS), round(b, DECIMALS)] for a, b in zip(*rows, strict=True)]
        for rows in zip(low, high, strict=True)
    ]


def show(answer: Answer) -> dict:
    """What the panel needs of an answer: every pose and its picture, so that no click asks again."""
    return {"digit": answer.digit, "poses": rounded(answer.poses), "pictures": encode(answer.pictures)}


def picture(model, request) -> str:
    """The decoder's picture, in base64, of the sliders' [digit, pose]. Raises ValueError on anything else."""
    if not isinstance(request, list) or len(request) != 2:
        raise ValueError("Send a digit and a pose.")
    return encode(decode(model, *request))
