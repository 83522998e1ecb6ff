"""The model card (README.md of a model's folder), written from its metrics."""

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from capsnet.checkpoint import POSES, read_json, write_atomically
from capsnet.distortions import DISTORTIONS
from capsnet.morphometry import PROPERTIES
from capsnet.recognizer import Recognizer
from capsnet.sources import MNIST, SOURCES, source_of

SABOUR = (
    "Sabour, Frosst, Hinton 2017, *Dynamic Routing Between Capsules* (https://arxiv.org/abs/1710.09829), with the "
    "routing bias of the authors' code"
)
MAZZIA = "Mazzia, Salvetti, Chiaberge 2021, *Efficient-CapsNet* (https://arxiv.org/abs/2101.12491)"
# Title and source of each configuration
ABOUT = {
    "capsnet": ("CapsNet with dynamic routing", SABOUR),
    "capsnet-small": ("Small CapsNet with dynamic routing", SABOUR),
    "efficient-capsnet": ("Efficient-CapsNet with self-attention routing", MAZZIA),
    "dynamic-capsnet": ("Dynamic routing on a small trunk", SABOUR),
    "uniform-capsnet": ("Uniform coupling in the place of routing", f"{SABOUR}, with one iteration"),
    "affine-capsnet": (
        "Uniform coupling and one transformation for all capsules",
        "Gu, Tresp 2020, *Improving the Robustness of Capsule Networks to Image Affine Transformations* "
        "(https://arxiv.org/abs/1911.07968)",
    ),
    "attention-capsnet": ("Self-attention routing on a small trunk", MAZZIA),
    "multi-head-capsnet": ("Attention routing with four heads", f"after {MAZZIA}; heads, queries and keys are ours"),
    "orth-capsnet": (
        "Sparse attention with orthogonal weights",
        "Geng et al. 2024, *OrthCaps* (https://arxiv.org/abs/2403.13351); no reference code, some choices are ours",
    ),
    "windowed-capsnet": (
        "Dynamic routing within windows",
        "windows after LaLonde, Bagci 2018, *Capsules for Object Segmentation* (https://arxiv.org/abs/1804.04241); "
        "the read-out is ours",
    ),
    "student": (
        "A small convolutional network taught by a capsule network",
        f"convolutions of {MAZZIA} with larger strides, and a pose for each class in the place of capsules that vote",
    ),
    "cnn": (
        "A plain convolutional network, twin of Efficient-CapsNet",
        f"the trunk and depthwise convolution of {MAZZIA}, then two fully connected layers instead of capsules",
    ),
    "multi-capsnet": ("Two overlapping digits, dynamic routing", f"{SABOUR}, on the first convolutions of {MAZZIA}"),
    "em-capsnet": (
        "Matrix capsules with EM routing",
        "Hinton, Sabour, Frosst 2018, *Matrix capsules with EM routing*, on the trunk of Efficient-CapsNet",
    ),
}


ON_DRAWN = (
    "Drawn digits chose preprocessing and augmentation, so theirs are development figures; no weights were trained on "
    "them. "
)


def write_card(folder: Path, model: Recognizer) -> None:
    """Write README.md in `folder`, which holds this model, from its config.json, training.json and metrics.json."""
    parameters = sum(p.numel() for p in model.parameters())
    config, training, metrics = (read_json(folder / f"{name}.json") for name in ("config", "training", "metrics"))
    poses = read_json(folder / POSES) if (folder / POSES).exists() else None
    write_atomically(folder / "README.md", _card(config, training, metrics, poses, parameters).encode())


