"""The commands in train/ as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TRAIN = Path(__file__).resolve().parent.parent / "train"


def load_script(name: str) -> ModuleType:
    """A new copy of train/NAME.py, whose `main` runs the command; where modules are looked for stays as it is."""
    specification = importlib.util.spec_from_file_location(name, TRAIN / f"{name}.py")
    module, path = importlib.util.module_from_spec(specification), [*sys.path]
    try:
        specification.loader.exec_module(module)
    finally:
        sys.path[:] = path
    return module
