"""Measure a trained model: `python train/evaluate.py --model capsnet --suite mnist`. All options: --help.

Prints Markdown tables, and writes the figures into the model's metrics.json and card, and those of all models in
weights/ beside one another into robustness.md and robustness.png there. The suite "routing" compares the models in
weights/ instead, from their metrics and a timing run, and writes weights/README.md.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from capsnet.affnist import scattered  # noqa: E402
from capsnet.calibration import evaluate_calibration  # noqa: E402
from capsnet.card import (  # noqa: E402
    calibration_table,
    distillation_table,
    overlap_table,
    rejection_table,
    robustness_table,
    write_card,
)
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
from capsnet.data import DataError, Images  # noqa: E402
from capsnet.distillation import evaluate_distillation, load_teacher  # noqa: E402
from capsnet.evaluation import Result, evaluate_drawn, evaluate_mnist  # noqa: E402
from capsnet.models import CapsNet, Network  # noqa: E402
from capsnet.outsiders import evaluate_rejection  # noqa: E402
from capsnet.overlap import evaluate_overlap  # noqa: E402
from capsnet.rejection import measure_threshold  # noqa: E402
from capsnet.robustness import evaluate_affine, evaluate_robustness  # noqa: E402
from capsnet.sources import MNIST, SIDE, SOURCES, load_mnist, source_of, split_validation  # noqa: E402
from capsnet.student import Student  # noqa: E402

Measured = tuple[dict[str, Any], str]  # figures as metrics.json keeps them, and a table


def own_test(model: Network, data_dir: str) -> Images:
    """Those of the data set that has the model's classes; for a model of larger sheets, moved over them."""
    test = load_mnist(data_dir, train=False, name=own_source(model))
    return scattered(test, pad) if (pad := padding(model)) else test


def own_source(model: Network) -> str:
    """The name of the data set that has the model's classes."""
    source = source_of(model.info.class_names)
    assert source is not None  # see suites_for
    return source


def padding(model: Network) -> int:
    """Pixels of paper on each side of the pictures that the model reads, see `TrainingConfig.pad`."""
    return (model.info.input_size - SIDE) // 2 if model.info.kind != "pair" else 0


def mnist(model: Network, data_dir: str) -> Measured:
    result = evaluate_mnist(model, own_test(model, data_dir))
    return result.summary(), table({f"{SOURCES[own_source(model)].title} test": result})


def drawn(model: Network, data_dir: str) -> Measured:
    results = evaluate_drawn(model, Path(data_dir) / "drawn")
    return {name: result.summary() for name, result in results.items()}, table(results)


def rejection(model: Network, data_dir: str) -> Measured:
    validation = split_validation(load_mnist(data_dir, train=True))[1]
    measure_threshold(model, validation)
    figures = evaluate_rejection(model, validation, Path(data_dir) / "drawn").summary()
    return figures, rejection_table(figures)


def robustness(model: Network, data_dir: str) -> Measured:
    curves = evaluate_robustness(model, own_test(model, data_dir))
    figures = {
        kind: [{"amount": amount, **result.summary(), "interval": interval(result)} for amount, result in curve.items()]
        for kind, curve in curves.items()
    }
    return figures, robustness_table(figures)


def affine(model: Network, data_dir: str) -> Measured:
    result = evaluate_affine(model, load_mnist(data_dir, train=False))
    return {**result.summary(), "interval": interval(result)}, table({"affine digits": result})


def interval(result: Result) -> list[float]:
    return [round(end, 5) for end in result.interval]


def calibration(model: Network, data_dir: str) -> Measured:
    found = evaluate_calibration(model, own_test(model, data_dir), Path(data_dir) / "drawn")
    figures = {name: one.summary() for name, one in found.items()}
    return figures, calibration_table(figures)


def overlap(model: Network, data_dir: str) -> Measured:
    assert isinstance(model, CapsNet)  # see suites_for
    found = evaluate_overlap(model, own_test(model, data_dir))
    figures = found.summary()
    errors = f"squared error of a digit: redrawn from its capsule {found.redrawn:.1f}, the sheet {found.sheet:.1f}"
    return figures, "\n\n".join([table({"pairs": found.result}), errors, overlap_table(figures)])


def distillation(model: Network, data_dir: str) -> Measured:
    from train.comparison import beside_teacher  # the benchmark comes along

    assert isinstance(model, Student)  # see suites_for
    teacher = load_teacher(model.config["teacher"])
    found = evaluate_distillation(model, teacher, own_test(model, data_dir)).summary()
    told = {"teacher": model.config["teacher"], "data": f"{SOURCES[own_source(model)].title} test"}
    figures = {**told, **found, "single_image": beside_teacher(model, teacher)}
    return figures, distillation_table(figures, model.info.name)


