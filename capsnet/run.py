"""What lets a training run stop at any time and go on exactly: its state, its checkpoint, Ctrl-C."""

import ctypes
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from capsnet.checkpoint import ModelError, read_tensors, write_tensors

CHECKPOINT = "checkpoint.safetensors"


@dataclass
class Progress:
    """Where a run stands: enough, with the tensors of the checkpoint, to go on exactly."""

    epoch: int = 0  # finished epochs
    batch: int = 0  # finished batches of the next one
    sums: list[float] = field(default_factory=lambda: [0.0] * 4)  # loss, error, length, images of the epoch so far
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, float] = field(default_factory=dict)


class Interruptible:
    """Ctrl-C ends the run at the next whole step, when everything is consistent; a second one ends it at once."""

    def __enter__(self) -> Callable[[], bool]:
        self.asked = False
        self.previous = None
        if threading.current_thread() is threading.main_thread():
            self.previous = signal.signal(signal.SIGINT, self._ask)
        return lambda: self.asked

    def _ask(self, *_: Any) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *_: Any) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)


def write_checkpoint(
    out: Path,
    config: Any,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    progress: Progress,
    best: dict[str, Tensor],
) -> None:
    """Everything that `read_checkpoint` needs, atomically, into one file of `out`; `config` is a dataclass."""
    tensors = {f"model.{name}": t for name, t in model.state_dict().items()}
    tensors |= {f"best.{name}": t for name, t in best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": t for name, t in state.items()}
    tensors["generator"] = generator.get_state()
    write_tensors(out / CHECKPOINT, tensors, {"config": asdict(config), "progress": asdict(progress)})


def read_checkpoint(
    out: Path, config: Any, model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> tuple[Progress, dict[str, Tensor]]:
    """Bring model, optimizer and generator to where the run in `out` stood; its progress and best weights.

    Raises:
        ModelError: there is no checkpoint, or it was made with another configuration.
    """
    tensors, note = read_tensors(out / CHECKPOINT)
    if not isinstance(note, dict) or not {"config", "progress"} <= note.keys():
        raise ModelError(f"{out / CHECKPOINT} is not a checkpoint of a training run; start anew, without --resume.")
    if note["config"] != asdict(config):
        changed = ", ".join(key for key, value in asdict(config).items() if note["config"].get(key) != value)
        raise ModelError(f"{out / CHECKPOINT} was made with another {changed}; resume with that, or start anew.")

    def part(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}

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