def _card(config: dict, training: dict, metrics: dict, poses: dict | None, parameters: int) -> str:
    name, best, run = config["name"], metrics["validation"], metrics["run"]
    title, source = ABOUT.get(name, (name, f"capsnet.models, routing {config.get('routing')!r}"))
    kind = config.get("kind", "digit")
    draws, pairs, teacher = kind != "baseline", kind == "pair", config.get("teacher")
    train, size = run["command"], config.get("input_size", 28)
    redraws = f" and redraws it from a pose of {config.get('pose_size', 16)} numbers" if draws else ""
    outputs = "out.lengths, out.poses, out.coupling" if draws else "out.lengths: the softmax, out.logits"
    outputs = outputs.removesuffix(", out.coupling") if teacher else outputs
    weight, loss = training["reconstruction_weight"], training.get("loss", "margin")
    reconstruction = (
        f", reconstruction weight {weight} on the sum of squared pixel errors ({weight * size**2:.3f} on their mean)"
        if draws
        else ""
    )
    few = f", at most {training['max_batches']} batches an epoch" if training["max_batches"] else ""
    changes = ", ".join(f"{key} {value}" for key, value in training["augmentation"].items())
    dataset = training.get("dataset", MNIST)
    mnist, named = dataset == MNIST, SOURCES.get(dataset)
    class_names = list(config.get("class_names", "0123456789"))
    classes, tested_on = ", ".join(class_names), source_of(class_names)
    reads = f"one handwritten digit of {size}×{size} pixels" if mnist else f"images of {size}×{size} pixels: {classes}"
    if pairs:
        reads = f"two classes ({classes}), one over the other on {size}×{size} pixels,"
        redraws = redraws.replace("redraws it from a pose", "redraws each alone from a pose")
    if named:
        trained_on = f"the first 55,000 images of {named.title}'s training files"
        chose_by = f"{named.title} validation (last 5,000 training"
    else:
        trained_on = f"{run['images']:,} pictures from a folder, those of each class in a folder of its name"
        chose_by = "pictures held out (a tenth of each class's"
    if pad := training.get("pad", 0):
        trained_on += f", moved over sheets with {pad} pixels more on every side"
    known, none = ("ten digits", "no digit") if mnist else ("these classes", "none of them")
    if pairs:
        chose_by = f"pairs of {chose_by}"
        trained_on += ", in pairs made anew for every step (`capsnet.pairs`)"
    validated = run.get("validation_images", 5_000)
    unmeasured = f" How far a {'length' if draws else 'softmax'} is from a probability was not measured."
    lines = [
        _front_matter(name, kind, metrics) if mnist else "",
        f"# {title}",
        "",
        f"Reads {reads}{redraws}. {parameters:,} parameters, stored in fp16.",
        f"Network{' and routing' if draws and not teacher else ''}: {source}.",
        "",
        "```python",
        "import capsnet",
        f'model = capsnet.load_model("{name}")',
        f'out = model(capsnet.prepare_digit("drawing.png"{f", size={size}" if pairs else ""})[None])  # {outputs}',
        *(["from capsnet.overlap import separate  # which digits are there, each redrawn alone"] if pairs else []),
        "```",
        "",
        "## Training",
        "",
        f"`{train}`: {trained_on}{few}, "
        f"{run['epochs']} epochs, batch {training['batch_size']}, seed {training['seed']}, "
        f"Adam with peak learning rate {training['learning_rate']}, {loss} loss{reconstruction}.",
        *([_taught(teacher, training)] if teacher else []),
        f"Augmentation (`capsnet.data.Augmentation`): {changes}. {training['pen_share']:.0%} of each epoch are digits "
        "that `capsnet.pens` draws from stroke templates; nobody's handwriting is copied in them.",
        f"Trained on {run['device']} with torch {run['torch']} in {run['seconds'] / 60:.0f} minutes. All settings: "
        "training.json.",
        "",
        "## Evaluation",
        "",
        "| data | images | error | command |",
        "|---|---|---|---|",
        f"| {chose_by} images; chose epoch {best['epoch']}) | {validated:,} | {best['error']:.2%} | `{train}` |",
    ]
    if tested_on and "test" in metrics:
        test, command = metrics["test"], f"python train/evaluate.py --model {name} --suite mnist"
        lines += [_row(f"{SOURCES[tested_on].title} test", test, command)]
    drawn = f"python train/evaluate.py --model {name} --suite drawn --data-dir DIR"
    lines += [_row(f"drawn digits: {key}", result, drawn) for key, result in metrics.get("drawn", {}).items()]
    if "seeds" in metrics:
        lines += ["", _over_seeds(metrics["seeds"])]
    once = "The test set was run once, after all choices. " if {"test", "overlap"} & metrics.keys() else ""
    lines += [
        "",
        f"{once}{ON_DRAWN if mnist and not pairs else ''}On 10,000 images differences under "
        f"{'0.4' if pairs else '0.1'} % are noise.",
        "",
        *(_poses(poses, name) if poses else []),
        *(_rejection(metrics["rejection"], name) if "rejection" in metrics else []),
        *(_robustness(metrics, name, pad) if {"robustness", "affine"} & metrics.keys() else []),
        *(_calibration(metrics["calibration"], name) if "calibration" in metrics else []),
        *(_overlap(metrics["overlap"], name) if "overlap" in metrics else []),
        *(_distillation(metrics["distillation"], name) if "distillation" in metrics else []),
        "## Limits",
        "",
        f"It knows {known} and nothing else: letters and scribbles make {'capsules long' if draws else 'it sure'}, "
        f"too, and not all of them are recognised as {none}.{'' if 'calibration' in metrics else unmeasured}",
        "",
    ]
    return "\n".join(lines)


