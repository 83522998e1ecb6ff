"""What lets a training run survive: kills at any moment, full disks, damaged checkpoints, numbers that are none."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import kills
import pytest
import torch
from kills import stands
from test_training import configuration, equal, interrupt, run

from capsnet import batches, step, training
from capsnet.checkpoint import ModelError, read_tensors, save_model
from capsnet.data import Images
from capsnet.models import create_model
from capsnet.run import CHECKPOINT, PREVIOUS, Clock, DivergedError, Progress, has_checkpoint


def test_twenty_kills_at_random_moments_change_nothing(small, digits, tmp_path):
    run(tmp_path / "straight", digits)
    command = [sys.executable, kills.__file__, tmp_path, "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    places = json.loads(done.stdout)
    assert len(places) == 20 and len(set(map(str, places))) > 3, places  # not always the same moment
    assert equal(tmp_path / "killed", tmp_path / "straight")


def test_checkpoints_within_an_epoch(small, digits, tmp_path, monkeypatch):
    """A power cut in the second epoch's third step costs that step alone."""
    augment, seen = batches.augment, []

    def cut(*arguments):
        seen.append(1)
        if len(seen) == 7:
            raise MemoryError
        return augment(*arguments)

    run(tmp_path / "straight", digits)
    out = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(batches, "augment", cut)
        with pytest.raises(MemoryError):
            run(out, digits, checkpoint_minutes=0)
    assert stands(out) == (1, 2)
    run(out, digits, resume=True)
    assert equal(out, tmp_path / "straight")


def test_no_checkpoint_within_an_epoch_before_its_time(small, digits, tmp_path, monkeypatch):
    written = []
    write = training.write_checkpoint
    monkeypatch.setattr(training, "write_checkpoint", lambda *a: (written.append(a[5].batch), write(*a)))
    run(tmp_path, digits)
    assert written == [0, 0, 0]


def test_clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = Clock(2)
    answers = []
    for now[0] in (100, 219, 220, 221, 339, 341):
        answers.append(clock())
    assert answers == [False, False, True, False, False, True]


# Damaged, missing and foreign checkpoints


@pytest.fixture
def stopped(small, digits, tmp_path, monkeypatch):
    """A run that was stopped in its second epoch: the checkpoint before is that of the end of the first."""
    out = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        interrupt(patch, 6)
        with pytest.raises(KeyboardInterrupt):
            run(out, digits)
    assert stands(out) == (1, 2)
    return out


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


SPOIL = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-10]),
    "empty": lambda path: path.write_bytes(b""),
    "bit": flip_a_bit,
    "missing": lambda path: path.unlink(),
    "foreign": lambda path: path.write_text("{}"),
}


@pytest.mark.parametrize("spoil", SPOIL)
def test_the_checkpoint_before_takes_over(stopped, digits, tmp_path, spoil):
    SPOIL[spoil](stopped / CHECKPOINT)
    lines = []
    run(stopped, digits, resume=True, log=lines.append)
    assert "\n" not in lines[0] and str(stopped / CHECKPOINT) in lines[0]
    assert lines[0].endswith(f"Going on from {stopped / PREVIOUS}, the one before.")
    run(tmp_path / "straight", digits)
    assert equal(stopped, tmp_path / "straight")


def test_both_checkpoints_damaged(stopped, digits):
    for name in (CHECKPOINT, PREVIOUS):
        flip_a_bit(stopped / name)
    with pytest.raises(ModelError) as error:
        run(stopped, digits, resume=True)
    assert "its checksum is not that of its content" in str(error.value) and "\n" not in str(error.value)
    assert str(error.value).endswith("train again.")


def test_resuming_with_other_data_is_refused(stopped, digits):
    swapped = Images(digits.images, digits.labels.flip(0))
    with pytest.raises(ModelError, match="was made with other images than these; resume with those, or start anew."):
        run(stopped, swapped, resume=True)


def test_a_stopped_run_is_not_overwritten(stopped, digits, tmp_path):
    before = (stopped / CHECKPOINT).read_bytes()
    with pytest.raises(ModelError) as error:
        run(stopped, digits)
    assert "holds a training that was stopped in epoch 2 of 3: go on with --resume, or remove its" in str(error.value)
    assert (stopped / CHECKPOINT).read_bytes() == before
    run(stopped, digits, resume=True)
    run(stopped, digits)  # done: another one may begin
    run(tmp_path / "early", digits, stop_at_length=0.01)
    run(tmp_path / "early", digits)


def test_another_run_never_falls_back_to_the_one_before_it(small, digits, tmp_path, monkeypatch):
    run(tmp_path, digits)
    with monkeypatch.context() as patch:
        interrupt(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, digits)
    assert not (tmp_path / PREVIOUS).exists()


