"""Capsule networks (Sabour, Frosst, Hinton 2017): draw a digit, see the capsules answer, bend the pose."""

from capsnet.checkpoint import available_models, load_model, push_to_hub
from capsnet.digits import EmptyDrawingError, InvalidDrawingError, prepare_digit
from capsnet.errors import ModelError
from capsnet.models import create_model

__version__ = "0.3.0"

__all__ = [
    "EmptyDrawingError",
    "InvalidDrawingError",
    "ModelError",
    "available_models",
    "create_model",
    "load_model",
    "prepare_digit",
    "push_to_hub",
]
