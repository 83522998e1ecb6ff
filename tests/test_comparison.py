"""What the routing table is made of: `python train/evaluate.py --suite routing`."""

import importlib
import json
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from capsnet import checkpoint
from capsnet.checkpoint import save_model, write_json
from capsnet.comparison import changed, encoder_parameters, error_by, iterates, macs, settling
from capsnet.data import to_float
from capsnet.models import CONFIGS, CapsNetOutput, create_model

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
    """On a network that answers the number of its iterations, and one that answers its temperature."""
    few = digits[:10]
    few.labels = torch.tensor([1, 1, 1, 1, 1, 1, 3, 3, 3, 7])
    for setting, errors in (("iterations", {1: 0.4, 3: 0.7}), ("temperature", {1: 0.4, 3: 0.7, 7: 0.9})):

        def forward(images, setting=setting):
            answer = torch.full((len(images),), getattr(model.routing, setting))
            return CapsNetOutput(F.one_hot(answer.long(), 10).float(), images, images)

        model.forward = forward
        assert error_by(model, few, setting, tuple(errors)) == errors
        assert getattr(model.routing, setting) == {"iterations": 3, "temperature": 1}[setting]
    assert error_by(create_model("efficient-capsnet").eval(), few, "iterations", (1, 2)) == {}


def test_iterating_or_not():
    assert {name for name in CONFIGS if name not in ("cnn", "student") and iterates(create_model(name))} == {
        "capsnet",
        "capsnet-small",
        "dynamic-capsnet",
        "windowed-capsnet",
        "multi-capsnet",
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
def weights(comparison, small, monkeypatch, tmp_path):
    """Two models in weights/, one that iterates and takes twice the time of the other to train, thrice to read with."""
    monkeypatch.setattr(checkpoint, "WEIGHTS", tmp_path)
    monkeypatch.setitem(CONFIGS, "uniform-capsnet", {**small, "routing_options": {"iterations": 1}})
    for name, folder in (("small", "mine"), ("uniform-capsnet", "uniform-capsnet")):
        (tmp_path / folder).mkdir()
        save_model(create_model(name), tmp_path / folder)
        write_json(tmp_path / folder / "metrics.json", {"validation": {"error": 0.125}})
    seconds = iter([{"mine": 0.2, "uniform-capsnet": 0.1}, {"mine": 0.03, "uniform-capsnet": 0.01}])

    def time_in_turns(rows, rounds, device):
        for call in rows.values():
            call()
        return next(seconds)

    monkeypatch.setattr(comparison, "time_in_turns", time_in_turns)
    monkeypatch.setattr(comparison, "in_a_new_process", lambda function, config: 3 * 2**20)
    return tmp_path


def test_the_command_writes_the_tables(weights, digits, monkeypatch, capsys):
    evaluate = importlib.import_module("train.evaluate")
    monkeypatch.setattr(evaluate, "WEIGHTS", weights)
    monkeypatch.setattr(evaluate, "load_mnist", lambda *_, **__: digits)
    monkeypatch.setattr(evaluate, "split_validation", lambda data: (data[:20], data[20:]))
    monkeypatch.setattr(sys, "argv", ["evaluate.py", "--suite", "routing", "--json"])
    assert evaluate.main() == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures.keys() == {"mine", "uniform-capsnet"}
    assert figures["mine"]["training_step"] == 2 and figures["mine"]["single_image"] == pytest.approx(3)
    assert "iterations" not in figures["uniform-capsnet"]
    assert list(figures["mine"]["iterations"]) == ["1", "2", "3", "4", "5"] and len(figures["mine"]["settling"]) == 4
    text = (weights / "README.md").read_text(encoding="utf-8")
    assert "| mine | 12.50% | – | – |" in text and "| 2.00 | 3.00 | 3 MiB |" in text
    assert "| validation error at temperature T | T = 0.25 |" in text and "T = ∞ |" in text
    assert "| mean change of the coupling | 1 → 2 |" in text


def test_times_need_the_model_they_are_measured_by(comparison, digits, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "WEIGHTS", tmp_path)
    with pytest.raises(checkpoint.ModelError, match="no weights of uniform-capsnet"):
        comparison.compare(digits)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells")
def test_memory_is_measured_apart_from_this_process(comparison):
    """At the least, the first map of 128 images in float32 and its gradient, however much this process holds."""
    held = torch.ones(2**28)  # 1 GiB
    used = comparison.in_a_new_process(comparison.peak_memory, create_model("affine-capsnet").config)
    assert 2 * 128 * 32 * 24 * 24 * 4 < used < held.numel() * 4
    assert comparison.memory(None) == "–" and comparison.memory(3 * 2**20) == "3 MiB"
