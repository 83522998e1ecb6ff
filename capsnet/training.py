"""Training: the loop and its checkpoints. Nothing here parses arguments or fetches data.

The loop reads from top to bottom in `train`. Every random number comes from (seed, epoch) or from a generator whose
state is in the checkpoint, so a run that was stopped and resumed gives the same weights as one that was not,
bit for bit on a CPU.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsnet.batches import epoch_order, judged_by, lesson, network_for, pens_for
from capsnet.callbacks import Callback, progress_bar, say
from capsnet.card import write_card
from capsnet.checkpoint import save_model, write_json
from capsnet.configuration import TrainingConfig, command
from capsnet.data import Images, to_float
from capsnet.diagnostics import diagnose, warning
from capsnet.distillation import engage
from capsnet.distributed import PATIENCE, Team
from capsnet.finetuning import take_over
from capsnet.models import Network
from capsnet.overlap import measure_presence
from capsnet.redrawer import Redrawer
from capsnet.rejection import measure_threshold
from capsnet.run import (
    CHECKPOINT,
    Clock,
    DivergedError,
    Interruptible,
    Progress,
    has_checkpoint,
    keep_freed_memory,
    read_checkpoint,
    remove_checkpoints,
    write_checkpoint,
)
from capsnet.step import Step, device_name, evaluate, make_step, means
from capsnet.student import Student

LOOK_EVERY = 100  # steps between two looks at what they gave; each look waits for the device


def train(
    config: TrainingConfig,
    data: Images,
    validation: Images,
    out: str | Path,
    *,
    device: torch.device | str = "cpu",
    resume: bool = False,
    checkpoint_minutes: float = 10,
    log: Callable[[str], None] = say,
    callbacks: Sequence[Callback] = (),
) -> Network:
    """Train a model and leave it in `out` with config.json, training.json and metrics.json.

    The weights are those of the epoch with the smallest validation error, ties broken by validation loss. Processes
    that torchrun started train it together, see `capsnet.distributed`.

    Args:
        data, validation: what trains and what chooses.
        out: result folder; also holds the checkpoint, written after every epoch and on Ctrl-C, and the one before.
        resume: continue from the checkpoint in `out`.
        checkpoint_minutes: write a checkpoint also when so many have passed since the last.
        log: gets one line an epoch, and one when the checkpoint before has to be taken.
        callbacks: called after every epoch, when its checkpoint is written, in one of the processes.
    Raises:
        ModelError: nothing to resume from, the checkpoint was made with another configuration or other data, there is
            one that could be resumed but was not asked for, or a student's teacher cannot teach it.
        DivergedError: loss or gradient is no finite number.
        OSError: a file cannot be written.
        ValueError: images or labels of the wrong form, pen digits beside images that are not 1×28×28 or no digits, or
            fewer images a step than processes.
    """
    out, device, team = Path(out), torch.device(device), Team()
    if config.batch_size < team.count:
        raise ValueError(f"batch_size is {config.batch_size}; it must be at least the {team.count} processes")
    data.check()
    validation.check()
    log = log if team.leads else lambda line: None
    out.mkdir(parents=True, exist_ok=True)
    keep_freed_memory()
    torch.manual_seed(config.seed)
    model = network_for(config, data)
    if config.start and not resume:
        anew = take_over(model, config.start)
        log(f"weights of {config.start}" + (f"; anew, since the classes are others: {', '.join(anew)}" if anew else ""))
    model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
    teacher = engage(config.teacher, model, device) if isinstance(model, Student) else None
    network = team.network(model, device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
    generator = torch.Generator(device).manual_seed(config.seed)
    progress, fingerprint = Progress(), data.fingerprint() + validation.fingerprint()
    best: dict[str, Tensor] = {}
    if resume:
        progress, best = read_checkpoint(out, config, model, optimizer, generator, fingerprint, log)
    elif team.leads:
        remove_checkpoints(out)
    judged = judged_by(config, validation).to(device)
    data, pens = data.to(device), pens_for(config, data.to(device))
    step = make_step(config, model, optimizer, device, network, teacher)
    due = Clock(checkpoint_minutes)

    def save() -> None:
        team.average_statistics(model)
        if team.leads:
            write_checkpoint(out, config, model, optimizer, generator, progress, best, fingerprint)

    with Interruptible() as interrupted:
        while not progress.finished(config.epochs, config.stop_at_length):
            try:
                whole = _train_epoch(config, progress, data, pens, step, generator, team, interrupted, due, save)
                if whole:
                    team.average_statistics(model)
                    result = evaluate(model, judged, config, team=team)
                    _finish_epoch(progress, result)
                    progress.history[-1] |= diagnose(model, judged)
            except DivergedError as error:
                raise DivergedError(f"{error}; {_what_is_left(out)}") from None
            if whole:
                if progress.best["epoch"] == progress.epoch:
                    best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            save()
            if not whole:
                raise KeyboardInterrupt
            log(_epoch_line(config, progress))
            if advice := warning(progress.history[-1]):
                log(advice)
            for callback in callbacks if team.leads else ():
                callback(progress.history[-1], model, judged)

    model.load_state_dict(best)
    if team.leads:
        if isinstance(model, Redrawer):
            measure_pose_range(model, judged_by(config, data).to(device))
        if config.kind == "pair":
            measure_presence(model, validation)
        else:
            measure_threshold(model, judged)
        save_model(model, out)
        write_json(out / "training.json", asdict(config))
        run = _circumstances(config, progress, device, team)
        run |= {"images": len(data), "validation_images": len(validation)}
        write_json(out / "metrics.json", {"validation": progress.best, "run": run, "history": progress.history})
        write_card(out, model)
    return model


def _train_epoch(
    config: TrainingConfig,
    progress: Progress,
    data: Images,
    pens: Images,
    step: Step,
    generator: torch.Generator,
    team: Team,
    interrupted: Callable[[], bool],
    due: Callable[[], bool],
    save: Callable[[], None],
) -> bool:
    """Train from where `progress` stands to the end of the epoch; False when interrupted before that."""
    order = epoch_order(config, progress.epoch, len(data), len(pens))
    batches = order.split(config.batch_size)[: config.max_batches or None]
    rows: list[Tensor] = []  # what the steps since the last look gave, on the device
    begun, started = progress.batch, time.monotonic()

    def look() -> None:
        nonlocal started
        if rows:
            found = team.total(torch.stack(rows))
            found[:, -1] /= team.count  # all have the same gradient
            rows.clear()
            progress.add(found.tolist())
        progress.seconds += time.monotonic() - started
        started = time.monotonic()

    done = int(progress.sums[-1])
    with progress_bar(total=len(order), initial=done, desc=progress.name, disable=not team.leads) as bar:
        for number, batch in enumerate(batches[begun:], begun):
            if team.count == 1 or number % PATIENCE == 0:
                stop, keep = team.any(interrupted(), due())
                if stop:
                    break
                if keep and number > begun:
                    look()
                    save()
            part, weight = team.share(len(batch))
            its = lesson(config, batch, data, pens, generator, part)
            row = step(its.images, its.labels, progress.epoch + number / len(batches), weight, its.pictures)
            rows.append(row if weight else torch.cat([0 * row[:-1], row[-1:]]))
            bar.update(len(batch))
            if len(rows) == LOOK_EVERY:
                look()
        look()
    return progress.batch == len(batches)


def _what_is_left(out: Path) -> str:
    kept = f"the last good state is in {out / CHECKPOINT}" if has_checkpoint(out) else "no state was kept yet"
    return f"{kept}; train anew with a lower learning rate or a lower clip."


@torch.inference_mode()
def measure_pose_range(model: Redrawer, data: Images, batch_size: int = 500) -> None:
    """Set `model.pose_range` to the 1 % and 99 % quantiles of each class's poses over its own images, or pairs."""
    model.eval()
    labels = data.labels.view(len(data), -1)  # (N, n)
    poses = torch.cat(
        [
            model(to_float(images)).poses[torch.arange(len(images))[:, None], its]
            for images, its in zip(data.images.split(batch_size), labels.split(batch_size), strict=True)
        ]
    )  # (N, n, P)
    ends = torch.tensor([0.01, 0.99], device=poses.device)
    for label in labels.unique().tolist():
        model.pose_range[:, label] = torch.quantile(poses[labels == label], ends, dim=0)


