"""Capsule networks (Sabour, Frosst, Hinton 2017): draw a digit, see the capsules answer, bend the pose."""

from capsnet.checkpoint import ModelError, available_models, load_model
from capsnet.digits import EmptyDrawingError, InvalidDrawingError, prepare_digit
from capsnet.models import create_model

__all__ = [
    "EmptyDrawingError",
    "InvalidDrawingError",
    "ModelError",
    "available_models",
    "create_model",
    "load_model",
    "prepare_digit",
]
