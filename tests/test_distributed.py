"""Training in two processes on CPUs: what they learn is what one learns, up to rounding."""

import subprocess
import sys

import pytest
import together
import torch
from test_training import run

from capsnet.checkpoint import load_model, read_json, read_tensors
from capsnet.distributed import Team, joined
from capsnet.run import CHECKPOINT


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    done = subprocess.run([sys.executable, together.__file__, folder], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def assert_alike(a, b, tolerance):
    """Weights and figures of the two folders, up to rounding."""
    one, other = (read_tensors(folder / CHECKPOINT)[0] for folder in (a, b))
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(
            tensor, other[name], rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )
    histories = [read_json(folder / "metrics.json")["history"] for folder in (a, b)]
    for epoch, other_epoch in zip(*histories, strict=True):
        assert epoch == pytest.approx(other_epoch, rel=tolerance)


def test_two_processes_learn_what_one_learns(small, digits, tmp_path, two):
    run(tmp_path, digits, **together.SETTINGS)
    assert_alike(two / "two", tmp_path, 1e-5)
    assert read_json(two / "two" / "metrics.json")["run"]["processes"] == 2
    load_model(two / "two")


def test_one_process_goes_on_where_two_were_stopped(small, digits, tmp_path, two):
    """Ctrl-C in one of them stopped both, at the same step."""
    assert not (two / "stopped" / "model.safetensors").exists()
    run(two / "stopped", digits, resume=True, **together.SETTINGS)
    run(tmp_path, digits, **together.SETTINGS)
    assert_alike(two / "stopped", tmp_path, 1e-5)


def test_a_network_with_batch_normalisation(two):
    """On CPUs each share is normalised by its own statistics, so that this is not what one process learns."""
    assert 0 < read_json(two / "normalised" / "metrics.json")["history"][0]["loss"] < 2
    running = load_model(two / "normalised").state_dict()
    assert all(tensor.isfinite().all() for name, tensor in running.items() if "running" in name)


def test_alone():
    team = Team()
    assert team.leads and team.count == 1 and team.any(True, False) == [True, False]
    assert team.share(5) == (slice(0, 5), 1.0)
    model = torch.nn.Linear(1, 1)
    assert team.network(model, torch.device("cpu")) is model
    with joined("cpu") as device:
        assert device == torch.device("cpu") and not torch.distributed.is_initialized()


def test_more_processes_than_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ValueError, match="2 GPUs for more processes; start torchrun --nproc-per-node=2"):
        with joined("cuda"):
            pass
