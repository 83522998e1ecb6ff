"""What follows a training: the bar and the lines in a terminal, a notebook or a log file."""

import sys
from typing import Any

from tqdm.auto import tqdm


def progress_bar(*, disable: bool = False, **options: Any) -> tqdm:
    """A bar of images in a terminal or a notebook; none in a log file, where it would be a line every time it moves."""
    seen = sys.stderr.isatty() or "ipykernel" in sys.modules
    return tqdm(unit=" images", leave=False, disable=disable or not seen, **options)


def say(line: str) -> None:
    """Print a line above the bar, at once in a log file, too."""
    tqdm.write(line)
    sys.stdout.flush()
