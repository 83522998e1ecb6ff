"""The same training from several seeds: how much of a difference is chance, and the best of them to keep."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from capsnet.callbacks import say
from capsnet.card import write_card
from capsnet.checkpoint import POSES, load_model, read_json, write_atomically, write_json
from capsnet.configuration import TrainingConfig
from capsnet.data import Images
from capsnet.models import Network
from capsnet.run import check_not_stopped, has_checkpoint
from capsnet.training import rank, train


def train_seeds(
    config: TrainingConfig,
    seeds: int,
    data: Images,
    validation: Images,
    out: str | Path,
    *,
    resume: bool = False,
    log: Callable[[str], None] = say,
    **options: Any,
) -> Network:
    """Train with `seeds` seeds from config.seed on, each in a folder of its own, and keep the best in `out`.

    The best is chosen as the best epoch is. Its metrics.json lists all under "seeds".

    Args:
        out: result folder; the runs are in its folders seed-0, seed-1…
        resume: continue those that were begun.
        log, options: see `capsnet.training.train`, as for the other arguments.
    """
    out = Path(out)
    runs = {}
    folders = {seed: out / f"seed-{seed}" for seed in range(config.seed, config.seed + seeds)}
    if not resume:
        for folder in folders.values():  # before the first of them begins anew
            check_not_stopped(folder)
    for seed, folder in folders.items():
        log(f"seed {seed}, {folder}")
        begun = resume and has_checkpoint(folder)
        train(replace(config, seed=seed), data, validation, folder, resume=begun, log=log, **options)
        runs[seed] = read_json(folder / "metrics.json")
    best = min(runs, key=lambda seed: rank(runs[seed]["validation"]))
    (out / POSES).unlink(missing_ok=True)  # of weights that were here before
    for name in ("model.safetensors", "config.json", "training.json"):
        write_atomically(out / name, (out / f"seed-{best}" / name).read_bytes())
    figures = {seed: {"validation": metrics["validation"]} for seed, metrics in runs.items()}
    write_json(out / "metrics.json", {**runs[best], "seeds": figures})
    model = load_model(out.resolve(), options.get("device", "cpu"))
    write_card(out, model)
    return model
