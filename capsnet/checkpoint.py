"""Models on disk: safetensors and JSON, written atomically. Nothing is ever unpickled.

A model is a folder: model.safetensors (fp16), config.json (what rebuilds it), training.json (how it was trained),
metrics.json (what was measured), README.md (the model card) and, once that was measured, poses.json (what each number
of a pose does, and what moves one property of the digit).
"""

import hashlib
import json
import math
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from capsnet import hub
from capsnet.errors import ModelError
from capsnet.hub import POSES
from capsnet.models import Network, build
from capsnet.morphometry import PROPERTIES
from capsnet.redrawer import Redrawer

_POSE_PARTS = "effects", "directions"
WEIGHTS = Path(__file__).resolve().parent.parent / "weights"


def write_atomically(path: Path, content: bytes, previous: Path | None = None) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one, whole.

    Args:
        previous: where the old one is kept. A crash may then leave no file at `path`, but the old one there.
    Raises:
        OSError: no room, no permission…; the message is one sentence, and the old file is untouched.
    """
    unfinished = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(unfinished, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if previous is not None and path.exists():
            os.replace(path, previous)
        os.replace(unfinished, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise OSError(f"{path} cannot be written ({error.strerror or error}); what was there is unharmed.") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Bring names to the disk, too: a file that was renamed is found after a power cut."""
    if os.name == "posix":  # other systems do not open folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """Raises ModelError when the file is missing or not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path} is missing; a model folder holds config.json and model.safetensors.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read as JSON ({error}); restore it or train the model again.") from None


def write_tensors(path: Path, tensors: dict[str, Tensor], note: Any = None, previous: Path | None = None) -> None:
    """Tensors, `note` (anything JSON can hold) and a checksum of both in one file, so that they never part.

    Args:
        previous: see `write_atomically`.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    words = json.dumps(note)
    # One entry: of several, safetensors changes the order from run to run.
    write_atomically(path, save(tensors, {"note": f"{words}\n{_checksum(tensors, words)}"}), previous)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    """Tensors and note of `write_tensors`. Raises ModelError when the file is missing, damaged or of another kind."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            words, _, checksum = (file.metadata() or {}).get("note", "null").partition("\n")
            if checksum and checksum != _checksum(tensors, words):  # other programs write none
                raise ValueError("its checksum is not that of its content")
            return tensors, json.loads(words)
    except FileNotFoundError:
        raise ModelError(f"{path} is missing; train the model, or restore the file.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path} is not a whole safetensors file ({error}); restore it or train again.") from None


