"""One reading of a sheet: everything the panels show, in one forward pass."""

import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import wraps

import torch
from fastapi import HTTPException

from capsnet.pose import draw
from capsnet.rejection import is_digit

from .words import verdict

DECIMALS = 3  # of lengths and pose numbers; the pictures are decoded from the rounded poses, so both agree exactly
# One request at a time has all cores. As many at once as Gradio has threads only hold one another up, and each thread
# keeps memory of its own.
WORKER = ThreadPoolExecutor(1, "network")
LARGEST = 1000  # a squashed pose lies within ±1; this far beyond, a picture means nothing


@dataclass
class Answer:
    """What the network says to one image."""

    image: torch.Tensor  # (1, H, W), what it saw
    lengths: torch.Tensor  # (K,)
    poses: torch.Tensor  # (K, P)
    pictures: torch.Tensor  # (K, 1, H, W): each capsule's rounded pose, decoded on its own
    digit: int  # the longest capsule
    known: bool  # whether the image looks like a digit at all
    suspects: list[int]  # the digits that the sentence names
    sentence: dict  # which digit: a message, see words.py
    detail: dict  # how sure
    seconds: float  # from the image to lengths and poses


def rounded(values: torch.Tensor) -> list:
    """Nested lists of the values to three decimals, as they travel and as the sliders show them."""
    return [rounded(row) for row in values] if values.dim() > 1 else [round(v, DECIMALS) for v in values.tolist()]


@torch.inference_mode()
def ask(model, image: torch.Tensor) -> Answer:
    """Read one image (1, H, W) and decode the pose of every capsule."""
    start = time.perf_counter()
    out = model(image[None])
    seconds = time.perf_counter() - start
    lengths, poses = out.lengths[0], out.poses[0]
    digit, pictures = int(lengths.argmax()), decode_each(model, torch.tensor(rounded(poses)))
    known = bool(is_digit(model, image[None], pictures[digit, None], out.lengths))
    suspects, sentence, detail = verdict(lengths.tolist(), model.info.class_names, known)
    return Answer(
        image=image,
        lengths=lengths,
        poses=poses,
        pictures=pictures,
        digit=digit,
        known=known,
        suspects=suspects,
        sentence=sentence,
        detail=detail,
        seconds=seconds,
    )


def decode_each(model, poses: torch.Tensor) -> torch.Tensor:
    """All poses (K, P) of one drawing, each through the decoder on its own: (K, 1, H, W)."""
    count = len(poses)
    return model.decode(poses.expand(count, -1, -1), torch.arange(count))


def decode(model, digit: int, pose: list[float]) -> torch.Tensor:
    """The picture (1, H, W) that the decoder draws of one digit's pose. Raises ValueError with one sentence."""
    return draw(model, check_digit(model, digit), torch.tensor([check_pose(model, pose)]))[0]


def refusing(function):
    """The function as the browser calls it: its ValueError becomes a refused request, and no traceback goes out."""

    @wraps(function)
    def call(request):
        try:
            return WORKER.submit(function, request).result()
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        except Exception:
            traceback.print_exc()
            raise HTTPException(500, "The page failed at this request: try again.") from None

    return call


def check_digit(model, digit) -> int:
    """The digit, if the model has a capsule for it; else ValueError with one sentence."""
    count = len(model.info.class_names)
    if isinstance(digit, bool) or not isinstance(digit, int) or not 0 <= digit < count:
        raise ValueError(f"The digit must be a whole number from 0 to {count - 1}.")
    return digit


def check_pose(model, pose) -> list[float]:
    """The pose as floats, if it is a list of as many finite numbers; else ValueError with one sentence."""
    size = model.info.pose_size
    if not isinstance(pose, list) or len(pose) != size:
        raise ValueError(f"The pose must be a list of {size} numbers.")
    for number in pose:
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= LARGEST:
            raise ValueError(f"Every number of the pose must be finite and between -{LARGEST} and {LARGEST}.")
    return [float(number) for number in pose]
