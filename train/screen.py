"""Compare ways of training: `python train/screen.py default learning-rate=3e-3 pen-share=0,thickness=0`.

Each argument is a variant, settings of train_mnist.py with commas between them. All train the small network on the
first images of MNIST's training files and are judged on the rest of them, tens of thousands instead of 5,000
validation images: so short trainings tell variants apart. The test set is not touched. Memory is how much two steps
of 128 images raise the most that a process holds. What was compared so far is in train/RECIPES.md.
"""

import argparse
import math
import statistics
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from capsnet.batches import network_for  # noqa: E402
from capsnet.command_line import Parser  # noqa: E402
from capsnet.configuration import TrainingConfig  # noqa: E402
from capsnet.data import Augmentation, DataError, Images  # noqa: E402
from capsnet.evaluation import evaluate_drawn  # noqa: E402
from capsnet.sources import load_mnist, split_validation  # noqa: E402
from capsnet.step import evaluate  # noqa: E402
from capsnet.training import train  # noqa: E402
from train.comparison import in_a_new_process, memory, peak_memory  # noqa: E402
from train.train_mnist import parse  # noqa: E402


def main() -> int:
    parser = Parser(description="Compare ways of training on the small network.")
    parser.add_argument("variants", nargs="+", help="e.g. default, epochs=9 or shear=0,elastic=0")
    parser.add_argument("--images", type=int, default=20_000, help="how many train; the rest judges (default: 20000)")
    parser.add_argument("--epochs", type=int, default=6, help="of each training (default: 6)")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each variant (default: 1)")
    parser.add_argument("--data-dir", default=str(ROOT / "data"), help="holds MNIST/ (fetched when missing) and drawn/")
    options = parser.parse_args()
    if not 0 < options.images < 60_000:
        parser.error(f"--images is {options.images}; it must be from 1 to 59,999")
    if options.epochs < 1 or options.seeds < 1:
        parser.error("--epochs and --seeds must be at least 1")
    usual = ["--model", "capsnet-small", "--epochs", str(options.epochs)]
    configs, elsewhere = {}, how(parse(usual)[0])
    for variant in options.variants:
        settings = [] if variant == "default" else [f"--{setting}" for setting in variant.split(",")]
        given, configs[variant] = parse([*usual, *settings])
        if foreign := sorted(name for name, value in how(given).items() if value != elsewhere.get(name)):
            names = ", ".join(foreign).replace("_", "-")
            parser.error(f"{variant!r} sets {names}, which does not change what is learned; leave it out")
    try:
        data = load_mnist(options.data_dir, train=True)
        print("| variant | error | loss | drawn digits | memory of a step |\n|---|---|---|---|---|")
        for variant, config in configs.items():
            trainings = [replace(config, seed=config.seed + n) for n in range(options.seeds)]
            results = [
                judge(one, data[: options.images], data[options.images :], options.data_dir) for one in trainings
            ]
            size = in_a_new_process(peak_memory, network_for(config, data).config)
            print(f"{row(variant, results)} {memory(size)} |", flush=True)
    except (DataError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def how(options: argparse.Namespace) -> dict[str, Any]:
    """The options that are no settings: where a training is kept, how often, on what device."""
    settings = {f.name for owner in (TrainingConfig, Augmentation) for f in fields(owner)} | {"config"}
    return {name: value for name, value in vars(options).items() if name not in settings}


def judge(config: TrainingConfig, data: Images, held_out: Images, data_dir: str) -> tuple[float, float, float]:
    """Error and loss on the held-out images, and error on drawn digits (NaN where there are none)."""
    with tempfile.TemporaryDirectory() as folder:
        model = train(config, data, split_validation(held_out)[1], folder, log=lambda line: None)
    result = evaluate(model, held_out, config)
    try:
        drawn = evaluate_drawn(model, Path(data_dir) / "drawn").values()
        drawn_error = sum(one.errors for one in drawn) / sum(one.images for one in drawn)
    except DataError:
        drawn_error = math.nan
    return result["error"], result["loss"], drawn_error


def row(variant: str, results: list[tuple[float, float, float]]) -> str:
    """The means over the seeds, with the standard deviation where there are several."""

    def cell(values: tuple[float, ...], form: str) -> str:
        spread = f" ± {statistics.stdev(values):{form}}" if len(values) > 1 else ""
        return "–" if math.isnan(values[0]) else f"{statistics.mean(values):{form}}{spread}"

    columns = zip(*results, strict=True)
    cells = [cell(values, form) for values, form in zip(columns, (".2%", ".4f", ".2%"), strict=True)]
    return f"| {variant} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