def _over_seeds(seeds: dict[str, dict]) -> str:
    """Mean and standard deviation of the error over the seeds, which choose the weights by validation error."""
    words = []
    for name, title in (("validation", "validation"), ("test", "test"), ("affine", "affine digits'")):
        errors = [figures[name]["error"] for figures in seeds.values() if name in figures]
        if len(errors) > 1:
            words.append(f"{title} error {mean(errors):.2%} ± {stdev(errors):.2%}")
    return f"The best by validation of {len(seeds)} seeds; all of them: {', '.join(words)} (mean ± standard deviation)."


def _poses(poses: dict[str, dict], name: str) -> list[str]:
    return [
        "## Pose",
        "",
        "What each number of a digit's pose does to the decoded picture between the ends of its range (1 % to 99 % of "
        "the training images), in `capsnet.morphometry`'s terms, + where the property grows with the number. A name "
        "stands where one or two properties make up most of the change; blank numbers do several things or little.",
        "",
        pose_table(poses["effects"]),
        "",
        "Properties that a direction in pose space moves by itself, fitted on the training images. First what is "
        "measured where one unit is asked for, then how far another of them, or the digit's place, moves at most on "
        "average, in typical differences, where one such difference is asked for; on poses that the fit did not see. "
        "Blank where a digit hardly varies in the property or cannot be moved like that.",
        "",
        direction_table(poses["directions"]),
        "",
        f"`python train/name_poses.py --model {name}`",
        "",
    ]


def _rejection(figures: dict[str, Any], name: str) -> list[str]:
    return [
        "## Not a digit",
        "",
        f"An image whose strangeness (`capsnet.rejection`) is above {figures['threshold']:.3f} is taken for no digit; "
        f"the threshold rejects {figures['false_alarms']:.0%} of the validation digits. Of drawn digits, those count "
        "that are read correctly. AUROC: how often an image of the set is stranger than a validation digit, by the "
        "strangeness, by the decoder's picture alone and by the longest capsule's length alone.",
        "",
        rejection_table(figures),
        "",
        f"`python train/evaluate.py --model {name} --suite rejection --data-dir DIR`",
        "",
    ]


def _robustness(metrics: dict[str, Any], name: str, pad: int) -> list[str]:
    lines, suites = ["## Robustness", ""], []
    if "robustness" in metrics:
        suites.append("robustness")
        lines += [
            "Error in percent on 2,000 test images that are changed by so much (`capsnet.distortions`); 0 changes "
            "nothing. metrics.json has the 95 % interval of each.",
            "",
            robustness_table(metrics["robustness"]),
            "",
        ]
    if "affine" in metrics:
        suites.append("affine")
        low, high = metrics["affine"]["interval"]
        where = "anywhere on their sheet" if pad else "centred as MNIST is"
        lines += [
            f"Affine digits (synthesised in the manner of affNIST, `capsnet/affnist.py`; {where}): error "
            f"{metrics['affine']['error']:.2%}, 95 % interval {low:.2%} to {high:.2%}.",
            "",
        ]
    return [*lines, ", ".join(f"`python train/evaluate.py --model {name} --suite {suite}`" for suite in suites), ""]