def _finish_epoch(progress: Progress, result: dict[str, float]) -> None:
    if not math.isfinite(result["loss"]):
        raise DivergedError(f"the validation loss is no finite number after {progress.name}")
    progress.epoch += 1
    trained = {**means(progress.sums), "gradient": progress.gradient / progress.batch}
    progress.history.append({"epoch": progress.epoch, **trained, **{f"validation_{k}": v for k, v in result.items()}})
    if not progress.best or rank(result) < rank(progress.best):
        progress.best = {"epoch": progress.epoch, **result}
    progress.batch, progress.sums, progress.gradient = 0, [0.0] * 4, 0.0


def rank(result: dict[str, float]) -> tuple[float, float]:
    """By what weights are chosen, the smaller the better: validation error, ties broken by loss."""
    return result["error"], result["loss"]


def _epoch_line(config: TrainingConfig, progress: Progress) -> str:
    last = progress.history[-1]
    return (
        f"epoch {progress.epoch}/{config.epochs}  loss {last['loss']:.4f}  error {last['error']:.2%}  "
        f"validation error {last['validation_error']:.2%}  loss {last['validation_loss']:.5f}  "
        f"length {last['validation_length']:.3f}  {progress.seconds / progress.epoch:.0f} s/epoch"
    )


def _circumstances(config: TrainingConfig, progress: Progress, device: torch.device, team: Team) -> dict[str, Any]:
    processes = {"processes": team.count} if team.count > 1 else {}
    return {
        "command": command(config),
        "epochs": progress.epoch,
        "seconds": round(progress.seconds),
        "device": device_name(device),
        **processes,
        "torch": torch.__version__,
    }
