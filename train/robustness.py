"""The comparison of how much networks bear, for `python train/evaluate.py --suite robustness` and its like."""

import io
from statistics import mean
from typing import Any

from PIL import Image

from capsnet.distortions import DISTORTIONS

EMPHASISED = {  # the published networks and the plain one; the others are thin and grey, to be told apart in the table
    "capsnet": "#4f46e5",
    "efficient-capsnet": "#db2777",
    "em-capsnet": "#059669",
    "cnn": "#d97706",
}
OTHERS = "#a1a1aa"


def page(metrics: dict[str, dict[str, Any]]) -> str:
    """robustness.md, from the metrics.json of each model by name."""
    return f"""# How much the networks bear

Written by `python train/evaluate.py --model NAME --suite all --data-dir DIR` of each model. Error in percent on 2,000
test images, changed in each way by nine amounts from little to much in both directions: the mean over all amounts but
zero. Every point with its 95 % interval is in the metrics.json of a model, every curve in its card. Affine digits are
10,000, synthesised in the manner of affNIST, and centred as MNIST's preparation would do it: not the official set, and
without its shifts. The last two columns are expected calibration errors of the longest length (of the plain network's
softmax).

{table(metrics)}

![Error of each network by amount of each distortion](robustness.png)
"""


def table(metrics: dict[str, dict[str, Any]]) -> str:
    """Markdown: a row for each model."""
    heads = ["model", "clean", *DISTORTIONS, "affine digits", "calibration, MNIST", "calibration, drawn digits"]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, its in metrics.items():
        curves = its["robustness"]
        clean = next(point["error"] for point in curves["rotation"] if not point["amount"])
        cells = [f"{100 * clean:.2f}", *(f"{100 * harm(curves[kind]):.1f}" for kind in DISTORTIONS)]
        cells.append(f"{100 * its['affine']['error']:.2f}" if "affine" in its else "–")
        for data in ("MNIST test", "drawn digits"):
            found = its.get("calibration", {}).get(data)
            cells.append(f"{found['error']:.3f}" if found else "–")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def harm(curve: list[dict[str, Any]]) -> float:
    """Mean error over the points of a curve where something was changed."""
    return mean(point["error"] for point in curve if point["amount"])


def plot(metrics: dict[str, dict[str, Any]]) -> bytes:
    """A PNG: a diagram of error by amount for each distortion, with 95 % intervals, and one of calibration."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 7), layout="constrained")
    diagrams = figure.subplots(2, 4).flat
    order = sorted(metrics, key=lambda name: name in EMPHASISED)  # what is emphasised lies on top
    style: dict[str, dict[str, Any]] = {
        name: {"color": EMPHASISED.get(name, OTHERS), "lw": 2 if name in EMPHASISED else 1} for name in order
    }
    for kind, diagram in zip(DISTORTIONS, diagrams, strict=False):
        for name in order:
            curve = metrics[name]["robustness"][kind]
            amounts = [point["amount"] for point in curve]
            diagram.plot(amounts, [100 * point["error"] for point in curve], **style[name])
            if name in EMPHASISED:
                low, high = ([100 * point["interval"][end] for point in curve] for end in (0, 1))
                diagram.fill_between(amounts, low, high, color=EMPHASISED[name], alpha=0.15, lw=0)
        diagram.set(title=kind, xlabel=DISTORTIONS[kind].unit, ylabel="error in percent", ylim=(0, None))
    diagram = figure.axes[-1]
    diagram.plot([0, 1], [0, 1], color="black", lw=0.8, ls=":")
    for name in order:
        bins = metrics[name].get("calibration", {}).get("drawn digits")
        if bins:
            filled = [n for n, count in enumerate(bins["images"]) if count >= 20]  # fewer say little
            shares = [bins["right"][n] / bins["images"][n] for n in filled]
            diagram.plot([bins["lengths"][n] for n in filled], shares, marker=".", **style[name])
    diagram.set(title="calibration on drawn digits", xlabel="longest length", ylabel="share of right answers")
    lines = {name: figure.axes[0].plot([], [], **style[name])[0] for name in order if name in EMPHASISED}
    if len(lines) < len(order):
        lines["others"] = figure.axes[0].plot([], [], color=OTHERS, lw=1)[0]
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines), frameon=False)
    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=80)
    Image.open(drawn).convert("RGB").quantize(64).save(small, format="png", optimize=True)  # a third of the bytes
    return small.getvalue()
