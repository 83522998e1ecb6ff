"""What the scripts in train/ share."""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """argparse that answers a mistake with one line and exit status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; --help lists the options\n")
