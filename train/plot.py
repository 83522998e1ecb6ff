"""Draw a training as a PNG: `python train/plot.py runs/small` writes runs/small/training.png from its metrics.json."""

import io
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from capsnet.checkpoint import ModelError, find_model, read_json, write_atomically  # noqa: E402
from capsnet.command_line import Parser  # noqa: E402

# Title, unit, whether the axis is logarithmic, and the lines: name in the history and in the legend
DIAGRAMS = [
    ("loss", "", True, {"loss": "training", "validation_loss": "validation"}),
    ("error", "percent", True, {"error": "training", "validation_error": "validation"}),
    ("length of capsules", "", False, {"right_length": "right class", "wrong_length": "wrong classes"}),
    ("entropy of the coupling", "0 to one, 1 even", False, {"coupling_entropy": ""}),
    ("norm of the gradient", "", True, {"gradient": ""}),
    ("longest |s| before the squash", "", False, {"longest_sum": ""}),
]


def main() -> int:
    parser = Parser(description="Draw losses, errors and diagnostics of every epoch of a training.")
    parser.add_argument("model", help="a result folder, or a name in weights/")
    parser.add_argument("--out", help="the picture (default: training.png in that folder)")
    options = parser.parse_args()
    try:
        folder = find_model(options.model)
        out = Path(options.out or folder / "training.png")
        write_atomically(out, plot(read_json(folder / "metrics.json")["history"]))
    except (ModelError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(out)
    return 0


def plot(history: list[dict[str, Any]]) -> bytes:
    """A PNG with a diagram for everything that the history has of its epochs."""
    from matplotlib.figure import Figure

    known = [one for one in DIAGRAMS if any(name in row for row in history for name in one[3])]
    figure = Figure(figsize=(4 * min(len(known), 3), 3 * -(-len(known) // 3)), layout="constrained")
    for number, (title, unit, logarithmic, lines) in enumerate(known, 1):
        diagram = figure.add_subplot(-(-len(known) // 3), min(len(known), 3), number)
        factor = 100 if unit == "percent" else 1
        for name, label in lines.items():
            points = [(row["epoch"], factor * row[name]) for row in history if name in row]
            diagram.plot(*zip(*points, strict=True), label=label, marker="." if len(points) < 20 else "")
        diagram.set(title=title, xlabel="epoch", ylabel=unit, yscale="log" if logarithmic else "linear")
        if len(lines) > 1:
            diagram.legend(frameon=False)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=90)
    return drawn.getvalue()


if __name__ == "__main__":
    sys.exit(main())
