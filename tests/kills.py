"""Kill a training again and again: `python tests/kills.py FOLDER KILLS`.

In FOLDER it leaves "killed", what became of a run that was killed at random moments and resumed each time, and prints
in JSON where those kills found it: [epoch, batch] of the checkpoint, or null where there was none yet.

Each run is a fork of this process, which has torch imported but computes nothing itself.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

import torch  # noqa: E402
import torch._dynamo  # noqa: E402, F401 (every optimizer imports it at its first step, which takes seconds)
from small import SMALL  # noqa: E402
from test_training import run  # noqa: E402

from capsnet.checkpoint import load_model, read_tensors, save_model  # noqa: E402
from capsnet.data import Images  # noqa: E402
from capsnet.models import CONFIGS, create_model  # noqa: E402
from capsnet.pens import pen_digits  # noqa: E402
from capsnet.run import CHECKPOINT, PREVIOUS, has_checkpoint, remove_checkpoints  # noqa: E402


def stands(out: Path) -> tuple[int, int] | None:
    """Epoch and batch of the checkpoint that counts; None where there is none."""
    if not has_checkpoint(out):
        return None
    progress = read_tensors(out / (CHECKPOINT if (out / CHECKPOINT).exists() else PREVIOUS))[1]["progress"]
    return progress["epoch"], progress["batch"]


def fork(function, *arguments) -> int:
    """The number of a new process that calls the function and ends, with status 1 after an error."""
    number = os.fork()
    if number:
        return number
    status = 1
    try:
        torch.set_num_threads(1)
        function(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def train(out: Path) -> None:
    """Begin, or go on where the last one was killed, with a checkpoint after every step."""
    images, labels = pen_digits(40, seed=5)
    digits = Images(torch.from_numpy(images)[:, None], torch.from_numpy(labels))
    run(out, digits, resume=has_checkpoint(out), checkpoint_minutes=0)


def check(out: Path) -> None:
    load_model(out)  # whatever happened, the weights that are there can be read


def wait(number: int) -> None:
    assert os.waitpid(number, 0)[1] == 0


def main() -> None:
    folder, kills, chance = Path(sys.argv[1]), int(sys.argv[2]), random.Random(0)
    CONFIGS["small"] = SMALL
    out = folder / "killed"
    wait(fork(lambda: save_model(create_model("small"), out)))  # the weights of before
    began = time.monotonic()
    wait(fork(train, folder / "whole"))
    whole = time.monotonic() - began
    places = []
    while len(places) < kills:
        number = fork(train, out)
        time.sleep(chance.uniform(0, 0.6) * whole)
        os.kill(number, signal.SIGKILL)
        if os.waitpid(number, 0)[1] == signal.SIGKILL:
            places.append(stands(out))
        else:  # it was done sooner than killed: once more from the start
            remove_checkpoints(out)
        wait(fork(check, out))
    wait(fork(train, out))
    print(json.dumps(places))


if __name__ == "__main__":
    main()
