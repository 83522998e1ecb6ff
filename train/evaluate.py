"""Measure a trained model: `python train/evaluate.py --model capsnet --suite mnist`. All options: --help.

Prints a Markdown table, and writes the figures into the model's metrics.json and card. The suite "routing" compares all
models in weights/ instead, from their metrics and a timing run, and writes weights/README.md.
"""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from capsnet.card import rejection_table, write_card  # noqa: E402
from capsnet.checkpoint import (  # noqa: E402
    WEIGHTS,
    ModelError,
    find_model,
    load_model,
    read_json,
    write_atomically,
    write_json,
)
from capsnet.command_line import Parser  # noqa: E402
from capsnet.data import DataError, load_mnist, split_validation  # noqa: E402
from capsnet.evaluation import Result, evaluate_drawn, evaluate_mnist  # noqa: E402
from capsnet.models import CapsNet  # noqa: E402
from capsnet.outsiders import Rejection, evaluate_rejection  # noqa: E402
from capsnet.rejection import measure_threshold  # noqa: E402


def main() -> int:
    parser = Parser(description="Measure a trained model.")
    parser.add_argument("--model", default="capsnet", help="a name in weights/ or a folder (default: capsnet)")
    suites = "routing compares all models in weights/"
    parser.add_argument("--suite", required=True, choices=["mnist", "drawn", "rejection", "routing"], help=suites)
    parser.add_argument("--data-dir", default=str(ROOT / "data"), help="holds MNIST/ (fetched when missing) and drawn/")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    try:
        if options.suite == "routing":
            compare_all(options)
            return 0
        folder = find_model(options.model)
        model = load_model(folder)
        results = measure(model, options.suite, options.data_dir)
    except (DataError, ModelError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    figures = summary(options.suite, results)
    text = rejection_table(figures) if options.suite == "rejection" else table(results)
    print(json.dumps(figures) if options.json else text)
    try:
        record(folder, model, options.suite, options.data_dir, results)
    except (ModelError, OSError):  # weights without the files of their training, or a folder that is not ours
        print(f"{folder} has no metrics.json that can be written: the figures are only printed.", file=sys.stderr)
    return 0


def compare_all(options: Namespace) -> None:
    from train.comparison import compare, page, tables  # the benchmark comes along

    figures = compare(split_validation(load_mnist(options.data_dir, train=True))[1])
    write_atomically(WEIGHTS / "README.md", page(figures).encode())
    print(json.dumps(figures) if options.json else tables(figures))


def measure(model: CapsNet, suite: str, data_dir: str) -> dict[str, Result] | Rejection:
    if suite == "drawn":
        return evaluate_drawn(model, Path(data_dir) / "drawn")
    if suite == "rejection":
        validation = split_validation(load_mnist(data_dir, train=True))[1]
        measure_threshold(model, validation)
        return evaluate_rejection(model, validation, Path(data_dir) / "drawn")
    return {"test": evaluate_mnist(model, load_mnist(data_dir, train=False))}


def summary(suite: str, results: dict[str, Result] | Rejection) -> dict[str, Any]:
    if isinstance(results, Rejection):
        return results.summary()
    figures = {name: result.summary() for name, result in results.items()}
    return figures["test"] if suite == "mnist" else figures


def record(folder: Path, model: CapsNet, suite: str, data_dir: str, results: dict[str, Result] | Rejection) -> None:
    """Write the figures into the folder's metrics.json and card, with those of the other seeds that are there."""
    metrics, best = read_json(folder / "metrics.json"), str(read_json(folder / "training.json")["seed"])
    name = "test" if suite == "mnist" else suite
    metrics[name] = summary(suite, results)
    for seed, figures in metrics.get("seeds", {}).items():
        if seed == best:
            figures[name] = metrics[name]
        elif (folder / f"seed-{seed}").is_dir():
            figures[name] = summary(suite, measure(load_model(folder / f"seed-{seed}"), suite, data_dir))
    write_json(folder / "metrics.json", metrics)
    if suite == "rejection":
        write_json(folder / "config.json", model.config)  # it holds the threshold
    write_card(folder, model)


def table(results: dict[str, Result]) -> str:
    lines = ["| data | images | accuracy | error | most frequent confusions |", "|---|---|---|---|---|"]
    for name, result in results.items():
        pairs = ", ".join(f"{a} as {b}: {n}" for (a, b), n in result.confusions()[:3])
        lines.append(f"| {name} | {result.images:,} | {1 - result.error:.2%} | {result.error:.2%} | {pairs} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
