"""Training in several processes at once, one a device, as torchrun starts them; and what they tell one another.

Each holds the whole data set and the same random numbers, and trains on its share of every batch. So the number of
processes changes neither what a step learns from nor what a checkpoint holds.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

PATIENCE = 10  # steps between two questions whether somebody wants to stop, so that no step waits for an answer


@contextmanager
def joined(device: torch.device | str) -> Iterator[torch.device]:
    """Join the processes that torchrun started with this one, if it did; the device that is this one's.

    Raises:
        ValueError: there are fewer GPUs than processes.
    """
    device = torch.device(device)
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        if device.index >= torch.cuda.device_count():
            count = torch.cuda.device_count()
            raise ValueError(f"there are {count} GPUs for more processes; start torchrun --nproc-per-node={count}")
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield device
    finally:
        dist.destroy_process_group()


class Team:
    """The processes of a training: those of torch's process group, or this one alone.

    Attributes:
        rank, count: which one this is, of how many.
        leads: whether this one writes and speaks for all.
    """

    def __init__(self):
        together = dist.is_available() and dist.is_initialized()
        self.rank, self.count = (dist.get_rank(), dist.get_world_size()) if together else (0, 1)
        self.leads = self.rank == 0
        # Questions go from CPU to CPU: nothing waits for a GPU.
        self._talk = dist.new_group(backend="gloo") if self.count > 1 else None

    def share(self, images: int) -> tuple[slice, float]:
        """This one's part of a batch, and how much its mean counts: the mean over all of the products is the batch's.

        Where there are fewer images than processes, some have one that counts nothing.
        """
        start, end = (k * images // self.count for k in (self.rank, self.rank + 1))
        if start == end:
            return slice(0, 1), 0.0
        return slice(start, end), (end - start) * self.count / images

    def any(self, *flags: bool) -> list[bool]:
        """Each flag, if it is set in one of the processes."""
        if self.count == 1:
            return list(flags)
        found = torch.tensor(flags, dtype=torch.uint8)
        dist.all_reduce(found, dist.ReduceOp.MAX, self._talk)
        return [bool(flag) for flag in found.tolist()]

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def network(self, model: nn.Module, device: torch.device) -> nn.Module:
        """What to call in the place of `model`, so that gradients are means over all processes.

        Batch normalisation takes its statistics from the whole batch on GPUs. On CPUs, where PyTorch has none that
        does, it takes those of this one's share.
        """
        if self.count == 1:
            return model
        if device.type == "cuda":
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        # They need no message a step: the same everywhere, or averaged in time.
        buffers = [name for name, _ in model.named_buffers()]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, buffers)
        return DistributedDataParallel(model)

    def average_statistics(self, model: nn.Module) -> None:
        """Give all the mean of their running statistics; those of a step are added up linearly, so that it is exact."""
        if self.count > 1:
            for module in model.modules():
                if isinstance(module, nn.BatchNorm2d):
                    for running in (module.running_mean, module.running_var):
                        assert running is not None  # all of ours keep them
                        running.copy_(self.total(running / self.count))

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """The leader does it, then the others: it may fetch or write what they read."""
        if not self.leads:
            self.wait()
        try:
            yield
        finally:
            if self.leads:
                self.wait()

    def wait(self) -> None:
        """Until all are here."""
        self.any(False)
