"""Train a capsule network on MNIST, a set like it or a folder of pictures: `python train/train_mnist.py`.

All options: --help.
"""

import argparse
import inspect
import os
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages for large tensors; torch reads it at its first one
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from capsnet.callbacks import TensorBoard  # noqa: E402
from capsnet.checkpoint import ModelError, load_model  # noqa: E402
from capsnet.command_line import Parser  # noqa: E402
from capsnet.configuration import LOSSES, OPTIONS, RECIPES, TrainingConfig, changed, read_config, recipe  # noqa: E402
from capsnet.data import Augmentation, DataError  # noqa: E402
from capsnet.distributed import Team, joined  # noqa: E402
from capsnet.estimate import estimate, free_memory, report  # noqa: E402
from capsnet.folder import load_folder, split_folder  # noqa: E402
from capsnet.models import CONFIGS  # noqa: E402
from capsnet.run import DivergedError, has_checkpoint  # noqa: E402
from capsnet.seeds import train_seeds  # noqa: E402
from capsnet.sources import MNIST, SOURCES, load_mnist, split_validation  # noqa: E402
from capsnet.step import use_bf16  # noqa: E402
from capsnet.training import train  # noqa: E402


def descriptions(owner: type) -> dict[str, str]:
    """What the docstring of a configuration says of each setting."""
    entries = re.findall(r"^ {4}([\w, ]+): (.*(?:\n {8}.*)*)", inspect.getdoc(owner) or "", re.MULTILINE)
    return {name: " ".join(text.split()).replace("%", "%%") for names, text in entries for name in names.split(", ")}


def settings(changes: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', '-')} {value}" for name, value in changes.items())


def parse(arguments: list[str] | None = None) -> tuple[argparse.Namespace, TrainingConfig]:
    alike: dict[str, list[str]] = {settings(changes): [] for changes in RECIPES.values()}
    for model, changes in RECIPES.items():
        alike[settings(changes)].append(model)
    recipes = [f"{', '.join(models)}: {changes}" for changes, models in alike.items()]
    parser = Parser(description="Train a capsule network on MNIST.", epilog=f"Other defaults of {'; '.join(recipes)}.")
    usual = argparse.SUPPRESS  # the model decides
    parser.add_argument("--data-dir", default=str(ROOT / "data"), help="folder with MNIST; fetched when missing")
    where = "weights/MODEL; runs/MODEL when it is trained on other or less data or from other weights"
    parser.add_argument("--out", default=usual, help=f"result folder (default: {where})")
    again = "a training.json, whose settings are taken where the command line names none"
    parser.add_argument("--config", metavar="FILE", help=again)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cuda or cpu")
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint in the result folder")
    parser.add_argument("--seeds", type=int, default=1, help="train so many, keep the best (default: 1)")
    parser.add_argument(
        "--checkpoint-minutes",
        type=float,
        default=10,
        help="write a checkpoint within an epoch, too, when so many have passed since the last (default: 10)",
    )
    follow = "write figures and reconstructions of every epoch there for TensorBoard"
    parser.add_argument("--logdir", metavar="DIR", help=follow)
    stop = "print configuration, memory, steps and the least time they take, and stop"
    parser.add_argument("--dry-run", action="store_true", help=stop)
    group = parser.add_argument_group("configuration")
    for owner in (TrainingConfig, Augmentation):
        explain = descriptions(owner)
        for f in fields(owner):
            name, default = "--" + OPTIONS.get(f.name, f.name).replace("_", "-"), f.default
            if f.name == "augmentation":
                continue
            text = f"{explain[f.name].rstrip('.')} (default: {default})"
            if isinstance(default, bool):
                group.add_argument(name, dest=f.name, action=argparse.BooleanOptionalAction, default=usual, help=text)
            else:
                choices = {"model": list(CONFIGS), "loss": LOSSES, "precision": ["auto", "bf16", "fp32"]}.get(f.name)
                group.add_argument(name, dest=f.name, type=type(default), default=usual, choices=choices, help=text)
    given = parser.parse_args(arguments)
    names = {f.name for owner in (TrainingConfig, Augmentation) for f in fields(owner)}
    changes = {name: value for name, value in vars(given).items() if name in names}
    try:
        if given.config is not None:
            config = changed(read_config(given.config), **changes)
        elif "start" in changes and "model" not in changes:
            config = recipe(load_model(changes["start"]).info.name, **changes)
        else:
            config = recipe(**changes)
        config.check()
        if given.seeds < 1:
            raise ValueError(f"seeds is {given.seeds}; it must be at least 1")
        if given.seeds > 1 and int(os.environ.get("WORLD_SIZE", 1)) > 1:
            raise ValueError("--seeds trains one after another, and torchrun one in several processes; use one of them")
        if not given.checkpoint_minutes >= 0:
            raise ValueError(f"checkpoint-minutes is {given.checkpoint_minutes}; it must not be negative")
        torch.empty(0, device=given.device)
    except (
        ModelError,
        ValueError,
        RuntimeError,
        AssertionError,
        KeyError,
        TypeError,
    ) as error:  # torch without CUDA asserts
        parser.error(str(error).split("\n")[0])
    return given, config


def main() -> int:
    options, config = parse()
    usual = config.dataset == MNIST and not (config.start or config.pad or config.max_batches)
    out = Path(getattr(options, "out", ROOT / ("weights" if usual else "runs") / config.model))
    leads = os.environ.get("RANK", "0") == "0"  # of several processes one speaks
    try:
        with joined(options.device) as device:
            run(options, config, out, device)
    except (DataError, DivergedError, ModelError, OSError, ValueError) as error:
        if leads:
            print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        kept = any(map(has_checkpoint, [out] if options.seeds == 1 else out.glob("seed-*")))
        rest = f"the same command with --resume goes on from {out}" if kept else "nothing was trained yet"
        if leads:
            print(f"stopped; {rest}", file=sys.stderr)
        return 130
    return 0


def run(options: argparse.Namespace, config: TrainingConfig, out: Path, device: torch.device) -> None:
    how = {"device": device, "resume": options.resume, "checkpoint_minutes": options.checkpoint_minutes}
    team = Team()
    with team.leader_first():  # it may have to fetch them
        if config.dataset in SOURCES:
            data, validation = split_validation(load_mnist(options.data_dir, train=True, name=config.dataset))
        else:
            data, validation = split_folder(load_folder(config.dataset, config.input_size, config.drawings))
    found = estimate(config, data, team.count)
    if options.dry_run:
        if team.leads:
            print(report(config, found, device, use_bf16(config.precision, device)))
        return
    advice = found.advice(free_memory(device))
    if advice and team.leads:
        print(advice, file=sys.stderr)
    if options.logdir and team.leads:
        how["callbacks"] = [TensorBoard(options.logdir)]
    if options.seeds == 1:
        train(config, data, validation, out, **how)
    else:
        train_seeds(config, options.seeds, data, validation, out, **how)


if __name__ == "__main__":
    sys.exit(main())
