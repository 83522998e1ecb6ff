"""The table of routing algorithms, for `python train/evaluate.py --suite routing`."""

import multiprocessing
import re
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

from capsnet.checkpoint import ModelError, available_models, find_model, load_model, read_json
from capsnet.comparison import encoder_parameters, error_by, iterates, macs, settling
from capsnet.configuration import recipe
from capsnet.data import Images
from capsnet.models import CapsNet, Network, build
from capsnet.redrawer import Redrawer
from capsnet.run import keep_freed_memory
from capsnet.step import device_name, make_step
from train.benchmark import BATCH, time_in_turns

UNIT = "uniform-capsnet"  # what times are measured by
ITERATIONS = (1, 2, 3, 4, 5)
TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0, 1e9)
ROUNDS = 15
READINGS = 10


def compare(validation: Images) -> dict[str, dict[str, Any]]:
    """Figures of every model in weights/ that routes: those in its metrics.json, and what is measured here.

    Raises:
        ModelError: the model that times are measured by is missing, or a metrics.json.
    """
    loaded = {name: load_model(name) for name in available_models()}
    models = {name: model for name, model in loaded.items() if isinstance(model, CapsNet)}
    if UNIT not in models:
        raise ModelError(f"there are no weights of {UNIT}, by which times are measured; train that first.")
    cpu = torch.device("cpu")
    new = {name: CapsNet(**model.config) for name, model in models.items()}  # the trained ones stay as they are
    steps = time_in_turns({name: training_step(model) for name, model in new.items()}, ROUNDS, cpu)
    images = time_in_turns({name: single_image(model) for name, model in models.items()}, 10 * ROUNDS, cpu)
    figures = {}
    for name, model in models.items():
        figures[name] = {
            **measured(read_json(find_model(name) / "metrics.json")),
            "parameters": encoder_parameters(model),
            "macs": macs(model),
            "training_step": steps[name] / steps[UNIT],
            "single_image": images[name] / images[UNIT],
            "peak_bytes": in_a_new_process(peak_memory, model.config),
        }
        if iterates(model):
            figures[name] |= {
                "iterations": error_by(model, validation, "iterations", ITERATIONS),
                "temperature": error_by(model, validation, "temperature", TEMPERATURES),
                "settling": settling(model, validation[:1000], len(ITERATIONS)),
            }
    return figures


def measured(metrics: dict[str, Any]) -> dict[str, Any]:
    """Errors of every seed: on validation and test images, and over all sets of drawn digits."""
    seeds = list(metrics.get("seeds", {"": metrics}).values())
    drawn = [seed["drawn"].values() for seed in seeds if "drawn" in seed]
    return {
        "validation": [seed["validation"]["error"] for seed in seeds],
        "test": [seed["test"]["error"] for seed in seeds if "test" in seed],
        "drawn": [sum(s["errors"] for s in sets) / sum(s["images"] for s in sets) for sets in map(list, drawn)],
    }


def training_step(model: Network) -> Callable[[], object]:
    """A step on 128 images by the recipe of the model's configuration."""
    keep_freed_memory()
    model, config = model.to(memory_format=torch.channels_last), recipe(model.info.name)
    step = make_step(config, model, torch.optim.Adam(model.parameters(), fused=True), torch.device("cpu"))
    images = torch.rand(BATCH, model.info.in_channels, model.info.input_size, model.info.input_size)
    labels = torch.randint(0, len(model.info.class_names), (BATCH,))
    return lambda: step(images, labels, config.warm_up)


def single_image(model: Redrawer) -> Callable[[], object]:
    image = torch.rand(1, model.info.in_channels, model.info.input_size, model.info.input_size)
    return torch.inference_mode()(lambda: model(image))


def repeated(row: Callable[[], object]) -> Callable[[], object]:
    return lambda: [row() for _ in range(READINGS)]


