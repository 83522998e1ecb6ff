"""Pictures on their way to the browser: a byte a pixel in base64, painted there by JavaScript."""

import base64
from pathlib import Path

import torch

FOLDER = Path(__file__).parent


def read(*names: str) -> str:
    """The text of files that lie beside this one, one after the other."""
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names)


def encode(pictures: torch.Tensor) -> str:
    """Pictures of any shape, values 0 to 1, as base64 of unsigned bytes, ink 255."""
    pixels = (pictures.detach().clamp(0, 1) * 255).round().to(torch.uint8)
    return base64.b64encode(pixels.cpu().contiguous().numpy().tobytes()).decode("ascii")
