"""What follows a training."""

import io
import sys
import types

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from test_training import configuration

from capsnet.callbacks import TensorBoard, progress_bar
from capsnet.checkpoint import read_json
from capsnet.training import train


def test_tensorboard_gets_figures_and_reconstructions(small, digits, tmp_path):
    board = TensorBoard(tmp_path / "board")
    train(configuration(epochs=2), digits, digits[:20], tmp_path / "out", log=lambda line: None, callbacks=[board])
    written = EventAccumulator(str(tmp_path / "board")).Reload()
    history = read_json(tmp_path / "out" / "metrics.json")["history"]
    assert set(written.Tags()["scalars"]) == history[0].keys() - {"epoch"}
    for name in written.Tags()["scalars"]:
        points = [(event.step, event.value) for event in written.Scalars(name)]
        assert points == [(e["epoch"], pytest.approx(e[name], rel=1e-6)) for e in history]
    (tag,) = written.Tags()["images"]
    first, last = written.Images(tag)
    assert (first.step, last.step) == (1, 2)
    with Image.open(io.BytesIO(first.encoded_image_string)) as grid:  # two rows of eight
        pixels = np.asarray(grid.convert("L"))
    assert pixels.shape == (56, 224)
    assert np.abs(pixels[:28, :28].astype(int) - digits.images[0, 0].numpy()).max() <= 1


def test_tensorboard_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError) as error:
        TensorBoard("somewhere")
    assert str(error.value) == "logdir is for tensorboard, which is not installed; pip install tensorboard"


def test_a_bar_in_a_terminal_and_a_notebook_but_not_in_a_log_file(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert not progress_bar(total=3).disable and progress_bar(total=3, disable=True).disable
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert progress_bar(total=3).disable
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    assert not progress_bar(total=3).disable
