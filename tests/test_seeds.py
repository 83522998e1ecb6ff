"""Trainings from several seeds, and what is measured of them."""

import json
import sys
from statistics import mean, stdev

import pytest
import torch
from scripts import load_script
from test_training import interrupt

from capsnet.checkpoint import ModelError, load_model, read_json
from capsnet.configuration import recipe
from capsnet.evaluation import evaluate_mnist
from capsnet.seeds import train_seeds
from capsnet.training import train


@pytest.fixture
def config(small):
    return recipe("small", epochs=2, batch_size=10, pen_share=0, seed=3, learning_rate=5e-3)


def quiet(line):
    pass


def weights(folder):
    return load_model(folder).state_dict()


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def test_the_best_seed_is_kept(config, digits, tmp_path):
    model = train_seeds(config, 3, digits[:30], digits[30:], tmp_path / "out", log=quiet)
    runs = {seed: read_json(tmp_path / "out" / f"seed-{seed}" / "metrics.json")["validation"] for seed in (3, 4, 5)}
    assert len({run["loss"] for run in runs.values()}) == 3
    best = min(runs, key=lambda seed: (runs[seed]["error"], runs[seed]["loss"]))
    metrics = read_json(tmp_path / "out" / "metrics.json")
    assert metrics["validation"] == runs[best]
    assert metrics["seeds"] == {str(seed): {"validation": run} for seed, run in runs.items()}
    assert read_json(tmp_path / "out" / "training.json")["seed"] == best
    assert same(model.state_dict(), weights(tmp_path / "out" / f"seed-{best}"))
    errors = [run["error"] for run in runs.values()]
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"of 3 seeds; all of them: validation error {mean(errors):.2%} ± {stdev(errors):.2%} (mean" in card


def test_a_seed_by_itself_gives_the_same_weights(config, digits, tmp_path):
    train_seeds(config, 2, digits[:30], digits[30:], tmp_path / "two", log=quiet)
    config.seed = 4
    train(config, digits[:30], digits[30:], tmp_path / "one", log=quiet)
    assert same(weights(tmp_path / "one"), weights(tmp_path / "two" / "seed-4"))
    assert not same(weights(tmp_path / "one"), weights(tmp_path / "two" / "seed-3"))


def test_resuming_goes_on_where_it_stopped(config, digits, tmp_path, monkeypatch):
    train_seeds(config, 2, digits[:30], digits[30:], tmp_path / "whole", log=quiet)
    lines = []

    def stop_in_the_second(line):
        lines.append(line)
        if len(lines) == 5:  # seed 3, its two epochs, seed 4, its first epoch
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_seeds(config, 2, digits[:30], digits[30:], tmp_path / "parts", log=stop_in_the_second)
    assert not (tmp_path / "parts" / "metrics.json").exists()
    lines.clear()
    train_seeds(config, 2, digits[:30], digits[30:], tmp_path / "parts", resume=True, log=lines.append)
    assert sum(line.startswith("epoch") for line in lines) == 1, "what was done is not trained again"
    for seed in (3, 4):
        assert same(weights(tmp_path / "whole" / f"seed-{seed}"), weights(tmp_path / "parts" / f"seed-{seed}"))


def test_a_stopped_seed_is_not_overwritten_nor_one_before_it(config, digits, tmp_path, monkeypatch):
    train_seeds(config, 1, digits[:30], digits[30:], tmp_path, log=quiet)
    before = (tmp_path / "seed-3" / "checkpoint.safetensors").stat().st_mtime_ns
    config.seed = 4
    with monkeypatch.context() as patch:
        interrupt(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            train(config, digits[:30], digits[30:], tmp_path / "seed-4", log=quiet)
    config.seed = 3
    with pytest.raises(ModelError, match="seed-4 holds a training that was stopped in epoch 1 of 2"):
        train_seeds(config, 2, digits[:30], digits[30:], tmp_path, log=quiet)
    assert (tmp_path / "seed-3" / "checkpoint.safetensors").stat().st_mtime_ns == before


def test_the_commands_train_and_measure_every_seed(small, digits, tmp_path, monkeypatch, capsys):
    trainer, evaluator = load_script("train_mnist"), load_script("evaluate")
    monkeypatch.setattr(trainer, "load_mnist", lambda *_, **__: digits)
    monkeypatch.setattr(trainer, "split_validation", lambda data: (data[:20], data[20:]))
    monkeypatch.setattr(evaluator, "load_mnist", lambda *_, **__: digits)
    out = tmp_path / "out"
    few = f"--model small --device cpu --pen-share 0 --batch-size 16 --epochs 1 --seeds 2 --out {out}"
    monkeypatch.setattr(sys, "argv", ["train_mnist.py", *few.split()])
    assert trainer.main() == 0
    monkeypatch.setattr(sys, "argv", ["evaluate.py", "--model", str(out), "--suite", "mnist", "--json"])
    capsys.readouterr()
    assert evaluator.main() == 0
    metrics = read_json(out / "metrics.json")
    assert json.loads(capsys.readouterr().out) == metrics["test"]
    best = str(read_json(out / "training.json")["seed"])
    assert metrics["seeds"].keys() == {"0", "1"} and metrics["seeds"][best]["test"] == metrics["test"]
    for seed, figures in metrics["seeds"].items():
        assert figures["test"] == evaluate_mnist(load_model(out / f"seed-{seed}"), digits).summary()
    assert ", test error " in (out / "README.md").read_text()


def test_no_seeds(monkeypatch, capsys):
    with pytest.raises(SystemExit) as stop:
        load_script("train_mnist").parse(["--seeds", "0"])
    assert stop.value.code == 2 and "seeds is 0; it must be at least 1" in capsys.readouterr().err
