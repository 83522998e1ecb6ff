"""Figures that follow a training."""

import pytest
import torch
from test_training import run

from capsnet.checkpoint import read_json
from capsnet.data import to_float
from capsnet.diagnostics import diagnose, warning
from capsnet.models import CONFIGS, create_model
from capsnet.pairs import fixed_pairs

ALL = {"right_length", "wrong_length", "coupling_entropy", "longest_sum"}


def test_figures(small, digits):
    torch.manual_seed(0)
    model = create_model("small").eval()
    with torch.no_grad():
        model.routing.weight *= 4
        model.routing.bias.normal_()
        out = model(to_float(digits.images))
    found = diagnose(model, digits)
    right = [out.lengths[n, k].item() for n, k in enumerate(digits.labels)]
    assert found["right_length"] == pytest.approx(sum(right) / 40, rel=1e-5)
    assert found["wrong_length"] == pytest.approx((out.lengths.sum().item() - sum(right)) / 360, rel=1e-5)
    c = out.coupling
    assert found["coupling_entropy"] == pytest.approx((-(c * c.log()).sum(2) / torch.tensor(10.0).log()).mean().item())
    longest = out.lengths.max()
    assert found["longest_sum"] == pytest.approx((longest / (1 - longest)).sqrt().item(), rel=1e-3)  # squash, undone


@pytest.mark.parametrize("name", CONFIGS)
def test_every_network_has_figures(name, digits):
    data = fixed_pairs(digits[:4])[0] if name == "multi-capsnet" else digits[:4]
    found = diagnose(create_model(name), data)
    unrouted = {"coupling_entropy", "longest_sum"}
    missing = {"cnn": unrouted, "student": unrouted, "em-capsnet": {"longest_sum"}}.get(name, set())
    assert found.keys() == ALL - missing
    assert all(value >= 0 for value in found.values()) and found.get("coupling_entropy", 0) <= 1.001


def test_even_coupling_has_entropy_one(digits):
    assert diagnose(create_model("uniform-capsnet"), digits[:4])["coupling_entropy"] == pytest.approx(1)


def test_negative_coupling_has_no_entropy(digits):
    model = create_model("attention-capsnet")
    with torch.no_grad():
        model.routing.prior -= 1
    assert diagnose(model, digits[:4]).keys() == ALL - {"coupling_entropy"}


def test_a_run_keeps_the_figures_and_warns(small, digits, tmp_path, monkeypatch):
    lines = []
    run(tmp_path, digits, epochs=1, log=lines.append)
    (epoch,) = read_json(tmp_path / "metrics.json")["history"]
    assert epoch.keys() >= ALL | {"gradient"} and epoch["gradient"] > 0 and len(lines) == 1
    monkeypatch.setattr("capsnet.training.diagnose", lambda *_: {"longest_sum": 51.0})
    run(tmp_path, digits, epochs=1, log=lines.append)
    assert lines[2] == "a capsule is 51 long before the squash, where it hardly learns: lower the learning rate."
    assert warning({"longest_sum": 50.0}) is None and warning({}) is None
