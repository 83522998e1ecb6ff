"""What follows a training."""

import sys
import types

import pytest
import torch
from test_training import configuration

from capsnet.callbacks import TensorBoard, progress_bar
from capsnet.checkpoint import read_json
from capsnet.training import train


class Writer:
    """In the place of TensorBoard's."""

    def __init__(self, folder):
        self.folder, self.scalars, self.images, self.flushed = folder, [], [], 0

    def add_scalar(self, name, value, step):
        self.scalars.append((name, value, step))

    def add_images(self, name, images, step):
        self.images.append((images, step))

    def flush(self):
        self.flushed += 1


def test_tensorboard_gets_figures_and_reconstructions(small, digits, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=Writer))
    board = TensorBoard(tmp_path / "board")
    config = configuration(epochs=2)
    train(config, digits, digits[:20], tmp_path / "out", log=lambda line: None, callbacks=[board])
    writer, history = board.writer, read_json(tmp_path / "out" / "metrics.json")["history"]
    wanted = [(name, value, e["epoch"]) for e in history for name, value in e.items() if name != "epoch"]
    assert writer.folder == str(tmp_path / "board") and writer.scalars == wanted and writer.flushed == 2
    assert [(images.shape, step) for images, step in writer.images] == [((16, 1, 28, 28), 1), ((16, 1, 28, 28), 2)]
    assert torch.equal(writer.images[0][0][:8] * 255, digits.images[:8].float())


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