SUITES: dict[str, Callable[[Network, str], Measured]] = {
    "mnist": mnist,
    "drawn": drawn,
    "rejection": rejection,
    "robustness": robustness,
    "affine": affine,
    "calibration": calibration,
    "overlap": overlap,
    "distillation": distillation,
}
PAIRS = ("overlap",)  # suites of networks that read two digits; the others are of those that read one
TAUGHT = ("distillation",)  # of those, suites of students
# Suites that need no digits, but one of `capsnet.sources`.
ANYTHING = ("mnist", "robustness", "overlap", "distillation")
SCATTERED = ("mnist", "affine")  # of models of digits that lie anywhere on a larger sheet
OF_EVERY_SEED = "mnist", "drawn", "affine"  # the rest only of the seed whose weights are kept


def main() -> int:
    parser = Parser(description="Measure a trained model.")
    parser.add_argument("--model", default="capsnet", help="a name in weights/ or a folder (default: capsnet)")
    suites = (
        "overlap is for models that read pairs, distillation for students; "
        "routing compares all models in weights/ that route; all is the rest that fits"
    )
    parser.add_argument("--suite", required=True, choices=[*SUITES, "all", "routing"], help=suites)
    parser.add_argument("--data-dir", default=str(ROOT / "data"), help="holds MNIST/ (fetched when missing) and drawn/")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    try:
        if options.suite == "routing":
            compare_all(options)
        else:
            measure(options)
    except (DataError, ModelError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def compare_all(options: Namespace) -> None:
    from train.comparison import compare, page, tables  # the benchmark comes along

    figures = compare(split_validation(load_mnist(options.data_dir, train=True))[1])
    write_atomically(WEIGHTS / "README.md", page(figures).encode())
    print(json.dumps(figures) if options.json else tables(figures))


def measure(options: Namespace) -> None:
    """Run one suite, or all, each recorded as soon as it is done."""
    folder = find_model(options.model)
    model = load_model(folder)
    fitting = suites_for(model)
    if options.suite not in ("all", *fitting):
        raise ModelError(f"the suite {options.suite} does not fit {options.model}: choose all or {', '.join(fitting)}.")
    figures = {}
    for suite in fitting if options.suite == "all" else [options.suite]:
        figures[suite], text = SUITES[suite](model, options.data_dir)
        if not options.json:
            print(text, end="\n\n" if options.suite == "all" else "\n", flush=True)
        try:
            record(folder, model, suite, figures[suite], options.data_dir)
        except (ModelError, OSError):  # weights without the files of their training, or a folder that is not ours
            print(f"{folder} has no metrics.json that can be written: the figures are only printed.", file=sys.stderr)
    if options.json:
        print(json.dumps(figures if options.suite == "all" else figures[options.suite]))


def suites_for(model: Network) -> list[str]:
    """What can be measured of a model that reads one thing or two, digits or others."""
    source = source_of(model.info.class_names)
    known: Iterable[str] = SUITES if source == MNIST else ANYTHING if source else ("drawn",)
    if source and padding(model):
        known = SCATTERED if source == MNIST else ("mnist",)
    known = [suite for suite in known if suite not in TAUGHT or isinstance(model, Student)]
    return [suite for suite in known if (suite in PAIRS) == (model.info.kind == "pair")]


def record(folder: Path, model: Network, suite: str, figures: dict[str, Any], data_dir: str) -> None:
    """Write the figures into the folder's metrics.json and card, with those of the other seeds that are there."""
    metrics, best = read_json(folder / "metrics.json"), str(read_json(folder / "training.json")["seed"])
    name = "test" if suite == "mnist" else suite
    metrics[name] = figures
    for seed, its in metrics.get("seeds", {}).items() if suite in OF_EVERY_SEED else ():
        if seed == best:
            its[name] = figures
        elif (folder / f"seed-{seed}").is_dir():
            its[name], _ = SUITES[suite](load_model(folder / f"seed-{seed}"), data_dir)
    write_json(folder / "metrics.json", metrics)
    if suite == "rejection":
        write_json(folder / "config.json", model.config)  # it holds the threshold
    write_card(folder, model)
    if suite in ("robustness", "affine", "calibration"):
        show_robustness(folder)


def show_robustness(folder: Path) -> None:
    """Tables and a plot: of this model, or of all in weights/ if it is one of those."""
    from train.robustness import page, plot

    ours = folder.resolve().parent == WEIGHTS
    files = sorted(WEIGHTS.glob("*/metrics.json")) if ours else [folder / "metrics.json"]
    metrics = {path.resolve().parent.name: read_json(path) for path in files}
    metrics = {name: its for name, its in metrics.items() if "robustness" in its}
    if metrics:
        place = WEIGHTS if ours else folder
        write_atomically(place / "robustness.md", page(metrics).encode())
        write_atomically(place / "robustness.png", plot(metrics))


def table(results: dict[str, Result]) -> str:
    lines = ["| data | images | accuracy | error | 95 % interval | most frequent confusions |", "|---" * 6 + "|"]
    for name, result in results.items():
        pairs = ", ".join(f"{a} as {b}: {n}" for (a, b), n in result.confusions()[:3])
        low, high = result.interval
        shares = f"{1 - result.error:.2%} | {result.error:.2%} | {low:.2%} to {high:.2%}"
        lines.append(f"| {name} | {result.images:,} | {shares} | {pairs} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
