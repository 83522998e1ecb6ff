"""What a training will take, before its first step: steps, memory, multiplications and the least time for them."""

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from capsnet.batches import network_for
from capsnet.configuration import TrainingConfig
from capsnet.data import Images
from capsnet.distillation import engage
from capsnet.models import Network, build
from capsnet.redrawer import Redrawer
from capsnet.student import Student

TRIED = 16  # images; from so many on the convolutions take the form that they have in training
WORKSPACE = 2**26  # bytes that PyTorch's own kernels took for themselves in small networks
COPIES = 5  # of the weights: themselves, gradient, two moments of Adam, the best so far


@dataclass
class Estimate:
    """What a training takes.

    Attributes:
        parameters: numbers that it learns.
        steps: of all epochs.
        state: bytes for the weights and what belongs to them, a teacher's too, and for the data.
        image: bytes that each image of a batch adds, as float32: what the backward pass needs of the forward pass. That
            of a teacher, which needs none, counts as if it did: a bound.
        flops: floating point operations of a step, in convolutions and matrix products, forward and backward.
        batch_size: images of a step in one process.
    """

    parameters: int
    steps: int
    state: int
    image: int
    flops: int
    batch_size: int

    @property
    def memory(self) -> int:
        """Bytes at most, in one process."""
        return self.state + WORKSPACE + self.batch_size * self.image

    def advice(self, free: int) -> str | None:
        """What to lower, in one sentence, where so many bytes are too few; None where they are enough."""
        if self.memory <= free:
            return None
        fits = (free - self.state - WORKSPACE) // self.image
        lower = f"lower batch_size to {fits}" if fits > 0 else "take a smaller model or input_size"
        return f"this training takes about {gigabytes(self.memory)} and {gigabytes(free)} are free: {lower}."


def estimate(config: TrainingConfig, data: Images, processes: int = 1) -> Estimate:
    """Measured with two small batches on the CPU, of which the larger one needs so much more."""
    with torch.random.fork_rng(devices=[]):
        model = network_for(config, data)
        # An untrained one like the teacher, whose backward pass, which is never made, is counted with the memory only.
        twin = build(engage(config.teacher, model).config) if isinstance(model, Student) else None
    image, flops = _by_image(model)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    if twin is not None:
        bytes_of_twin, its = _by_image(twin)
        image, flops = image + bytes_of_twin, flops + its // 3
        frozen += sum(p.numel() for p in twin.parameters())
    batch_size = -(-config.batch_size // processes)
    numbers = sum(p.numel() for p in model.parameters() if p.requires_grad)
    pens = round(len(data) * config.pen_share / (1 - config.pen_share))
    batches = -(-(len(data) + pens) // config.batch_size)
    pixels = data.images.numel() + (config.pen_pool if config.pen_share else 0) * data.images.shape[-1] ** 2
    return Estimate(
        parameters=numbers,
        steps=config.epochs * min(batches, config.max_batches or batches),
        state=4 * (COPIES * numbers + frozen) + pixels,
        image=image,
        flops=flops * batch_size // (2 * TRIED),
        batch_size=batch_size,
    )


def _by_image(model: Network) -> tuple[int, int]:
    """Bytes that each image adds, and floating point operations for `2 * TRIED` images."""
    channels, size = model.info.in_channels, model.info.input_size
    small, _ = _footprint(model, torch.zeros(TRIED, channels, size, size))
    large, flops = _footprint(model, torch.zeros(2 * TRIED, channels, size, size))
    return (large - small) // TRIED, flops


def _footprint(model: Network, images: Tensor) -> tuple[int, int]:
    """Bytes that the backward pass needs of the forward pass, and floating point operations of both."""
    storages: dict[int, torch.UntypedStorage] = {}  # kept, so that no two of them have the same address

    def keep(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with FlopCounterMode(display=False) as counter:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            out = model(images)
            if isinstance(model, Redrawer):
                model.decode(out.poses, torch.zeros(len(images), dtype=torch.long))
    # The backward pass multiplies twice as much, for the gradients of weights and of inputs.
    return sum(storage.nbytes() for storage in storages.values()), 3 * counter.get_total_flops()


def free_memory(device: torch.device) -> int:
    """Bytes that a training could have on this device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**63
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():  # counts what the system would give up for it
        lines = dict(line.split(":") for line in meminfo.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    return free


def multiplication_rate(device: torch.device, low_precision: bool, seconds: float = 0.3) -> float:
    """Floating point operations a second of a product of large matrices, measured."""
    size = 4096 if device.type == "cuda" else 1024
    a = torch.rand(size, size, device=device, dtype=torch.bfloat16 if low_precision else torch.float32)
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds or done < 3:
        if done == 2:  # the first ones warm up
            started = time.perf_counter()
        a @ a
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        done += 1
    return 2 * size**3 * (done - 2) / (time.perf_counter() - started)


def report(config: TrainingConfig, found: Estimate, device: torch.device, low_precision: bool) -> str:
    """What --dry-run prints."""
    rate, free = multiplication_rate(device, low_precision), free_memory(device)
    seconds = found.steps * found.flops / rate
    lines = [
        *(f"{name}: {value}" for name, value in asdict(config).items()),
        "",
        f"parameters: {found.parameters:,}",
        f"memory: about {gigabytes(found.memory)} in float32, {gigabytes(free)} free",
        f"steps: {found.steps:,}, of {found.flops / 1e9:.1f} billion floating point operations each",
        f"floor time: {seconds / 60:.1f} minutes, at {rate / 1e9:,.0f} billion operations a second of a large "
        f"matrix product in {'bf16' if low_precision else 'float32'} on this device",
    ]
    advice = found.advice(free)
    return "\n".join([*lines, advice] if advice else lines)


def gigabytes(count: int) -> str:
    return f"{count / 2**30:.2f} GiB"
