"""The network of Sabour, Frosst, Hinton 2017, written to be read next to the paper: slow, every vote in memory.

What capsnet/ computes is compared with this. Symbols are those of the paper: u, û (u_hat), b, c, s, v.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def squash(s: Tensor) -> Tensor:
    """Equation 1 as printed; not for zero vectors."""
    square = (s * s).sum(-1, keepdim=True)
    return square / (1 + square) * s / square.sqrt()


def length(v: Tensor) -> Tensor:
    return (v * v).sum(-1).sqrt()


def votes(u: Tensor, W: Tensor) -> Tensor:
    """u (B, I, A), W (I, A, J, D) → û (B, I, J, D)."""
    return torch.einsum("bia,iajd->bijd", u, W)


def route(
    u_hat: Tensor,
    iterations: int = 3,
    bias: Tensor | None = None,
    temperature: float = 1.0,
    leaky: bool = False,
    agreement: str = "dot",
) -> tuple[Tensor, Tensor]:
    """Procedure 1: û (B, I, J, D) → v (B, J, D) and c (B, I, J). The paper's agreement is "dot"."""
    b = torch.zeros_like(u_hat[..., 0])  # (B, I, J)
    for _ in range(iterations):
        if leaky:
            nowhere = torch.zeros_like(b[:, :, :1])
            c = torch.softmax(torch.cat([b, nowhere], 2) / temperature, dim=2)[:, :, :-1]
        else:
            c = torch.softmax(b / temperature, dim=2)  # over the output capsules
        s = torch.einsum("bij,bijd->bjd", c, u_hat)
        if bias is not None:
            s = s + bias
        v = squash(s)
        if agreement == "cosine":
            b = b + F.cosine_similarity(u_hat, v[:, None], dim=-1)
        elif agreement == "distance":
            b = b - ((u_hat - v[:, None]) ** 2).sum(-1)
        else:
            b = b + torch.einsum("bijd,bjd->bij", u_hat, v)
    return v, c


def primary_capsules(features: Tensor, weight: Tensor, bias: Tensor, types: int, dim: int) -> Tensor:
    """features (B, C, H, W) → u (B, types·H'·W', dim), one capsule after the other."""
    x = F.conv2d(features, weight, bias, stride=2)
    capsules = []
    for t in range(types):
        for row in range(x.shape[2]):
            for column in range(x.shape[3]):
                capsules.append(squash(x[:, t * dim : (t + 1) * dim, row, column]))
    return torch.stack(capsules, 1)


class CapsNet:
    """Takes a copy of the weights of a `capsnet.models.CapsNet`: `self.weights`, by the names they have there."""

    def __init__(self, model):
        self.weights = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
        self.types, self.dim = model.primary.types, model.primary.dim
        self.shape = model.decoder.image_shape
        routing = model.routing
        self.options = {name: getattr(routing, name) for name in ("iterations", "temperature", "leaky", "agreement")}

    def __call__(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """images (B, C, H, W) → lengths (B, K), poses (B, K, P), coupling (B, I, K)."""
        w = self.weights
        features = F.relu(F.conv2d(images, w["trunk.conv.weight"], w["trunk.conv.bias"]))
        u = primary_capsules(features, w["primary.conv.weight"], w["primary.conv.bias"], self.types, self.dim)
        u_hat = votes(u, w["routing.weight"])
        v, c = route(u_hat, bias=w.get("routing.bias"), **self.options)
        return length(v), v, c

    def decode(self, poses: Tensor, digits: Tensor) -> Tensor:
        """poses (B, K, P), digits (B,) → (B, C, H, W)."""
        w = self.weights
        masked = torch.zeros_like(poses)
        for sample, digit in enumerate(digits.tolist()):
            masked[sample, digit] = poses[sample, digit]
        x = masked.reshape(len(poses), -1)
        x = F.relu(F.linear(x, w["decoder.net.0.weight"], w["decoder.net.0.bias"]))
        x = F.relu(F.linear(x, w["decoder.net.2.weight"], w["decoder.net.2.bias"]))
        x = torch.sigmoid(F.linear(x, w["decoder.net.4.weight"], w["decoder.net.4.bias"]))
        return x.reshape(-1, *self.shape)

    def loss(self, images: Tensor, labels: Tensor, reconstruction_weight: float = 0.0005) -> Tensor:
        """Equation 4 and the reconstruction, one sample and one class after the other."""
        lengths, poses, _ = self(images)
        pictures = self.decode(poses, labels)
        total = images.new_zeros(())
        for sample, label in enumerate(labels.tolist()):
            for k in range(lengths.shape[1]):
                if k == label:
                    total = total + torch.clamp(0.9 - lengths[sample, k], min=0) ** 2
                else:
                    total = total + 0.5 * torch.clamp(lengths[sample, k] - 0.1, min=0) ** 2
            total = total + reconstruction_weight * ((pictures[sample] - images[sample]) ** 2).sum()
        return total / len(labels)