def beside_teacher(student: Redrawer, teacher: Redrawer, rounds: int = ROUNDS) -> dict[str, Any]:
    """What reading one image takes both, on one thread: one image is too little work to share.

    They take turns of `READINGS` images, one after the other, and also of single ones, where each finds the cache full
    of the other's weights.
    """
    cpu, threads = torch.device("cpu"), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = {name: single_image(model) for name, model in (("student", student), ("teacher", teacher))}
        seconds = time_in_turns({name: repeated(row) for name, row in rows.items()}, rounds, cpu)
        cold = time_in_turns(rows, READINGS * rounds, cpu)
    finally:
        torch.set_num_threads(threads)
    return {
        "milliseconds": 1e3 * seconds["student"] / READINGS,
        "teacher_milliseconds": 1e3 * seconds["teacher"] / READINGS,
        "times_faster": seconds["teacher"] / seconds["student"],
        "times_faster_alternating": cold["teacher"] / cold["student"],
        "rounds": rounds,
        "readings": READINGS,
        "torch": torch.__version__,
    }


def peak_memory(config: dict[str, Any]) -> int | None:
    """Bytes by which two training steps raise the most memory that this process ever held; None where nothing tells."""
    step = training_step(build(config))
    before = most_memory()
    step(), step()
    after = most_memory()
    return None if before is None or after is None else after - before


def most_memory() -> int | None:
    """The most bytes that this process held in memory, on Linux. (What getrusage says, a child has from its parent.)"""
    status = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE) if status.exists() else None
    return int(found[1]) * 1024 if found else None


def in_a_new_process(function: Callable[[dict[str, Any]], int | None], config: dict[str, Any]) -> int | None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, (config,))


def page(figures: dict[str, Any]) -> str:
    """weights/README.md."""
    return f"""# Trained models, compared

Written by `python train/evaluate.py --suite routing --data-dir DIR`, from each model's metrics.json and a timing run
on {device_name(torch.device("cpu"))}, torch {torch.__version__}.
Errors are those of the weights here, or mean ± standard deviation where a model was trained from several seeds; drawn
digits count all sets together. Parameters and MACs are without the decoder. Times are medians of one run in turns, over
those of {UNIT}: a training step of {BATCH} images, and reading a single image. Memory is how much two such steps
raise the most that a process holds. Iterations and temperature are changed in the trained model, which was not trained
with them; T = ∞ is uniform coupling.

{tables(figures)}
"""


def tables(figures: dict[str, Any]) -> str:
    """Markdown: what models need and do, then error by iterations and temperature, then how coupling settles."""
    lines = [
        "| model | validation error | test error | drawn digits | parameters | million MACs | training step | "
        "single image | memory of a step |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in sorted(figures.items(), key=lambda item: mean(item[1]["validation"])):
        cells = [spread(row[key]) for key in ("validation", "test", "drawn")]
        cells += [f"{row['parameters']:,}", f"{row['macs'] / 1e6:.1f}"]
        cells += [f"{row['training_step']:.2f}", f"{row['single_image']:.2f}", memory(row["peak_bytes"])]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += by_value("validation error with r iterations", "r", figures, "iterations")
    lines += by_value("validation error at temperature T", "T", figures, "temperature")
    moves = {name: row["settling"] for name, row in figures.items() if "settling" in row}
    steps = [f"{t} → {t + 1}" for t in ITERATIONS[:-1]]
    if moves:
        lines += ["", f"| mean change of the coupling | {' | '.join(steps)} |", "|---" * (len(steps) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(f'{change:.4f}' for change in changes)} |" for name, changes in moves.items()]
    return "\n".join(lines)


def spread(errors: list[float]) -> str:
    """Mean ± standard deviation, as far as there are several; – if there is none."""
    if len(errors) < 2:
        return f"{errors[0]:.2%}" if errors else "–"
    return f"{mean(errors):.2%} ± {stdev(errors):.2%}"


def memory(size: int | None) -> str:
    return "–" if size is None else f"{size / 2**20:.0f} MiB"


def by_value(title: str, sign: str, figures: dict[str, Any], key: str) -> list[str]:
    errors = {name: row[key] for name, row in figures.items() if row.get(key)}
    if not errors:
        return []
    values = list(next(iter(errors.values())))
    heads = [f"{sign} = {'∞' if value > 1e8 else f'{value:g}'}" for value in values]
    rows = [f"| {name} | {' | '.join(f'{row[value]:.2%}' for value in values)} |" for name, row in errors.items()]
    return ["", f"| {title} | {' | '.join(heads)} |", "|---" * (len(values) + 1) + "|", *rows]
