"""A step of training waits for no GPU: shown without one, on tensors that have a device and no values."""

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from capsnet import batches
from capsnet.batches import lesson, pick
from capsnet.configuration import recipe
from capsnet.data import Images
from capsnet.models import create_model
from capsnet.step import make_step

GPU = torch.device("cuda")


@pytest.fixture
def no_values(monkeypatch):
    """Whatever asks a tensor for a value, as `.item()` or a mask as an index does, fails: it would wait for the GPU."""
    monkeypatch.setattr(torch.nn.init, "trunc_normal_", lambda tensor, *arguments, **options: tensor)  # it asks
    with FakeTensorMode():
        yield


def test_a_value_cannot_be_had(no_values):
    with pytest.raises(DataDependentOutputException):
        torch.rand(3, device=GPU).sum().item()


def test_the_images_of_a_step_are_sorted_out_on_the_cpu():
    """Else the mask of pen digits, as an index, would have to come back from the GPU."""
    data = Images(torch.zeros(100, 1, 28, 28, dtype=torch.uint8), torch.zeros(100, dtype=torch.int64)).to("meta")
    images, labels = pick(torch.arange(60, 120), data, data[:30])
    assert images.shape == (60, 1, 28, 28) and images.device.type == labels.device.type == "meta"


@pytest.mark.parametrize("name", ["capsnet-small", "efficient-capsnet", "em-capsnet", "cnn"])
def test_no_step_asks_for_a_value(no_values, monkeypatch, name):
    monkeypatch.setattr(batches, "pick", lambda batch, data, pens: (data.images[batch], data.labels[batch]))
    digits = Images(
        torch.zeros(100, 1, 28, 28, dtype=torch.uint8, device=GPU), torch.zeros(100, dtype=torch.int64, device=GPU)
    )
    config = recipe(name, precision="bf16")
    with GPU:
        model = create_model(name)

    def backward(loss):  # PyTorch's own wants a real GPU
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)

    monkeypatch.setattr(torch.Tensor, "backward", backward)
    step = make_step(config, model, torch.optim.Adam(model.parameters(), fused=True), GPU)
    its = lesson(config, torch.arange(60), digits, digits[:0], None, slice(None))
    assert its.images.device.type == "cuda" and its.images.shape == (60, 1, 28, 28)
    assert step(its.images, its.labels, 0.0).device.type == "cuda"


@pytest.mark.parametrize("device, mode", [("cuda", "reduce-overhead"), ("cpu", None)])
def test_a_compiled_step_is_one_graph_on_a_gpu(small, monkeypatch, device, mode):
    modes = []
    monkeypatch.setattr(torch, "compile", lambda function, mode=None: modes.append(mode) or function)
    model = create_model("small")
    config = recipe("small", compile=True, precision="fp32")
    make_step(config, model, torch.optim.Adam(model.parameters()), torch.device(device))
    assert modes == [mode]
