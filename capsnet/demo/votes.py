"""Who voted for what: the evidence of the lower capsules, laid over the drawing, round by round."""

from html import escape

import gradio as gr

from capsnet.explain import Explanation, alike, explain
from capsnet.models import CapsNet

from . import pad, words
from .answer import refusing, rounded
from .networks import named
from .pixels import encode, read

ROW = """
<li><button type="button" class="balance digit digit-{hue}" data-name="{name}" disabled>
  <span class="name">{name}</span>
  <span class="scale"><i class="against"></i><i class="for"></i></span>
  <span class="value"></span>
</button></li>"""


def build(networks: dict) -> gr.HTML:
    """The panel. It asks only while it is in view, and only about finished drawings."""

    @refusing
    def votes(request):
        return count(networks, request)

    first, *_ = networks
    info = networks[first].info
    rows = "".join(ROW.format(hue=k % 10, name=escape(name)) for k, name in enumerate(info.class_names))
    return gr.HTML(
        html_template=read("votes.html").replace("ROWS", rows),
        js_on_load=read("paint.js", "ask.js", "sheet.js", "view.js", "votes.js"),
        server_functions=[votes],
        apply_default_css=False,
        elem_id="votes",
        network=first,
        names=info.class_names,
        side=info.input_size,
    )


def count(networks: dict, request) -> dict:
    """What the panel shows of a sheet with the "network" that reads it, or "why" there is nothing to show."""
    try:
        model = named(networks, request.get("network") if isinstance(request, dict) else None)
        image = pad.read_sheet(request)
    except ValueError as error:  # which the errors of drawings are, too
        return {"why": words.message("votes.unvoted") if pad.is_empty(request) else words.of_error(error)}
    if not isinstance(model, CapsNet):
        return {"why": words.message("votes.unrouted")}
    return {"pixels": encode(image), **show(explain(model, image), model.matrices)}


def show(explanation: Explanation, matrices: bool) -> dict:
    """The rounds with evidence by digit and place, and sentences about the capsules that voted."""
    children, (side, stride) = explanation.children, explanation.field
    rounds = [
        {
            "figures": [words.figure(length) for length in round.lengths.tolist()],
            "for": rounded(round.evidence.clamp_min(0).sum(0)),
            "against": rounded(-round.evidence.clamp_max(0).sum(0)),
            "places": rounded(explanation.by_place(t)),
        }
        for t, round in enumerate(explanation.rounds)
    ]
    grid, voters = children.grid or (1, 1), children.poses.shape[1]
    return {
        "digit": int(explanation.rounds[-1].lengths.argmax()),
        "rounds": rounds,
        "field": [side, stride],
        "each": voters // (grid[0] * grid[1]),
        "about": words.voters(voters, grid, side, len(rounds), matrices),
        "directions": words.spread(voters, alike(children)),
    }
