"""What lets a training run stop at any time and go on exactly: its state, its checkpoints, Ctrl-C."""

import ctypes
import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from capsnet.checkpoint import ModelError, read_tensors, write_tensors

CHECKPOINT = "checkpoint.safetensors"
PREVIOUS = "checkpoint-previous.safetensors"  # the one before, should that be damaged


class DivergedError(RuntimeError):
    """Loss or gradient is no finite number any more; the message says from which step on, and what to do."""


@dataclass
class Progress:
    """Where a run stands: enough, with the tensors of the checkpoint, to go on exactly."""

    epoch: int = 0  # finished epochs
    batch: int = 0  # finished batches of the next one
    sums: list[float] = field(default_factory=lambda: [0.0] * 4)  # loss, error, length, images of the epoch so far
    gradient: float = 0.0  # norms of the gradients of the epoch so far, added up
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, float] = field(default_factory=dict)

    def add(self, rows: list[list[float]]) -> None:
        """Count finished batches, each with its sums of loss, error, length and images and the norm of its gradient.

        Raises:
            DivergedError: a number is not finite.
        """
        for *sums, norm in rows:
            if not (math.isfinite(sums[0]) and math.isfinite(norm)):
                raise DivergedError(f"loss or gradient is no finite number in step {self.batch + 1} of {self.name}")
            self.sums = [a + b for a, b in zip(self.sums, sums, strict=True)]
            self.gradient += norm
            self.batch += 1

    def finished(self, epochs: int, stop_at_length: float) -> bool:
        """Whether nothing is left to do: all epochs, or validation length enough."""
        return self.epoch >= epochs or bool(self.history) and self.history[-1]["validation_length"] >= stop_at_length

    @property
    def name(self) -> str:
        return f"epoch {self.epoch + 1}"


class Interruptible:
    """Ctrl-C, or SIGTERM, ends the run at the next whole step, when all is consistent; a second one ends it at once."""

    def __enter__(self) -> Callable[[], bool]:
        self.asked = False
        self.previous = {}
        if threading.current_thread() is threading.main_thread():
            self.previous = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return lambda: self.asked

    def _ask(self, number: int, _: Any) -> None:
        self.asked = True
        signal.signal(number, signal.default_int_handler)

    def __exit__(self, *_: Any) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)


class Clock:
    """Says when so many minutes have passed since it last said so."""

    def __init__(self, minutes: float):
        self.seconds, self.last = 60 * minutes, time.monotonic()

    def __call__(self) -> bool:
        due = time.monotonic() - self.last >= self.seconds
        if due:
            self.last = time.monotonic()
        return due


def write_checkpoint(
    out: Path,
    config: Any,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    progress: Progress,
    best: dict[str, Tensor],
    data: str = "",
) -> None:
    """Everything that `read_checkpoint` needs, atomically, into one file of `out`; the one before is kept, too.

    Args:
        config: a dataclass.
        data: fingerprint of what trains and what chooses.
    """
    tensors = {f"model.{name}": t for name, t in model.state_dict().items()}
    tensors |= {f"best.{name}": t for name, t in best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": t for name, t in state.items()}
    tensors["generator"] = generator.get_state()
    note = {"config": asdict(config), "progress": asdict(progress), "data": data}
    write_tensors(out / CHECKPOINT, tensors, note, out / PREVIOUS)


def has_checkpoint(out: Path) -> bool:
    """Whether there is something to resume in `out`."""
    return any((out / name).exists() for name in (CHECKPOINT, PREVIOUS))


def remove_checkpoints(out: Path) -> None:
    """Make way for another run in `out`; raises as `check_not_stopped`."""
    check_not_stopped(out)
    for name in (CHECKPOINT, PREVIOUS):
        (out / name).unlink(missing_ok=True)


def check_not_stopped(out: Path) -> None:
    """Raises ModelError when the run in `out` was stopped and could go on."""
    for name in (CHECKPOINT, PREVIOUS):
        try:
            note = _read(out / name)[1]
            progress, epochs = Progress(**note["progress"]), note["config"]["epochs"]
            done = progress.finished(epochs, note["config"]["stop_at_length"])
        except (ModelError, KeyError, TypeError):  # nothing, or nothing that could go on
            continue
        if done:
            break
        raise ModelError(
            f"{out} holds a training that was stopped in {progress.name} of {epochs}: go on with --resume, or remove "
            "its checkpoints and start anew."
        )


def read_checkpoint(
    out: Path,
    config: Any,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    data: str = "",
    log: Callable[[str], None] = print,
) -> tuple[Progress, dict[str, Tensor]]:
    """Bring model, optimizer and generator to where the run in `out` stood; its progress and best weights.

    Args:
        data: see `write_checkpoint`.
        log: is told in one line when the checkpoint cannot be read and the one before is taken.
    Raises:
        ModelError: there is no whole checkpoint, or it was made with another configuration or other data.
    """
    path = out / CHECKPOINT
    try:
        tensors, note = _read(path)
    except ModelError as error:
        if not (out / PREVIOUS).exists():
            raise
        path = out / PREVIOUS
        tensors, note = _read(path)
        log(f"{error} Going on from {path}, the one before.")
    # A setting that came later had its usual value.
    given, made = asdict(config), {**asdict(type(config)()), **note["config"]}
    if made != given:
        changed = ", ".join(key for key, value in given.items() if made.get(key) != value)
        raise ModelError(f"{path} was made with another {changed}; resume with that, or start anew.")
    if note.get("data", data) != data:
        raise ModelError(f"{path} was made with other images than these; resume with those, or start anew.")

    def part(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}

    try:
        model.load_state_dict(part("model."))
        state: dict[int, dict[str, Tensor]] = {}
        parameters = list(model.parameters())
        for name, tensor in part("optimizer.").items():
            index, key = int(name.split(".")[0]), name.split(".")[1]
            if tensor.shape == parameters[index].shape:
                # In the order that the parameter has in memory: the fused optimizer pairs the two by address.
                tensor = torch.empty_like(parameters[index]).copy_(tensor)
            state.setdefault(index, {})[key] = tensor
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        generator.set_state(tensors["generator"])
        device = next(model.parameters()).device
        return Progress(**note["progress"]), {name: t.to(device) for name, t in part("best.").items()}
    except (RuntimeError, IndexError, KeyError, TypeError, ValueError):
        raise ModelError(f"{path} is of another version of the program; resume with that, or start anew.") from None


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, note = read_tensors(path)
    if not isinstance(note, dict) or not {"config", "progress"} <= note.keys():
        raise ModelError(f"{path} is not a checkpoint of a training run; start anew, without --resume.")
    return tensors, note


def keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next step: getting it from the system anew costs a sixth of a CPU step."""
    if sys.platform == "linux":
        try:
            libc = ctypes.CDLL("libc.so.6")
        except OSError:  # another C library
            return
        M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(M_TOP_PAD, 2**29)
