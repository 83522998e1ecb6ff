"""Sliders over one capsule's pose and over properties of its digit, and the decoder's picture of where they stand."""

import gradio as gr
import torch

from capsnet.morphometry import MEANINGFUL

from . import words
from .answer import DECIMALS, LARGEST, Answer, rounded
from .decoding import shape
from .pixels import encode, read

SLIDER = """
<li class="slider" data-number="{i}">
  <label for="pose-{i}"><span>{n}</span> <span class="does"></span></label>
  <span class="rail">
    <input type="range" id="pose-{i}" step="{step}" min="-1" max="1" value="0" disabled>
  </span>
  <input type="number" step="any" value="0" data-say-aria-label="{number}" disabled>
  <button type="button" class="back" data-say-aria-label="{reset}" data-say-title="tweak.reset_title" disabled></button>
  <output for="pose-{i}"></output>
</li>"""

MOVE = """
<li class="move" data-property="{name}">
  <label for="move-{name}" data-say="property.{name}"></label>
  <span class="rail"><input type="range" id="move-{name}" step="any" min="-1" max="1" value="0" disabled></span>
  <button type="button" class="back" data-say-aria-label="{reset}" data-say-title="tweak.reset_title"
    disabled>×</button>
</li>"""


def build(networks: dict) -> gr.HTML:
    """The panel. Its value is a drawing's ten poses; where its sliders stand only the browser knows."""

    info = next(iter(networks.values())).info
    sliders = "".join(map(slider, range(info.pose_size)))
    properties = "".join(map(property_slider, MEANINGFUL))
    return gr.HTML(
        {},
        html_template=read("tweak.html").replace("SLIDERS", sliders).replace("MOVES", properties),
        js_on_load=read("paint.js", "ask.js", "decoder.js", "tweak.js"),
        apply_default_css=False,
        elem_id="tweak",
        names=info.class_names,
        networks={name: bounds(model) for name, model in networks.items()},
    )


def slider(i: int) -> str:
    number, reset = (words.attribute(words.message(key, n=i + 1)) for key in ("tweak.number", "tweak.reset_number"))
    return SLIDER.format(i=i, n=i + 1, step=10**-DECIMALS, number=number, reset=reset)


def property_slider(name: str) -> str:
    reset = words.message("tweak.reset_one", name=words.message(f"property.{name}"))
    return MOVE.format(name=name, reset=words.attribute(reset))


def bounds(model) -> dict:
    """What sliders need to know of a network: `ranges`, the most that a number may be, what each `does`, `moves`, and
    of which shape its decoder is."""
    return {
        "ranges": ranges(model.pose_range),
        "most": most(model),
        "does": does(model),
        "moves": moves(model),
        "decoder": shape(model),
    }


def most(model) -> int:
    """The most that a pose number may be. A squashed vector lies within ±1; matrix capsules are not squashed."""
    return LARGEST if model.matrices else 1


def does(model) -> list[list[list[dict]]]:
    """K × P: what each slider does to the right, a list of messages; none where that was not measured."""
    if model.pose_effects is None:
        return [[[]] * model.info.pose_size for _ in model.info.class_names]
    return [[words.move(effect) for effect in model.pose_effects[name]] for name in model.info.class_names]


def moves(model) -> list[dict[str, dict]]:
    """For each class the directions of `capsnet.pose` by property, to four digits; none where that was not measured."""

    def short(value):
        return [short(v) for v in value] if isinstance(value, list) else float(f"{value:.4g}")

    keys = ("change", "slope", "offset", "low", "high")
    found = model.pose_directions or {}
    return [
        {name: {key: short(direction[key]) for key in keys} for name, direction in found.get(class_name, {}).items()}
        for class_name in model.info.class_names
    ]


def ranges(pose_range: torch.Tensor) -> list[list[list[float]]]:
    """(2, K, P) low and high → K × P × [low, high], rounded as the sliders step."""
    low, high = pose_range.float().cpu().tolist()
    return [
        [[round(a, DECIMALS), round(b, DECIMALS)] for a, b in zip(*rows, strict=True)]
        for rows in zip(low, high, strict=True)
    ]


def show(answer: Answer, network: str) -> dict:
    """What the panel needs of a network's answer: every pose and its picture, so that no click asks again."""
    poses, pictures = rounded(answer.poses), encode(answer.pictures)
    return {"network": network, "digit": answer.digit, "poses": poses, "pictures": pictures}
