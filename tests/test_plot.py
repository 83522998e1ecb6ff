"""`python train/plot.py`, which draws a training."""

import io
import sys

import pytest
from PIL import Image
from scripts import load_script
from test_training import run

from capsnet.checkpoint import read_json


@pytest.fixture
def plot():
    return load_script("plot")


@pytest.fixture
def main(plot, monkeypatch):
    def main(*arguments):
        monkeypatch.setattr(sys, "argv", ["plot.py", *map(str, arguments)])
        return plot.main()

    return main


def test_a_run_is_drawn(main, plot, small, digits, tmp_path, monkeypatch, capsys):
    figures = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", seen(figures))
    run(tmp_path / "run", digits, epochs=2)
    assert main(tmp_path / "run") == 0 and capsys.readouterr().out.strip() == str(tmp_path / "run" / "training.png")
    with Image.open(tmp_path / "run" / "training.png") as picture:
        assert picture.format == "PNG" and picture.width > 1000
    (figure,) = figures
    assert [one.get_title() for one in figure.axes] == [title for title, *_ in plot.DIAGRAMS]
    history = read_json(tmp_path / "run" / "metrics.json")["history"]
    training, validation = figure.axes[1].lines
    assert list(training.get_xdata()) == [1, 2]
    assert list(training.get_ydata()) == [100 * row["error"] for row in history]
    assert list(validation.get_ydata()) == [100 * row["validation_error"] for row in history]


def seen(figures):
    from matplotlib.figure import Figure

    savefig = Figure.savefig

    def keep(self, *arguments, **options):
        figures.append(self)
        return savefig(self, *arguments, **options)

    return keep


def test_an_old_history_has_fewer_diagrams(plot):
    history = [
        {"epoch": n, "loss": 1 / n, "error": 0.1, "validation_loss": 0.2, "validation_error": 0.1} for n in (1, 2)
    ]
    with Image.open(io.BytesIO(plot.plot(history))) as picture:
        assert picture.width < 800  # two diagrams


def test_what_cannot_be_drawn_is_one_sentence(main, tmp_path, capsys):
    for place in (tmp_path, "nothing"):
        assert main(place) == 1
        complaint = capsys.readouterr().err.strip()
        assert complaint and "\n" not in complaint
