"""The laboratory: the drawing turned, moved, hidden… and what capsules and a plain network still read in it."""

from html import escape

import gradio as gr
import torch

from capsnet.baseline import CNN
from capsnet.distortions import DISTORTIONS, distort
from capsnet.rejection import is_digit

from . import pad, words
from .answer import refusing, rounded
from .networks import named
from .pixels import encode, read

BETWEEN = 3  # steps from one of a distortion's amounts to the next
KIND = '<button type="button" data-kind="{kind}" data-say="laboratory.kind.{kind}"></button>'
NAME = '<span class="digit digit-{hue}">{name}</span>'


def build(networks: dict, plain: CNN | None) -> gr.HTML:
    """The panel. It asks only while it is in view, and only about finished drawings."""

    @refusing
    def experiment(request):
        return show(networks, plain, request)

    first, *_ = networks
    names = networks[first].info.class_names
    kinds = "".join(KIND.format(kind=kind) for kind in DISTORTIONS)
    labels = "".join(NAME.format(hue=k % 10, name=escape(name)) for k, name in enumerate(names))
    return gr.HTML(
        html_template=read("laboratory.html").replace("KINDS", kinds).replace("LABELS", labels),
        js_on_load=read("paint.js", "ask.js", "sheet.js", "view.js", "laboratory.js"),
        server_functions=[experiment],
        apply_default_css=False,
        elem_id="laboratory",
        network=first,
        names=names,
    )


def show(networks: dict, plain: CNN | None, request) -> dict:
    """Curves of a sheet with the "network" that reads it and the "distortion", or "why" there is nothing to show."""
    try:
        model = named(networks, request.get("network") if isinstance(request, dict) else None)
        kind = request.get("distortion")
        if not isinstance(kind, str) or kind not in DISTORTIONS:
            raise ValueError(f"There is no such change: choose one of {', '.join(DISTORTIONS)}.")
        image = pad.read_sheet(request)
    except ValueError as error:  # which the errors of drawings are, too
        return {"why": words.message("laboratory.empty") if pad.is_empty(request) else words.of_error(error)}
    return curves(model, plain, image, kind)


def steps(kind: str) -> list[float]:
    """The amounts of a distortion, and some between each two."""
    ends = DISTORTIONS[kind].amounts
    between = (a + (b - a) * n / BETWEEN for a, b in zip(ends, ends[1:], strict=False) for n in range(BETWEEN))
    return [round(amount, 4) for amount in (*between, ends[-1])]


@torch.inference_mode()
def curves(model, plain: CNN | None, image: torch.Tensor, kind: str) -> dict:
    """What an image (1, H, W) becomes under every amount, and what is read in it, all in one batch."""
    amounts = steps(kind)
    start, images = amounts.index(0), torch.cat([distort(image[None], kind, amount) for amount in amounts])
    out = model(images)
    digit = int(out.lengths[start].argmax())
    pose = out.poses[:, digit]  # (N, P)
    networks = [sentence("laboratory.capsules", model, out.lengths, amounts, kind)]
    winners = out.lengths.argmax(1)
    known = is_digit(model, images, model.decode(out.poses, winners), out.lengths)
    found = {"lengths": rounded(out.lengths), "pose": rounded(pose), "known": known.tolist()}
    if plain is not None:
        answers = plain(images).lengths
        found["plain"] = rounded(answers)
        networks.append(sentence("laboratory.twin", plain, answers, amounts, kind))
    moved = pose.amax(0) - pose.amin(0)
    one, other = sorted(number + 1 for number in moved.topk(2).indices.tolist())
    return {
        "amounts": amounts,
        "start": start,
        "digit": digit,
        "pictures": encode(images),
        **found,
        "told": networks,
        "moved": words.message("laboratory.moved", one=str(one), other=str(other), least=str(int(moved.argmin()) + 1)),
    }


def sentence(key: str, model, lengths: torch.Tensor, amounts: list[float], kind: str) -> dict:
    """How far a network stays with its answer to the image as it is: lengths (N, K), one row for each amount."""
    answers = lengths.argmax(1).tolist()
    start = amounts.index(0)
    low = high = start
    while low > 0 and answers[low - 1] == answers[start]:
        low -= 1
    while high + 1 < len(answers) and answers[high + 1] == answers[start]:
        high += 1
    return words.message(
        key,
        name=model.info.class_names[answers[start]],
        low=words.amount(amounts[low]),
        high=words.amount(amounts[high]),
        unit=words.message(f"laboratory.unit.{kind}"),
    )
