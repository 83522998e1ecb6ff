import pytest
import torch

from capsnet.data import Images
from capsnet.models import CONFIGS
from capsnet.pens import pen_digits

# Small tensors gain nothing from threads, and on a busy machine threads wait for one another.
torch.set_num_threads(1)

# Convolutions of this size take the Fourier form in batches of 16 and more, like those of the real network.
SMALL = {
    "trunk_options": {"channels": 16},
    "primary_options": {"types": 2, "dim": 4},
    "decoder_hidden": [16, 24],
}


@pytest.fixture
def small(monkeypatch):
    """Settings of a small network, which `create_model` knows as "small" during the test."""
    monkeypatch.setitem(CONFIGS, "small", SMALL)
    return dict(SMALL)


@pytest.fixture(scope="session")
def digits():
    """40 digits in MNIST's form, four of each kind."""
    images, labels = pen_digits(40, seed=5)
    return Images(torch.from_numpy(images)[:, None], torch.from_numpy(labels))