def robustness_table(figures: dict[str, list[dict[str, Any]]]) -> str:
    """Markdown: a row for each distortion, with "amount: error in percent" in each cell."""
    columns = max(map(len, figures.values()))
    rows = [f"| changed by | unit {'| ' * columns}|", "|---" * (columns + 2) + "|"]
    for kind, curve in figures.items():
        cells = [f"{point['amount']:g}: {100 * point['error']:.1f}".replace("-", "−") for point in curve]
        rows.append(f"| {kind} | {DISTORTIONS[kind].unit} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _calibration(figures: dict[str, dict[str, Any]], name: str) -> list[str]:
    return [
        "## Calibration",
        "",
        "How far the longest length is from the probability that the answer is right: expected calibration error over "
        "ten bins, and the mean length minus the share of right answers.",
        "",
        calibration_table(figures),
        "",
        f"`python train/evaluate.py --model {name} --suite calibration --data-dir DIR`",
        "",
    ]


def calibration_table(figures: dict[str, dict[str, Any]]) -> str:
    """Markdown: a row for each set of `capsnet.calibration.evaluate_calibration`."""
    rows = ["| set | images | expected calibration error | overconfidence |", "|---|---|---|---|"]
    for name, its in figures.items():
        over = f"{its['overconfidence']:+.3f}".replace("-", "−")
        rows.append(f"| {name} | {sum(its['images']):,} | {its['error']:.3f} | {over} |")
    return "\n".join(rows)


def _overlap(figures: dict[str, Any], name: str) -> list[str]:
    low, high = figures["interval"]
    return [
        "## Pairs",
        "",
        f"Of {figures['images']:,} pairs of test digits (`capsnet.pairs.fixed_pairs`) {figures['error']:.2%} are read "
        f"wrongly: the two longest capsules are not those of the two digits (95 % interval {low:.2%} to {high:.2%}; "
        f"neither is right in {figures['neither']:.2%}). From its own capsule's pose each digit is redrawn with a "
        f"squared error of {figures['redrawn']:.1f}, summed over the pixels, against the digit alone; the sheet with "
        f"both is {figures['sheet']:.1f} away from it.",
        "",
        f"A digit counts as there if its capsule is longer than {figures['threshold']:.2f}; validation digits, in pairs"
        " and alone, chose that. How many are counted:",
        "",
        overlap_table(figures),
        "",
        f"`python train/evaluate.py --model {name} --suite overlap`",
        "",
    ]


def overlap_table(figures: dict[str, Any]) -> str:
    """Markdown: a row for each kind of sheet of `capsnet.overlap.Overlap.summary`."""
    most = len(next(iter(figures["counts"].values()))) - 1
    heads = [*map(str, range(most)), f"{most} or more"]
    rows = [f"| digits on the sheet | counted {' | '.join(heads)} |", "|---" * (most + 2) + "|"]
    for kind, shares in figures["counts"].items():
        rows.append(f"| {kind} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    return "\n".join(rows)


def _taught(teacher: str, training: dict[str, Any]) -> str:
    return (
        f"Taught by `{teacher}`, which read the same images (`capsnet.distillation`): weight {training['soft_weight']} "
        f"on the distance of the lengths' logits, log(p/(1 − p)), at temperature {training['temperature']}, and "
        f"{training['pose_weight']} on the squared distance of the right class's pose. The decoder is the teacher's "
        "and did not learn."
    )


def _distillation(figures: dict[str, Any], name: str) -> list[str]:
    images, one = figures["images"], figures["single_image"]
    return [
        "## Beside its teacher",
        "",
        f"On {images:,} {figures['data']} images, and on one image: time is the median of {one['rounds']} turns of "
        f"{one['readings']} readings in one run, on one thread of a CPU, without the decoder. Where the two alternate "
        f"image by image, each with the cache full of the other's weights, the ratio is 1 : "
        f"{one['times_faster_alternating']:.1f}. The squared error is that of what the "
        "teacher's decoder draws from the right class's pose, summed over the pixels.",
        "",
        distillation_table(figures, name),
        "",
        f"`python train/evaluate.py --model {name} --suite distillation`",
        "",
    ]


def distillation_table(figures: dict[str, Any], name: str) -> str:
    """Markdown: error, squared error of what is redrawn and time for one image, of teacher and student."""
    images, one = figures["images"], figures["single_image"]
    rows = [
        "| network | error | squared error of what is redrawn | time for one image |",
        "|---|---|---|---|",
        f"| {figures['teacher']} | {figures['teacher_errors'] / images:.2%} | {figures['teacher_redrawn']:.2f} | "
        f"{one['teacher_milliseconds']:.2f} ms |",
        f"| {name} | {figures['errors'] / images:.2%} | {figures['redrawn']:.2f} | {one['milliseconds']:.2f} ms |",
        f"| ratio | | {figures['redrawn_ratio']:.2f} | 1 : {one['times_faster']:.1f} |",
    ]
    alike = f"Both answer alike on {figures['alike'] / images:.2%} of the images."
    return "\n".join([*rows, "", alike])


def rejection_table(figures: dict[str, Any]) -> str:
    """Markdown: a row for each set of `capsnet.outsiders.Rejection.summary`."""
    rows = ["| set | images | rejected | AUROC | picture alone | length alone |", "|---" * 6 + "|"]
    for kind in ("outsiders", "digits"):
        for name, its in figures[kind].items():
            areas = [f"{its[key]:.3f}" if key in its else "" for key in ("auroc", "by_picture", "by_length")]
            title = name if kind == "outsiders" else f"digits: {name}"
            share = f"{its['rejected'] / its['images']:.1%}" if its["images"] else "–"
            rows.append(f"| {title} | {its['images']:,} | {share} | {' | '.join(areas)} |")
    return "\n".join(rows)


def pose_table(poses: dict[str, list[dict]]) -> str:
    """Markdown: a row for each number of the pose, a column for each class; `poses` is "effects" of poses.json."""
    rows = [f"| number | {' | '.join(poses)} |", "|---" * (len(poses) + 1) + "|"]
    for number, effects in enumerate(zip(*poses.values(), strict=True), 1):
        cells = [", ".join(_signed(name, effect["changes"][name]) for name in effect["names"]) for effect in effects]
        rows.append(f"| {number} | {' | '.join(cells)} |")
    return "\n".join(rows)


def direction_table(directions: dict[str, dict[str, dict]]) -> str:
    """Markdown: gain and leak, a row for each property, a column for each class, of "directions" of poses.json."""
    rows = [f"| property | {' | '.join(directions)} |", "|---" * (len(directions) + 1) + "|"]
    for name in PROPERTIES:
        found = [of_class.get(name) for of_class in directions.values()]
        if any(found):
            cells = [f"{one['gain']:.2f}, {one['leak']:.2f}" if one else "" for one in found]
            rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _signed(name: str, change: float) -> str:
    decimals = 1 if PROPERTIES[name].unit else 2
    return f"{name} {change:+.{decimals}f}".replace("-", "−")


def _row(name: str, result: dict, command: str) -> str:
    return f"| {name} | {result['images']:,} | {result['error']:.2%} | `{command}` |"


def _front_matter(name: str, kind: str, metrics: dict[str, Any]) -> str:
    """What the Hub reads of a card: YAML with the accuracy on MNIST, or pairs of it, in the form of a model-index."""
    tags = ["convolutional-network" if kind == "baseline" else "capsule-network", "mnist", "pytorch", "handwriting"]
    # The split of the validation images is what its name says: the last of the training images.
    results = {"train[-5000:]": metrics["validation"], "test": metrics.get("overlap" if kind == "pair" else "test")}
    data = "pairs of MNIST" if kind == "pair" else "MNIST"
    lines = [
        "---",
        "license: mit",
        "library_name: capsnet",
        "pipeline_tag: image-classification",
        "datasets: [ylecun/mnist]",
        "metrics: [accuracy]",
        f"tags: [{', '.join(tags)}]",
        "model-index:",
        f"- name: {json.dumps(name)}",
        "  results:",
    ]
    for split, result in results.items():
        if result:
            lines += [
                "  - task: {type: image-classification, name: Image classification}",
                f'    dataset: {{type: ylecun/mnist, name: {data}, split: "{split}"}}',
                f"    metrics: [{{type: accuracy, name: Accuracy, value: {1 - result['error']:.4f}}}]",
            ]
    return "\n".join([*lines, "---", ""])
