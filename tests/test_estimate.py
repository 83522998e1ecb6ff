"""What a training will take, said before its first step."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from capsnet import estimate as module
from capsnet.comparison import macs
from capsnet.configuration import recipe
from capsnet.estimate import COPIES, WORKSPACE, Estimate, estimate, multiplication_rate, report
from capsnet.models import create_model

ROOT = Path(__file__).resolve().parent.parent


def test_estimate(small, digits):
    """40 images and 10 pen digits in batches of 16 are four steps an epoch."""
    config = recipe("small", epochs=3, batch_size=16, pen_share=0.2, pen_pool=15)
    state = torch.random.get_rng_state()
    found = estimate(config, digits)
    assert torch.equal(torch.random.get_rng_state(), state)
    model = create_model("small")
    numbers = sum(p.numel() for p in model.parameters())
    assert found.parameters == numbers and found.steps == 12 and found.batch_size == 16
    assert found.state == 20 * numbers + (40 + 15) * 784
    assert found.image > 4 * 16 * 400  # the trunk's map alone
    assert estimate(recipe("small", epochs=3, batch_size=16, pen_share=0, max_batches=2), digits).steps == 6
    half = estimate(config, digits, processes=2)
    assert half.batch_size == 8 and half.flops == pytest.approx(found.flops / 2) and half.state == found.state


def test_operations(digits):
    """Of a network whose convolutions are torch's: two a multiplication, and three times the forward pass."""
    found, model = estimate(recipe("cnn", batch_size=10), digits), create_model("cnn")
    assert found.flops == 10 * 3 * 2 * macs(model)


def test_memory_grows_with_the_batch_as_it_says(small, digits):
    a, b = (estimate(recipe("small", batch_size=n), digits) for n in (32, 64))
    assert a.image == b.image and b.memory - a.memory == 32 * a.image


STEPS = """
import torch
from capsnet.configuration import recipe
from capsnet.models import create_model
from capsnet.step import make_step
from train.comparison import most_memory

model, config = create_model("uniform-capsnet"), recipe("uniform-capsnet", precision="fp32")
step = make_step(config, model, torch.optim.Adam(model.parameters(), fused=True), torch.device("cpu"))
images, labels, before = torch.rand(512, 1, 28, 28), torch.randint(0, 10, (512,)), most_memory()
step(images, labels, 1.0), step(images, labels, 1.0)
print(most_memory() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nothing tells the most memory of a process")
def test_memory_is_what_real_steps_take(digits):
    """Of a process of its own, over what it held before; the weights, and the best so far, are not in it."""
    done = subprocess.run([sys.executable, "-c", STEPS], cwd=ROOT, capture_output=True, text=True, check=True)
    found = estimate(recipe("uniform-capsnet", batch_size=512, pen_share=0), digits)
    told = found.memory - 2 * 4 * found.parameters
    assert COPIES == 5 and 0.75 * told < int(done.stdout) < 1.33 * told


def test_advice():
    found = Estimate(parameters=1, steps=1, state=2**30 - WORKSPACE, image=2**20, flops=1, batch_size=2048)
    assert found.memory == 3 * 2**30 and found.advice(3 * 2**30) is None
    said = "this training takes about 3.00 GiB and 2.00 GiB are free: lower batch_size to 1024."
    assert found.advice(2 * 2**30) == said
    assert found.advice(2**29).endswith("take a smaller model or input_size.")


def test_report(small, digits, monkeypatch):
    monkeypatch.setattr(module, "multiplication_rate", lambda *_: 1e9)
    config = recipe("small", epochs=60)
    found = Estimate(parameters=1234, steps=60, state=2**30 - WORKSPACE, image=0, flops=2 * 10**9, batch_size=1)
    text = report(config, found, torch.device("cpu"), False)
    assert "model: small" in text and "epochs: 60" in text and "parameters: 1,234" in text
    assert "about 1.00 GiB in float32" in text and "floor time: 2.0 minutes, at 1 billion" in text


def test_multiplication_rate():
    assert 1e8 < multiplication_rate(torch.device("cpu"), False, 0.01) < 1e14