def _checksum(tensors: dict[str, Tensor], note: str) -> str:
    """SHA-256 of names, types, shapes and numbers of contiguous tensors on the CPU, and of the note."""
    digest = hashlib.sha256(note.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def save_model(model: Network, folder: str | Path) -> None:
    """Write model.safetensors (fp16) and config.json into `folder`; what was measured of other poses there goes."""
    folder = Path(folder)
    (folder / POSES).unlink(missing_ok=True)
    halves = {name: t.half() if t.is_floating_point() else t for name, t in model.state_dict().items()}
    write_tensors(folder / "model.safetensors", halves)
    write_json(folder / "config.json", model.config)


def available_models(kind: str | None = "digit") -> list[str]:
    """Names of the models in weights/ of one kind ("digit", "pair", "baseline"), or of all with None; sorted.

    Folders without weights or with a config.json that cannot be read are left out; `load_model` says what is wrong.
    """
    folders = sorted(path.parent for path in WEIGHTS.glob("*/model.safetensors"))
    kinds = {folder.name: _kind(folder) for folder in folders}
    return [name for name, its in kinds.items() if its is not None and kind in (None, its)]


def _kind(folder: Path) -> str | None:
    try:
        config = read_json(folder / "config.json")
    except ModelError:
        return None
    return config.get("kind", "digit") if isinstance(config, dict) else None


def load_model(name: str | Path, device: torch.device | str = "cpu", revision: str | None = None) -> Network:
    """A trained model in evaluation mode, float32.

    Its `pose_effects` and `pose_directions` are what poses.json says of each class: a list of `capsnet.pose.Effect` as
    dicts, and a `capsnet.pose.Direction` for each property, likewise.

    Args:
        name: a name in weights/, a folder, or "user/repo" on the Hugging Face Hub.
        revision: branch, tag or commit on the Hub.
    Raises:
        ModelError: there is no such model, or its files are damaged or do not fit together.
    """
    folder = find_model(str(name), revision)
    config = read_json(folder / "config.json")
    try:
        with torch.device("meta"):  # takes no memory: a config.json from elsewhere may ask for any size
            planned = build(config).state_dict()
        tensors, _ = read_tensors(folder / "model.safetensors")
        if _shapes(planned) != _shapes(tensors):
            raise ModelError(f"model.safetensors and config.json in {folder} do not fit together; restore both.")
        model = build(config)
    except ModelError:
        raise
    except (TypeError, ValueError, IndexError, RuntimeError) as error:  # the last two from torch, of odd sizes
        cause = str(error).split("\n")[0]
        raise ModelError(f"{folder / 'config.json'} does not describe a model of this version ({cause}).") from None
    model.load_state_dict(tensors)
    _load_poses(model, folder)
    model.float().eval().requires_grad_(False)
    return model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it


def push_to_hub(name: str | Path, repo: str, private: bool = False, message: str = "A trained model") -> str:
    """Put a trained model on the Hugging Face Hub, for `load_model(repo)`; returns the commit, a revision to pin.

    Args:
        name: a name in weights/ or a folder; it must load.
        repo: "user/repo"; it is made where there is none. Signs in as `hf auth login` has, or with HF_TOKEN.
    Raises:
        ModelError: the model cannot be loaded, or the Hub did not take it.
    """
    load_model(name)
    return hub.upload(find_model(str(name)), repo, private, message)


def _shapes(tensors: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _load_poses(model: Network, folder: Path) -> None:
    path, size = folder / POSES, model.info.pose_size
    if not path.exists():
        return
    found = read_json(path)
    try:
        effects, directions = ([found[part][name] for name in model.info.class_names] for part in _POSE_PARTS)
        fits = all(len(one) == size and all(map(_is_effect, one)) for one in effects)
        fits = fits and all(_is_direction(name, one, size) for of in directions for name, one in of.items())
    except (AttributeError, KeyError, OverflowError, TypeError):  # isfinite of a whole number without end
        fits = False
    if not fits:
        raise ModelError(f"{path} does not fit the model; remove it, and train/name_poses.py writes it again.")
    if isinstance(model, Redrawer):
        model.pose_effects, model.pose_directions = (found[part] for part in _POSE_PARTS)


def _is_effect(effect: dict) -> bool:
    """Whether this is a `capsnet.pose.Effect` as a dict, of the properties that this version knows."""
    return all(name in PROPERTIES and math.isfinite(effect["changes"][name]) for name in effect["names"])


def _is_direction(name: str, direction: dict, size: int) -> bool:
    """Whether this is a `capsnet.pose.Direction` as a dict, of such a property."""
    vectors = direction["change"], direction["slope"]
    numbers = [direction[key] for key in ("offset", "low", "high", "gain", "leak")]
    return (
        name in PROPERTIES and all(len(v) == size for v in vectors) and all(map(math.isfinite, sum(vectors, numbers)))
    )


def find_model(name: str, revision: str | None = None) -> Path:
    """The folder of a model; from the Hub it is downloaded first. Arguments and errors as in `load_model`."""
    try:
        found = [folder for folder in (WEIGHTS / name, Path(name)) if name and (folder / "config.json").exists()]
        without_config = bool(name) and Path(name).is_dir()
    except (OSError, ValueError):  # too long for a path, or a character that no path has
        found, without_config = [], False
    if found:
        return found[0]
    if without_config:
        raise ModelError(f"the folder {name} holds no config.json; name a folder that train/train_mnist.py wrote.")
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return hub.download(name, revision)
    names = ", ".join(available_models(None))
    if not names:
        raise ModelError(
            f"there is no model {name!r}: trained weights come with a clone of the repository, in its weights/ folder; "
            f'name such a folder, or "user/repo" on the Hugging Face Hub.'
        )
    raise ModelError(f'there is no model {name!r}; choose {names}, a folder, or "user/repo" on the Hugging Face Hub.')
