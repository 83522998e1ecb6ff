"""Measure a trained model: `python train/evaluate.py --model capsnet --suite mnist`. All options: --help.

Prints a Markdown table, and writes the figures into the model's metrics.json and card.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from capsnet.card import write_card  # noqa: E402
from capsnet.checkpoint import ModelError, find_model, load_model, read_json, write_json  # noqa: E402
from capsnet.command_line import Parser  # noqa: E402
from capsnet.data import DataError, load_mnist  # noqa: E402
from capsnet.evaluation import Result, evaluate_drawn, evaluate_mnist  # noqa: E402


def main() -> int:
    parser = Parser(description="Measure a trained model.")
    parser.add_argument("--model", default="capsnet", help="a name in weights/ or a folder (default: capsnet)")
    parser.add_argument("--suite", required=True, choices=["mnist", "drawn"])
    parser.add_argument("--data-dir", default=str(ROOT / "data"), help="holds MNIST/ (fetched when missing) and drawn/")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    try:
        folder = find_model(options.model)
        model = load_model(folder)
        if options.suite == "mnist":
            results = {"test": evaluate_mnist(model, load_mnist(options.data_dir, train=False))}
            summary = results["test"].summary()
        else:
            results = evaluate_drawn(model, Path(options.data_dir) / "drawn")
            summary = {name: result.summary() for name, result in results.items()}
    except (DataError, ModelError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(summary) if options.json else table(results))
    try:
        metrics = read_json(folder / "metrics.json")
        metrics["test" if options.suite == "mnist" else "drawn"] = summary
        write_json(folder / "metrics.json", metrics)
        write_card(folder, sum(p.numel() for p in model.parameters()))
    except (ModelError, OSError):  # weights without the files of their training, or a folder that is not ours
        print(f"{folder} has no metrics.json that can be written: the figures are only printed.", file=sys.stderr)
    return 0


def table(results: dict[str, Result]) -> str:
    lines = ["| data | images | accuracy | error | most frequent confusions |", "|---|---|---|---|---|"]
    for name, result in results.items():
        pairs = ", ".join(f"{a} as {b}: {n}" for (a, b), n in result.confusions()[:3])
        lines.append(f"| {name} | {result.images:,} | {1 - result.error:.2%} | {result.error:.2%} | {pairs} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
