"""Training that starts from trained weights."""

from pathlib import Path

import torch
from torch import nn

from capsnet.checkpoint import ModelError, load_model


def take_over(model: nn.Module, name: str | Path) -> list[str]:
    """Give `model` the weights of a trained one wherever both have some of the same name and shape.

    With other classes that is all below the class capsules, or the last layer.

    Args:
        name: of the trained one, as `load_model` takes it.
    Returns:
        The names of the model's weights that stay as they were.
    Raises:
        ModelError: there is no such model, or another kind of network.
    """
    trained, own = load_model(name).state_dict(), model.state_dict()
    fits = {key: tensor for key, tensor in trained.items() if key in own and own[key].shape == tensor.shape}
    trunk = [key for key in own if key.startswith("trunk.")]
    if not all(key in fits for key in trunk):
        raise ModelError(f"the weights of {name} are those of another network; name its configuration with --model.")
    with torch.no_grad():
        model.load_state_dict({**own, **fits})
    return [key for key, _ in model.named_parameters() if key not in fits]
