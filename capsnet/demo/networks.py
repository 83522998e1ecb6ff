"""The networks that a visitor can choose from, and the choice."""

import sys
from html import escape
from itertools import groupby

import capsnet
from capsnet.baseline import CNN
from capsnet.models import CapsNet, Network
from capsnet.redrawer import Redrawer

from . import words
from .pixels import read


def beside(model, name: str) -> dict:
    """Networks by name: first this one, then those in weights/ that read the same digits; all are loaded.

    What cannot be loaded is left out, and said on stderr.
    """
    networks, known = {name: model}, list(words.NETWORKS)
    for other in sorted(
        capsnet.available_models(), key=lambda name: known.index(name) if name in known else len(known)
    ):
        if other not in networks:
            network = _loaded(other)
            if network is not None and reads(network) == reads(model):
                networks[other] = network
    return networks


def plain(model) -> CNN | None:
    """The plain network in weights/ that reads the same digits, loaded; None where there is none."""
    for name in capsnet.available_models("baseline"):
        network = _loaded(name)
        if isinstance(network, CNN) and takes(network) == takes(model):
            return network
    return None


def of_pairs(model) -> CapsNet | None:
    """The network in weights/ that reads two of the same digits at once, loaded; None where there is none."""
    for name in capsnet.available_models("pair"):
        network = _loaded(name)
        if isinstance(network, CapsNet) and network.presence_threshold is not None:
            if (network.info.in_channels, network.info.class_names) == (1, model.info.class_names):
                return network
    return None


def _loaded(name: str) -> Network | None:
    """The network of that name in weights/; None, and a line on stderr, where it cannot be loaded."""
    try:
        return capsnet.load_model(name)
    except capsnet.ModelError as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
        return None


def reads(model) -> tuple:
    """What a model takes, what it tells apart, and in how many numbers it says how that is written."""
    return model.info.kind, takes(model), model.info.pose_size


def takes(model) -> tuple:
    """What a model takes and what it tells apart."""
    info = model.info
    return info.in_channels, info.input_size, info.class_names


def named(networks: dict, name) -> Redrawer:
    """The network of that name; ValueError with one sentence where there is none."""
    if not isinstance(name, str) or name not in networks:
        raise ValueError(f"There is no model {str(name)[:80]!r}: choose one of {', '.join(networks)}.")
    return networks[name]


def choice(networks: dict) -> str:
    """HTML to choose a network, in groups; networks.js tells the page through the DOM event "network"."""

    def group(name: str) -> str:
        return words.network(name)[0]

    options = "".join(
        f'<optgroup data-say-label="{title}">{"".join(map(_option, names))}</optgroup>'
        for title, names in groupby(sorted(networks, key=lambda name: words.GROUPS.index(group(name))), group)
    )
    return read("networks.html").replace("OPTIONS", options)


def _option(name: str) -> str:
    _, title, about = words.network(name)
    said = words.attribute({"title": title, "about": about})
    return f'<option value="{escape(name)}" data-network="{said}" data-say="{words.attribute(title)}"></option>'
