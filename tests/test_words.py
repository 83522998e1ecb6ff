"""The table of what the page says: both languages have everything, and nothing is said that is not in it."""

import ast
import re
import string
from pathlib import Path

import pytest

import capsnet
from capsnet.demo import words

FOLDER = Path(words.__file__).parent
LANGUAGES = {"en", "zh"}
# Keys that code puts together
MADE = re.compile(r"^(network|grows|falls|property|language|group|error|votes\.voters|laboratory\.(kind|unit))")


def sources(*endings: str) -> str:
    return "\n".join(path.read_text() for path in FOLDER.iterdir() if path.suffix in endings and path.stem != "words")


def test_both_languages_have_every_text_and_its_gaps():
    assert len(words.table()) > 150
    for key, texts in words.table().items():
        assert texts.keys() == LANGUAGES, key
        assert all(text.strip() for text in texts.values()), key
        gaps = [{name for _, name in words.GAP.findall(text)} for text in texts.values()]
        assert gaps[0] == gaps[1] or key == "error.file_unread", key  # the reason there is always English
        tags = [re.findall(r"<[^>]*>", text) for text in texts.values()]
        assert tags[0] == tags[1] and (not tags[0] or key.endswith("html")), key


def test_chinese_is_chinese():
    names = (
        r"CapsNet|Efficient-|MNIST|Yann LeCun|Corinna Cortes|CC BY-SA|sigmoid|GIF|PNG|JPEG|Esc|MB|EM|English|zh-Hans"
    )
    for key, texts in words.table().items():
        text = re.sub(rf"<[^>]*>|\{{[^}}]*\}}|\b({names})\b|{names}|\b[AB]\b", "", texts["zh"])
        assert not re.search("[A-Za-z]", text), (key, text)
        assert not re.search(r"[一-鿿][,;:?!]|[,;?!][一-鿿]", text), (key, text)  # Chinese marks between Chinese


def test_every_text_is_used_and_every_text_that_is_used_is_there():
    everything = sources(".py", ".js", ".html") + (FOLDER / "words.py").read_text() + (FOLDER / "words.js").read_text()
    used = set(re.findall(r'"([a-z]+\.[a-z_]+)"', everything)) | set(
        re.findall(r'data-say[a-z-]*="([^"{]+)"', everything)
    )
    parts = {key.split(".")[0] for key in words.table()}
    asked = {key for key in used if key.split(".")[0] in parts and not (FOLDER / key).exists()}  # else it is a file
    assert {key for key in asked if key not in words.table()} == set()
    assert {key for key in words.table() if key not in used and not MADE.match(key)} == set()


def test_panels_hold_no_text_of_their_own():
    """HTML has letters only in tags and in names that the code replaces; scripts have no sentences."""
    for path in FOLDER.glob("*.html"):
        text = re.sub(r"<[^>]*>", " ", path.read_text())
        assert set(text.split()) <= {
            "A",
            "B",
            "0",
            "0.5",
            "1",
            "BARS",
            "ROWS",
            "MOVES",
            "SLIDERS",
            "CHOICE",
            "LABELS",
            "KINDS",
            "↻",
        } | {"OPTIONS"}, path.name
    assert not re.search(r'(?<!say-)\b(aria-label|title|placeholder|alt)="', sources(".html"))
    spoken = re.findall(
        r'(?:textContent|innerText|ariaLabel|ariaValueText|title)\s*=[^=]\s*[`"][^`"]*[A-Za-z]', sources(".js")
    )
    assert spoken == []


def raised(module: str):
    """The sentences that a file of the package raises about drawings, {…} for what is filled in."""
    tree = ast.parse((FOLDER.parent / module).read_text())
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("DrawingError") and node.args:
            (said,) = node.args
            if isinstance(said, ast.Name):
                yield constants[said.id]
            elif isinstance(said, ast.Constant):
                yield said.value
            elif isinstance(said, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else None for part in said.values)
                yield "".join("This file" if part is None else part for part in parts)


# What only programs can meet: the page sends no arrays, no paths, and strokes in its own form.
OF_PROGRAMS = (
    "cannot be of type",
    "are of type",
    "nested",
    "pairs of numbers",
    "array",
    "folder",
    "no file",
    "decoded",
)


@pytest.mark.parametrize("module", ["strokes.py", "ink.py", "paper.py", "pictures.py", "demo/pad.py"])
def test_every_error_about_a_drawing_is_in_the_table(module):
    sentences = [sentence for sentence in raised(module) if not any(part in sentence for part in OF_PROGRAMS)]
    assert sentences
    for sentence in sentences:
        message = words.of_error(ValueError(sentence))
        assert isinstance(message, dict), sentence
        if "why" not in message:
            assert words.say(message) == sentence and words.say(message, "zh") != sentence


def test_an_error_that_nobody_translated_stays_as_it_is():
    assert words.of_error(ValueError("What is this?")) == "What is this?" == words.say("What is this?", "zh")


def test_gaps_are_filled():
    assert words.say(words.message("verdict.is", name="8")) == "This is an 8."
    assert words.say(words.message("verdict.is", name="8"), "zh") == "这是 8。"
    nested = words.message("tweak.reset_one", name=words.message("property.slant"))
    assert words.say(nested) == "Reset slant" and words.say(nested, "zh") == "复原倾斜"
    assert words.say([words.message("grows.slant"), "x"]) == "leans right, x" and words.say(None) == ""
    assert words.attribute(words.message("verdict.is", name='"<')).count('"') == 0


def test_the_script_cannot_be_ended_by_a_text():
    assert "</" not in words.script() and "TABLE" not in words.script().split("const table = ")[1][:10]


def test_networks_are_said_by_name():
    for name in capsnet.available_models():
        assert set(string.ascii_letters) & set(words.say(words.network(name)[1]))
