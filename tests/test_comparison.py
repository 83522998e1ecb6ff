"""What the routing table is made of: `python train/evaluate.py --suite routing`."""

import importlib
import json
import sys
from pathlib import Path

import pytest
import torch

from capsnet import checkpoint
from capsnet.checkpoint import save_model, write_json
from capsnet.comparison import changed, encoder_parameters, error_by, iterates, macs, settling
from capsnet.data import to_float
from capsnet.evaluation import evaluate_mnist
from capsnet.models import CONFIGS, create_model

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def model(small):
    torch.manual_seed(0)
    return create_model("small").eval()


@pytest.fixture
def comparison(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    return importlib.import_module("train.comparison")


def test_macs_by_hand(model):
    """Convolutions, the votes of 72 capsules, two weighted sums and two agreements; the first sum only adds."""
    assert macs(model) == 20**2 * 16 * 9**2 + 6**2 * 8 * 16 * 9**2 + 72 * 4 * 160 + (2 + 2) * 72 * 160


def test_parameters_of_the_encoder():
    assert encoder_parameters(create_model("efficient-capsnet")) == 161_824  # as published


def test_settings_are_changed_for_a_while_only(model):
    images = torch.rand(2, 1, 28, 28)
    before = model(images).lengths
    with pytest.raises(ZeroDivisionError), changed(model, iterations=1, temperature=7.0):
        assert (model.routing.iterations, model.routing.temperature) == (1, 7.0)
        assert not torch.equal(model(images).lengths, before)
        raise ZeroDivisionError
    assert (model.routing.iterations, model.routing.temperature) == (3, 1.0)
    assert torch.equal(model(images).lengths, before)


def test_errors_by_iterations_and_temperature(model, digits):
    errors = error_by(model, digits, "iterations", (1, 3))
    assert errors == {1: evaluate_mnist(uniform(model), digits).error, 3: evaluate_mnist(model, digits).error}
    assert error_by(model, digits, "temperature", (1e9,))[1e9] == errors[1]
    assert error_by(create_model("efficient-capsnet").eval(), digits, "iterations", (1, 2)) == {}


def uniform(model):
    other = create_model("small", routing_options={"iterations": 1}).eval()
    other.load_state_dict(model.state_dict())
    return other


def test_iterating_or_not():
    assert {name for name in CONFIGS if iterates(create_model(name))} == {
        "capsnet",
        "capsnet-small",
        "dynamic-capsnet",
        "windowed-capsnet",
        "em-capsnet",
    }


def test_settling_is_the_mean_change_of_coupling(model, digits):
    changes = settling(model, digits, 4, batch_size=15)
    with changed(model, iterations=4):
        trace = model(to_float(digits.images), trace=True).trace
    by_hand = [(b["coupling"] - a["coupling"]).abs().mean().item() for a, b in zip(trace, trace[1:], strict=False)]
    assert changes == pytest.approx(by_hand) and len(changes) == 3 and min(changes) > 0


def test_seeds_and_drawn_digits_are_counted(comparison):
    def run(validation, test, *drawn):
        sets = {str(n): {"images": images, "errors": errors} for n, (images, errors) in enumerate(drawn)}
        return {"validation": {"error": validation}, "test": {"error": test}, "drawn": sets}

    alone = run(0.1, 0.2, (90, 9), (10, 1))
    assert comparison.measured(alone) == {"validation": [0.1], "test": [0.2], "drawn": [0.1]}
    metrics = {**alone, "seeds": {"0": alone, "1": {"validation": {"error": 0.3}}}}
    assert comparison.measured(metrics) == {"validation": [0.1, 0.3], "test": [0.2], "drawn": [0.1]}
    assert comparison.spread([0.001, 0.003]) == "0.20% ± 0.14%"
    assert comparison.spread([0.001]) == "0.10%" and comparison.spread([]) == "–"


@pytest.fixture
def weights(comparison, small, digits, monkeypatch, tmp_path):
    """Two models in weights/, one that iterates; little timing, and no other process, which would not know "small"."""
    monkeypatch.setattr(checkpoint, "WEIGHTS", tmp_path)
    monkeypatch.setitem(CONFIGS, "uniform-capsnet", {**small, "routing_options": {"iterations": 1}})
    for name in ("small", "uniform-capsnet"):
        (tmp_path / name).mkdir()
        save_model(create_model(name), tmp_path / name)
        write_json(tmp_path / name / "metrics.json", {"validation": {"error": 0.125}})
    monkeypatch.setattr(comparison, "ROUNDS", 1)
    monkeypatch.setattr(comparison, "in_a_new_process", lambda function, name: 3 * 2**20)
    return tmp_path


def test_the_command_writes_the_tables(weights, digits, monkeypatch, capsys):
    evaluate = importlib.import_module("train.evaluate")
    monkeypatch.setattr(evaluate, "WEIGHTS", weights)
    monkeypatch.setattr(evaluate, "load_mnist", lambda *_, **__: digits)
    monkeypatch.setattr(evaluate, "split_validation", lambda data: (data[:20], data[20:]))
    monkeypatch.setattr(sys, "argv", ["evaluate.py", "--suite", "routing", "--json"])
    assert evaluate.main() == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures.keys() == {"small", "uniform-capsnet"}
    assert figures["uniform-capsnet"]["training_step"] == figures["uniform-capsnet"]["single_image"] == 1
    assert "iterations" not in figures["uniform-capsnet"]
    row = figures["small"]
    assert row["iterations"]["3"] == row["temperature"]["1.0"]
    assert row["iterations"]["1"] == row["temperature"]["1000000000.0"]
    text = (weights / "README.md").read_text()
    assert "| small | 12.50% | – | – |" in text and "| 3 MiB |" in text
    assert "| validation error at temperature T | T = 0.25 |" in text and "T = ∞ |" in text
    assert "| mean change of the coupling | 1 → 2 |" in text


def test_times_need_the_model_they_are_measured_by(comparison, digits, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "WEIGHTS", tmp_path)
    with pytest.raises(checkpoint.ModelError, match="no weights of uniform-capsnet"):
        comparison.compare(digits)


def test_memory_is_measured_in_a_process_of_its_own(comparison):
    """At the least, the first map of 128 images in float32 and its gradient."""
    one_map = 128 * 32 * 24 * 24 * 4
    assert comparison.in_a_new_process(comparison.peak_memory, "affine-capsnet") > one_map
