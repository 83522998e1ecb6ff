"""`python train/screen.py`, which compares ways of training."""

import re
import sys

import numpy as np
import pytest
import torch
from scripts import load_script

from capsnet.data import DataError


@pytest.fixture
def main(small, digits, monkeypatch, tmp_path):
    """Runs the command on 40 digits in place of MNIST; the result counts what each training was given."""
    script = load_script("screen")
    monkeypatch.setattr(script, "load_mnist", lambda *_, **__: digits)
    monkeypatch.setattr(script, "in_a_new_process", lambda function, config: function(config))  # knows "small"
    train = script.train

    def main(*arguments):
        trainings = []

        def counted(config, data, validation, *rest, **others):
            trainings.append((config, data, validation))
            return train(config, data, validation, *rest, **others)

        monkeypatch.setattr(script, "train", counted)
        monkeypatch.setattr(sys, "argv", ["screen.py", "--data-dir", str(tmp_path), *arguments])
        return script.main(), trainings

    main.script = script
    return main


FEW = "model=small,pen-share=0,batch-size=10"


def test_variants_differ_in_what_they_say_and_are_judged_on_the_rest(main, digits, capsys):
    status, trainings = main("--images", "30", "--epochs", "1", FEW, f"{FEW},learning-rate=0.5")
    assert status == 0
    (first, *given), (second, *others) = trainings
    assert (first.model, first.epochs, first.batch_size, first.pen_share) == ("small", 1, 10, 0)
    assert second.learning_rate == 0.5 != first.learning_rate
    for data, held_out in (given, others):
        assert torch.equal(data.images, digits.images[:30]) and torch.equal(held_out.images, digits.images[30:])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {FEW}", f"| {FEW},learning-rate=0.5"]
    for line in lines[2:]:
        error, loss, drawn, memory = (cell.strip(" |") for cell in line.split(" | ")[1:])
        assert re.fullmatch(r"\d+ MiB|–", memory)
        assert float(error.rstrip("%")) % 10 == 0 and float(loss) > 0 and drawn == "–"  # of ten images; no drawn digits


def test_seeds_give_a_spread_and_drawn_digits_their_error(main, digits, tmp_path, capsys):
    (tmp_path / "drawn").mkdir()
    np.savez(tmp_path / "drawn" / "four.npz", images=digits.images[:4, 0].numpy(), labels=digits.labels[:4].numpy())
    status, trainings = main("--images", "30", "--epochs", "1", "--seeds", "2", FEW)
    assert status == 0 and [config.seed for config, *_ in trainings] == [0, 1]
    assert capsys.readouterr().out.splitlines()[-1].count(" ± ") == 3


def test_figures_of_a_row(main):
    results = [(0.01, 0.02, 0.1), (0.03, 0.04, 0.3)]  # standard deviations: √2/100, √2/100, √2/10
    assert main.script.row("x", results) == "| x | 2.00% ± 1.41% | 0.0300 ± 0.0141 | 20.00% ± 14.14% |"
    assert main.script.row("default", results[:1]) == "| default | 1.00% | 0.0200 | 10.00% |"


@pytest.mark.parametrize(
    "arguments",
    [
        ["colour=blue"],
        ["learning-rate=x"],
        ["default", "epochs=2,seeds=3,logdir=x"],
        ["--images", "0", "default"],
        ["--seeds", "0", "default"],
        [],
    ],
    ids=str,
)
def test_mistakes_get_one_line(main, arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(*arguments)
    assert end.value.code == 2 and capsys.readouterr().err.count("\n") == 1


def test_missing_data(main, monkeypatch, capsys):
    def refuse(*_, **__):
        raise DataError("MNIST could not be downloaded.")

    monkeypatch.setattr(main.script, "load_mnist", refuse)
    assert main("default")[0] == 1
    assert capsys.readouterr().err == "MNIST could not be downloaded.\n"
