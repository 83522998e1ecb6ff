"""Train in two processes, as torchrun would start them: `python tests/together.py FOLDER`.

In FOLDER it leaves a folder for each scenario. Each process is a fork of this one, which has torch imported but
computes nothing itself.
"""

import os
import signal
import socket
import sys
from pathlib import Path

import torch
import torch.distributed
from kills import CONFIGS, SMALL, fork, pen_digits, wait
from test_training import run

from capsnet import batches
from capsnet.data import Images
from capsnet.distributed import Team, joined
from capsnet.run import has_checkpoint

NORMALISED = {"trunk": "efficient", "trunk_options": {"channels": [8, 8, 8, 16]}, "primary": "depthwise"}
SETTINGS = {"batch_size": 15}  # 50 images an epoch: 15, 15, 15 and 5, none of which two processes share evenly


def together(function, *arguments) -> None:
    """Call it in two processes, which talk through a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    numbers = []
    for rank in range(2):
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        numbers.append(fork(in_company, function, *arguments))
    for number in numbers:
        wait(number)
    os.environ["WORLD_SIZE"] = "1"


def in_company(function, *arguments) -> None:
    with joined("cpu"):
        function(*arguments)


def digits() -> Images:
    images, labels = pen_digits(40, seed=5)
    return Images(torch.from_numpy(images)[:, None], torch.from_numpy(labels))


def train(out: Path, **changes) -> None:
    lines: list[str] = []
    model = run(out, digits(), resume=has_checkpoint(out), log=lines.append, **{**SETTINGS, **changes})
    team = Team()
    assert len(lines) == (changes.get("epochs", 3) if team.leads else 0), "one speaks for all"
    for name, tensor in model.state_dict().items():  # the same weights in both; what is measured of them, one measures
        if tensor.is_floating_point() and name != "pose_range":
            assert torch.equal(team.total(tensor / 2), tensor)


def train_normalised(out: Path) -> None:
    train(out, model="normalised", epochs=1)


def stop(out: Path) -> None:
    """Ctrl-C reaches one of the two alone, in the second epoch."""
    augment, steps = batches.augment, []

    def counted(*arguments):
        steps.append(1)
        if len(steps) == 6 and not Team().leads:
            signal.raise_signal(signal.SIGINT)
        return augment(*arguments)

    batches.augment = counted
    try:
        run(out, digits(), **SETTINGS)
    except KeyboardInterrupt:
        return
    raise AssertionError("nobody stopped")


def questions() -> None:
    team = Team()
    assert team.any(team.leads, not team.leads, True, False) == [True, True, True, False]
    assert team.total(torch.tensor([1.0 + team.rank])).item() == 3
    shares = [team.share(n) for n in (4, 5, 1)]
    assert (
        shares
        == [
            [(slice(0, 2), 1.0), (slice(0, 2), 0.8), (slice(0, 1), 0.0)],
            [(slice(2, 4), 1.0), (slice(2, 5), 1.2), (slice(0, 1), 2.0)],
        ][team.rank]
    )
    try:
        run(Path("unused"), digits(), batch_size=1)
    except ValueError as error:
        assert str(error) == "batch_size is 1; it must be at least the 2 processes"
    else:
        raise AssertionError("an empty share")


def main() -> None:
    folder = Path(sys.argv[1])
    CONFIGS["small"], CONFIGS["normalised"] = SMALL, NORMALISED
    together(questions)
    together(train, folder / "two")
    together(stop, folder / "stopped")
    together(train_normalised, folder / "normalised")


if __name__ == "__main__":
    main()
