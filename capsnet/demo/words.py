"""What the page says, in the languages of words.toml: which message fits ten lengths, a pose, voters, an error.

A message is a dict {"say": KEY, ...} with what fills the gaps of its text, a list of messages, or plain text. The
server sends messages; words.js says them in the visitor's language.
"""

import json
import re
import tomllib
from functools import cache
from html import escape

from .pixels import FOLDER, read

SILENT = 0.5  # a longest capsule below this is no answer
CLOSE = 0.2  # two capsules nearer than this are rivals
NEARLY_ALL = 24  # pixels of 28; digits are 20 high or wide
CLEAR = 0.8  # from here on the page speaks without a "looks like"

# Which group each network is in, in the order of the page.
PUBLISHED, FAST, ROUTINGS, OTHERS = GROUPS = "group.published", "group.fast", "group.routings", "group.others"
NETWORKS = {
    "capsnet": PUBLISHED,
    "efficient-capsnet": PUBLISHED,
    "student": FAST,
    "dynamic-capsnet": ROUTINGS,
    "uniform-capsnet": ROUTINGS,
    "affine-capsnet": ROUTINGS,
    "attention-capsnet": ROUTINGS,
    "multi-head-capsnet": ROUTINGS,
    "orth-capsnet": ROUTINGS,
    "windowed-capsnet": ROUTINGS,
    "em-capsnet": ROUTINGS,
}
GAP = re.compile(r"\{(a )?(\w+)\}")


@cache
def table() -> dict[str, dict[str, str]]:
    """Key, such as "pad.title", → language → text."""
    found = {}

    def gather(part: dict, key: str) -> None:
        if all(isinstance(value, str) for value in part.values()):
            found[key] = part
            return
        for name, value in part.items():
            gather(value, f"{key}.{name}" if key else name)

    gather(tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8")), "")
    return found


def attribute(said) -> str:
    """A message as the value of an HTML attribute "data-say", in double quotes."""
    return escape(json.dumps(said, ensure_ascii=False))


def script() -> str:
    """The JavaScript that says everything, with the table."""
    return read("words.js").replace("TABLE", json.dumps(table(), ensure_ascii=False).replace("</", "<\\/"), 1)


def message(key: str, **values) -> dict:
    """The message of that key."""
    return {"say": key, **values}


def say(message, language: str = "en") -> str:
    """The text of a message, as words.js has it."""
    if isinstance(message, list):
        return table()["language.comma"][language].join(say(one, language) for one in message)
    if not isinstance(message, dict):
        return "" if message is None else str(message)

    def fill(gap: re.Match) -> str:
        text = say(message[gap[2]], language)
        return article(text) if gap[1] else text

    return GAP.sub(fill, table()[message["say"]][language])


def of_error(error: Exception):
    """The message of a sentence that the package raises; one that is not in the table stays as it is."""
    for key, wordings in table().items():
        if key.startswith("error."):
            parts = GAP.split(wordings["en"])  # text, article, name, text, article, name, ..., text
            names = parts[2::3]
            pattern = "(.+?)".join(re.escape(text) for text in parts[::3])
            if found := re.fullmatch(pattern, str(error)):
                return message(key, **dict(zip(names, found.groups(), strict=True)))
    return str(error)


def empty() -> tuple[dict, dict]:
    """What the page says of an empty sheet: the sentence and its detail."""
    return message("verdict.empty"), message("verdict.draw")


def silence() -> tuple[dict, dict]:
    """What the page says when the server cannot be reached: the sentence and its detail."""
    return message("silence.sentence"), message("silence.detail")


def network(name: str) -> tuple[str, dict | str, dict | str]:
    """Group, title and description of a network; of one that has none, its name."""
    if name not in NETWORKS:
        return OTHERS, name, ""
    return NETWORKS[name], message(f"network.{name}.title"), message(f"network.{name}.about")


def verdict(lengths: list[float], names: list[str], known: bool = True) -> tuple[list[int], dict, dict]:
    """What the lengths of all capsules say: the digits in question, which digit it is, and how sure.

    known: whether what the capsules draw looks like the drawing.
    """
    first, second = sorted(range(len(lengths)), key=lambda k: -lengths[k])[:2]
    figures = [figure(length) for length in lengths]
    longest = {"name": names[first], "length": figures[first]}
    if not known:
        return [], message("verdict.unknown"), message("verdict.nearest", **longest)
    if lengths[first] < SILENT:
        return [], message("verdict.silent"), message("verdict.longest", **longest)
    if lengths[first] - lengths[second] < CLOSE:
        one, other = sorted((first, second))
        sentence = message("verdict.between", one=names[one], other=names[other])
        return [one, other], sentence, message("verdict.rivals", one=figures[one], other=figures[other])
    sentence = message("verdict.is" if lengths[first] >= CLEAR else "verdict.like", name=names[first])
    detail = message("verdict.sure", length=figures[first], next=names[second], rest=figures[second])
    return [first], sentence, detail


def unlike(name: str) -> dict:
    """Why a drawing that is nearest to this digit is none, for programs."""
    return message("verdict.unlike", name=name)


def move(effect: dict) -> list[dict]:
    """What happens to the digit while a slider goes to the right: "thicker, wider"; nothing if that has no name."""
    return [message(f"{'falls' if effect['changes'][name] < 0 else 'grows'}.{name}") for name in effect["names"]]


def voters(count: int, grid: tuple[int, int], side: int, rounds: int = 1, matrices: bool = False) -> dict:
    """How many capsules vote, from how many places, how much each of them sees, and what counts."""
    height, width = grid
    places, key, values = height * width, "votes.voters", {"count": f"{count:,}", "side": side}
    if places > 1:
        key += "_placed"
        at = {"height": height, "width": width}
        values["where"] = (
            message("votes.at_each", each=count // places, **at) if count > places else message("votes.at", **at)
        )
    if side >= NEARLY_ALL:
        key += "_whole"
    counts = message("votes.matrices") if matrices else message("votes.agree") if rounds > 1 else ""
    return message(key, counts=counts, **values)


def spread(count: int, alike: float) -> dict:
    """How far apart the capsules' directions are."""
    return message("votes.spread", count=f"{count:,}", alike=f"{alike:.2f}")


def way(one: str, other: str) -> dict:
    """What lies between the digits of these names."""
    return message("morph.way_same", name=one) if one == other else message("morph.way", one=one, other=other)


def style(properties: tuple[str, ...], name: str) -> dict:
    """Which properties the digit of that name took over."""
    if not properties:
        return message("morph.unstyled")
    *others, last = (message(f"property.{one}") for one in properties)
    listed = message("language.and", others=others, last=last) if others else last
    return message("morph.style", name=name, properties=listed)


def figure(length: float) -> str:
    """A length as the page writes it, beside the bars and in the sentence alike."""
    return f"{length:.2f}"


def amount(value: float) -> str:
    """An amount of a distortion as the page writes it."""
    return f"{round(value, 2):g}".replace("-", "−")


def milliseconds(seconds: float) -> str:
    """A time as the page writes it."""
    return f"{1000 * seconds:.1f} ms"


def article(name: str) -> str:
    """The name with its article: "a 7", "an 8"."""
    return f"an {name}" if name[:1].lower() in "8aeiou" else f"a {name}"