# A full disk


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk(stopped, digits, tmp_path, monkeypatch, step):
    save_model(create_model("small"), stopped)
    before = {path.name: path.read_bytes() for path in stopped.iterdir()}

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(OSError) as error:
            run(stopped, digits, resume=True)
    said = "cannot be written (No space left on device); what was there is unharmed."
    assert str(error.value) == f"{stopped / CHECKPOINT} {said}"
    assert {path.name: path.read_bytes() for path in stopped.iterdir()} == before
    run(stopped, digits, resume=True)
    run(tmp_path / "straight", digits)
    assert equal(stopped, tmp_path / "straight")


# Numbers that are none


def test_a_loss_that_is_no_number_stops_the_run(small, digits, tmp_path, monkeypatch):
    """In the second epoch's third step."""
    class_loss, seen = step.class_loss, []

    def spoilt(*arguments):
        seen.append(torch.is_grad_enabled())
        return class_loss(*arguments) * (torch.nan if sum(seen) == 7 else 1)

    with monkeypatch.context() as patch:
        patch.setattr(step, "class_loss", spoilt)
        with pytest.raises(DivergedError) as error:
            run(tmp_path, digits)
    assert str(error.value) == (
        "loss or gradient is no finite number in step 3 of epoch 2; "
        f"the last good state is in {tmp_path / CHECKPOINT}; train anew with a lower learning rate or a lower clip."
    )
    assert stands(tmp_path) == (1, 0)
    assert all(t.isfinite().all() for t in read_tensors(tmp_path / CHECKPOINT)[0].values() if t.is_floating_point())


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_no_state_before_the_first_checkpoint(small, digits, tmp_path, monkeypatch, where):
    if where == "loss":
        monkeypatch.setattr(step, "class_loss", lambda *_: torch.tensor(torch.inf, requires_grad=True))
    else:
        monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(torch.nan))
    with pytest.raises(DivergedError, match="no finite number in step 1 of epoch 1; no state was kept yet; train anew"):
        run(tmp_path, digits)
    assert not has_checkpoint(tmp_path)


def test_a_validation_loss_that_is_no_number(small, digits, tmp_path, monkeypatch):
    nan = {"loss": torch.nan, "error": 0.9, "length": torch.nan}
    monkeypatch.setattr(training, "evaluate", lambda *_, **__: nan)
    with pytest.raises(DivergedError, match="the validation loss is no finite number after epoch 1; no state"):
        run(tmp_path, digits)


def test_progress_counts_what_it_adds():
    progress = Progress()
    progress.add([[1.0, 2.0, 3.0, 4.0, 5.0], [0.1, 0.2, 0.3, 4.0, 0.5]])
    assert progress.batch == 2 and progress.sums == [1.1, 2.2, 3.3, 8.0] and progress.gradient == 5.5
    with pytest.raises(DivergedError, match="step 4 of epoch 1"):
        progress.add([[0.0] * 5, [torch.nan, 0.0, 0.0, 1.0, 0.0]])
    assert progress.batch == 3


# Signals


def test_sigterm_stops_like_ctrl_c(small, digits, tmp_path, monkeypatch):
    handler = signal.getsignal(signal.SIGTERM)
    interrupt(monkeypatch, 2, number=signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, digits)
    assert stands(tmp_path) == (0, 2) and signal.getsignal(signal.SIGTERM) is handler


def test_two_ctrl_c_while_a_checkpoint_is_written(stopped, digits, tmp_path, monkeypatch):
    """The second one falls between two moves of files, the worst moment that there is."""
    replace, seen = os.replace, []

    def interrupted(*arguments):
        replace(*arguments)
        seen.append(1)
        if len(seen) == 1:
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(stopped, digits, resume=True)
    assert not (stopped / CHECKPOINT).exists() and not list(stopped.glob("*.part"))
    run(stopped, digits, resume=True)
    run(tmp_path / "straight", digits)
    assert equal(stopped, tmp_path / "straight")


def test_configuration_of_an_older_version_resumes(stopped, digits, tmp_path, monkeypatch):
    """A checkpoint that says nothing of a setting was made with its usual value."""
    from capsnet.checkpoint import write_tensors

    tensors, note = read_tensors(stopped / CHECKPOINT)
    del note["config"]["max_batches"], note["data"], note["progress"]["gradient"]
    write_tensors(stopped / CHECKPOINT, tensors, note)
    assert configuration().max_batches == 0
    run(stopped, digits, resume=True)
    assert (stopped / "model.safetensors").exists()
