"""The same training from several seeds: how much of a difference is chance, and the best of them to keep."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from tqdm import tqdm

from capsnet.card import write_card
from capsnet.checkpoint import POSES, load_model, read_json, write_atomically, write_json
from capsnet.configuration import TrainingConfig
from capsnet.data import Images
from capsnet.models import CapsNet
from capsnet.run import CHECKPOINT
from capsnet.training import train


def train_seeds(
    config: TrainingConfig,
    seeds: int,
    data: Images,
    validation: Images,
    out: str | Path,
    *,
    device: torch.device | str = "cpu",
    resume: bool = False,
    log: Callable[[str], None] = tqdm.write,
) -> CapsNet:
    """Train with `seeds` seeds from config.seed on, each in a folder of its own, and keep the best in `out`.

    The best has the smallest validation error, ties broken by validation loss. Its metrics.json lists all under
    "seeds".

    Args:
        out: result folder; the runs are in its folders seed-0, seed-1…
        resume: continue those that were begun; for the others see `capsnet.training.train`.
    """
    out = Path(out)
    runs = {}
    for seed in range(config.seed, config.seed + seeds):
        folder = out / f"seed-{seed}"
        log(f"seed {seed}, {folder}")
        begun = resume and (folder / CHECKPOINT).exists()
        train(replace(config, seed=seed), data, validation, folder, device=device, resume=begun, log=log)
        runs[seed] = read_json(folder / "metrics.json")
    best = min(runs, key=lambda seed: (runs[seed]["validation"]["error"], runs[seed]["validation"]["loss"]))
    (out / POSES).unlink(missing_ok=True)  # of weights that were here before
    for name in ("model.safetensors", "config.json", "training.json"):
        write_atomically(out / name, (out / f"seed-{best}" / name).read_bytes())
    figures = {seed: {"validation": metrics["validation"]} for seed, metrics in runs.items()}
    write_json(out / "metrics.json", {**runs[best], "seeds": figures})
    model = load_model(out.resolve(), device)
    write_card(out, sum(p.numel() for p in model.parameters()))
    return model
