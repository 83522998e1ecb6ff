"""A step of training and what it is judged by: losses, rate, precision, figures."""

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.baseline import CNNOutput
from capsnet.configuration import TrainingConfig
from capsnet.data import Images, to_float
from capsnet.distillation import distillation_loss
from capsnet.distributed import Team
from capsnet.losses import margin_loss, present, reconstruction_loss, spread_loss, spread_margin
from capsnet.models import CapsNet, CapsNetOutput, Network
from capsnet.redrawer import Redrawer
from capsnet.student import StudentOutput


class Step(Protocol):
    """See `make_step`."""

    def __call__(
        self, images: Tensor, labels: Tensor, epoch: float, weight: float = 1.0, pictures: Tensor | None = None
    ) -> Tensor: ...


def make_step(
    config: TrainingConfig,
    model: Network,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    network: nn.Module | None = None,
    teacher: CapsNet | None = None,
) -> Step:
    """The step: images (B, C, H, W) float, labels (B,) or (B, n), epochs done → (5,), see below.

    Sums of loss, errors, correct lengths and images, and the norm of the gradient before it was clipped. Of images with
    n digits the step also takes `pictures` (B, n, C, H, W), each digit alone: what its capsule is to redraw.

    Args:
        network: what to call in the place of `model`, see `Team.network`; the step then takes the weight of its share.
        teacher: of a student; it reads the same images, and does not learn.
    """
    network = network or model
    low_precision = use_bf16(config.precision, device)

    def objective(images: Tensor, labels: Tensor, pictures: Tensor, margin: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(device.type, torch.bfloat16, enabled=low_precision):
            out = network(images)
            drawn = _redraw(model, out.poses, labels) if isinstance(model, Redrawer) else None
            with torch.no_grad():  # whose results may take part in a gradient, unlike those of inference mode
                told = None if teacher is None else teacher(images)
        loss = class_loss(config, out, labels, margin)
        if told is not None:
            loss = loss + distillation_loss(config, out, told, labels)
        if drawn is not None:
            loss = loss + config.reconstruction_weight * reconstruction_loss(drawn, pictures)
        return loss, out.lengths

    # CUDA graphs launch all kernels at once. DistributedDataParallel sends gradients in between.
    graphs = config.compile and device.type == "cuda" and network is model
    if config.compile:
        objective = torch.compile(objective, mode="reduce-overhead" if graphs else None)

    def step(
        images: Tensor, labels: Tensor, epoch: float, weight: float = 1.0, pictures: Tensor | None = None
    ) -> Tensor:
        model.train()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config, epoch)
        images = images.contiguous(memory_format=torch.channels_last)
        margin = torch.full((), margin_at(config, epoch), device=device)  # a number would be compiled in
        pictures = images if pictures is None else pictures.flatten(0, 1)
        optimizer.zero_grad(set_to_none=True)
        if graphs:
            torch.compiler.cudagraph_mark_step_begin()  # what the last step's graphs gave may be overwritten
        loss, lengths = objective(images, labels, pictures, margin)
        (loss if weight == 1 else weight * loss).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        with torch.no_grad():
            return torch.cat([figures(loss, lengths, labels), norm[None]])

    return step


def _redraw(model: Redrawer, poses: Tensor, labels: Tensor) -> Tensor:
    """What the capsule of every digit on every image draws: labels (B,) or (B, n) → (B·n, C, H, W)."""
    return model.decode(poses.repeat_interleave(labels.numel() // len(labels), 0), labels.flatten())


def class_loss(
    config: TrainingConfig, out: CapsNetOutput | CNNOutput | StudentOutput, labels: Tensor, margin: Tensor | float
) -> Tensor:
    """The loss of the network's answers by the labels and the configuration, without that of what it redraws."""
    if config.loss == "cross-entropy":
        assert isinstance(out, CNNOutput)  # see TrainingConfig.check
        return F.cross_entropy(out.logits, labels)
    if config.loss == "spread":
        return spread_loss(out.lengths, labels, margin)
    if labels.ndim == 2:
        labels = present(labels, out.lengths.shape[1]).float()
    return margin_loss(out.lengths, labels, config.m_plus, config.m_minus, config.down_weight)


def margin_at(config: TrainingConfig, epoch: float) -> float:
    """The margin of the spread loss: nearly all of the authors' schedule, over the whole training."""
    return spread_margin(8 * epoch / config.epochs, unit=1)


def figures(loss: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
    """Sums over a batch, (4,) float64: loss, errors, lengths of the correct capsules (their mean), images.

    An image is read wrongly unless the capsules of what is there, labels (B,) or (B, n), are longer than all others.
    """
    there = present(labels, lengths.shape[1])
    shortest = lengths.masked_fill(~there, math.inf).amin(1)
    wrong = (shortest <= lengths.masked_fill(there, -math.inf).amax(1)).sum()
    correct_length = lengths.gather(1, labels.view(len(labels), -1)).mean(1).sum()
    images = torch.full_like(loss, len(labels))
    return torch.stack([loss * len(labels), wrong, correct_length, images]).double()


def means(sums: list[float]) -> dict[str, float]:
    """Loss, error and length of the correct capsule for an image, from `figures`."""
    loss, wrong, length, images = sums
    return {"loss": loss / images, "error": wrong / images, "length": length / images}


def learning_rate(config: TrainingConfig, epoch: float) -> float:
    """Linear warm-up, then a cosine down to zero; `epoch` counts fractions."""
    if epoch < config.warm_up:
        return config.learning_rate * (epoch + 1e-3) / config.warm_up
    rest = (epoch - config.warm_up) / max(config.epochs - config.warm_up, 1e-9)
    return config.learning_rate * (1 + math.cos(math.pi * min(rest, 1))) / 2


@torch.inference_mode()
def evaluate(
    model: Network, data: Images, config: TrainingConfig, batch_size: int = 500, team: Team | None = None
) -> dict[str, float]:
    """Loss (the spread loss with its last margin), error (fraction), mean length of the correct capsule over `data`.

    Args:
        team: each of these processes reads its share.
    """
    model.eval()
    data = data[team.rank :: team.count] if team else data
    total = torch.zeros(4, dtype=torch.float64, device=data.images.device)
    for start in range(0, len(data), batch_size):
        part = data[start : start + batch_size]
        out = model(to_float(part.images).contiguous(memory_format=torch.channels_last))
        loss = class_loss(config, out, part.labels, margin_at(config, config.epochs))
        total += figures(loss, out.lengths, part.labels)
    return means((team.total(total) if team else total).tolist())


def use_bf16(precision: str, device: torch.device) -> bool:
    """Whether "auto", "bf16" or "fp32" means bf16 on this device; "auto" does if the hardware multiplies bf16."""
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    can = torch.cpu.get_capabilities() if device.type == "cpu" and hasattr(torch.cpu, "get_capabilities") else {}
    return bool(can.get("avx512_bf16") or can.get("amx_bf16"))


def device_name(device: torch.device) -> str:
    """The card's name, or "CPU" and how many threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU, {torch.get_num_threads()} threads"
