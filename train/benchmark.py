"""Speed as ratios: `python train/benchmark.py`. All options: --help.

Timings on one machine are not those on another, and not those of an hour later; ratios of what was timed in turns in
one run are. The floor is torch's own convolution of the same sizes: the two convolutions are 98 % of the network's
multiplications.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from capsnet.command_line import Parser  # noqa: E402
from capsnet.configuration import TrainingConfig  # noqa: E402
from capsnet.layers import ConvTrunk, PrimaryCapsules  # noqa: E402
from capsnet.losses import margin_loss, reconstruction_loss  # noqa: E402
from capsnet.models import CapsNet  # noqa: E402
from capsnet.run import keep_freed_memory  # noqa: E402
from capsnet.step import device_name, make_step, use_bf16  # noqa: E402
from tests.textbook import CapsNet as Textbook  # noqa: E402

BATCH = 128


def main() -> int:
    parser = Parser(description="Time training steps and single images against the two convolutions alone.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="auto", choices=["auto", "bf16", "fp32"])
    parser.add_argument("--rounds", type=int, default=7, help="how often each is timed; the median counts")
    parser.add_argument("--compile", action="store_true", help="also time the compiled step")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; it must be at least 1")
    device = torch.device(options.device)
    keep_freed_memory()
    torch.manual_seed(0)
    low_precision = use_bf16(options.precision, device)
    training = time_in_turns(training_steps(device, options.precision, options.compile), options.rounds, device)
    single = time_in_turns(single_images(device, low_precision), 20 * options.rounds, device)
    result = {
        "device": device_name(device),
        "precision": "bf16" if low_precision else "fp32",
        "torch": torch.__version__,
        "training": summary(training, "the two convolutions", BATCH),
        "single image": summary(single, "the two convolutions", 1),
    }
    print(json.dumps(result, indent=2) if options.json else table(result))
    return 0


def training_steps(device: torch.device, precision: str, compiled: bool) -> dict[str, Callable[[], object]]:
    """What a training step of 128 images is compared with; the names are the rows of the table."""
    images = torch.rand(BATCH, 1, 28, 28, device=device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (BATCH,), device=device)

    def step_of(config: TrainingConfig) -> Callable[[], object]:
        model = new_model(device)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        step = make_step(config, model, optimizer, device)
        return lambda: step(images, labels, config.warm_up)

    model = new_model(device)
    low_precision = use_bf16(precision, device)

    def convolutions_only() -> None:
        model.zero_grad()
        convolutions(model, images, low_precision).sum().backward()

    rows = {
        "the two convolutions": convolutions_only,
        "whole step": step_of(TrainingConfig(precision=precision)),
    }
    if compiled:
        rows["whole step, compiled"] = step_of(TrainingConfig(precision=precision, compile=True))
    rows["textbook step"] = textbook_step(images, labels, device)
    return rows


def new_model(device: torch.device) -> CapsNet:
    """The paper's network in the layout in which it is trained."""
    return CapsNet().to(device).to(memory_format=torch.channels_last)


def convolutions(model: CapsNet, images: torch.Tensor, low_precision: bool) -> torch.Tensor:
    """The network's two convolutions as torch does them."""
    assert isinstance(model.trunk, ConvTrunk) and isinstance(model.primary, PrimaryCapsules)
    first, second = model.trunk.conv, model.primary.conv
    with torch.autocast(images.device.type, torch.bfloat16, enabled=low_precision):
        features = F.relu(F.conv2d(images, first.weight, first.bias))
        return F.conv2d(features, second.weight, second.bias, second.stride)


def textbook_step(images: torch.Tensor, labels: torch.Tensor, device: torch.device) -> Callable[[], object]:
    """Plain float32, every vote stored."""
    model = CapsNet().to(device)
    textbook = Textbook(model)
    optimizer = torch.optim.Adam(textbook.weights.values())

    def step() -> None:
        lengths, poses, _ = textbook(images)
        loss = margin_loss(lengths, labels) + 0.0005 * reconstruction_loss(textbook.decode(poses, labels), images)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def single_images(device: torch.device, low_precision: bool) -> dict[str, Callable[[], object]]:
    model = new_model(device).eval()
    image = torch.rand(1, 1, 28, 28, device=device)

    def without_gradients(function: Callable[[], object]) -> Callable[[], object]:
        def call() -> object:
            with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=low_precision):
                return function()

        return call

    poses = torch.rand(1, 10, 16, device=device)
    return {
        "the two convolutions": without_gradients(lambda: convolutions(model, image, low_precision)),
        "lengths and poses": without_gradients(lambda: model(image)),
        "decoder": without_gradients(lambda: model.decode(poses)),
    }


def time_in_turns(rows: dict[str, Callable[[], object]], rounds: int, device: torch.device) -> dict[str, float]:
    """Median seconds of each row, all of them called once a round, after two rounds that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(rounds + 2):
        for name, call in rows.items():
            synchronize(device)
            start = time.perf_counter()
            call()
            synchronize(device)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times[2:]) for name, times in seconds.items()}


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def summary(seconds: dict[str, float], floor: str, images: int) -> dict[str, dict[str, float]]:
    return {
        name: {"ratio": s / seconds[floor], "milliseconds": 1e3 * s, "images_per_second": images / s}
        for name, s in seconds.items()
    }


def table(result: dict) -> str:
    lines = [f"{result['device']}, {result['precision']}, torch {result['torch']}"]
    for part, note in (("training", f"{BATCH} images"), ("single image", "1 image")):
        lines += ["", f"| {part} ({note}) | over the two convolutions | ms | images/s |", "|---|---|---|---|"]
        for name, row in result[part].items():
            numbers = f"{row['ratio']:.2f} | {row['milliseconds']:.1f} | {row['images_per_second']:.0f}"
            lines.append(f"| {name} | {numbers} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
