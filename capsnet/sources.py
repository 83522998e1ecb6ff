"""Data sets of MNIST's form by name, fetched through torchvision where they are missing."""

import hashlib
import socket
from dataclasses import dataclass
from pathlib import Path

import torch

from capsnet.data import DataError, Images

# MNIST's files and their SHA-256; the other sets have files of the same names
MNIST_FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
SIDE = 28  # pixels
VALIDATION_IMAGES = 5_000  # the last of the training files; they choose the epoch


@dataclass(frozen=True)
class Source:
    """A data set: its name for people, the class and folder it has in torchvision, its classes; None are digits."""

    title: str
    folder: str
    class_names: list[str] | None = None


MNIST = "mnist"
SOURCES = {
    MNIST: Source("MNIST", "MNIST"),
    # Xiao, Rasul, Vollgraf 2017, https://arxiv.org/abs/1708.07747
    "fashion-mnist": Source(
        "Fashion-MNIST",
        "FashionMNIST",
        ["T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"],
    ),
    # Clanuwat et al. 2018, https://arxiv.org/abs/1812.01718: one hiragana for each row of the syllabary
    "kmnist": Source("KMNIST", "KMNIST", ["お", "き", "す", "つ", "な", "は", "ま", "や", "れ", "を"]),
}


def source_of(class_names: list[str]) -> str | None:
    """The name of the data set with these classes; None where there is none."""
    digits = list("0123456789")
    return next((name for name, its in SOURCES.items() if (its.class_names or digits) == class_names), None)


def load_mnist(data_dir: str | Path, train: bool, download: bool = True, name: str = MNIST) -> Images:
    """The 60,000 training or 10,000 test images of MNIST, or of another set of its form.

    Args:
        data_dir: folder that holds, or gets, `MNIST/raw/` with the four official files.
        download: fetch missing files through torchvision.
        name: in `SOURCES`.
    Raises:
        DataError: files are missing and could not be fetched, or are not that set's.
    """
    import torchvision.datasets

    source = SOURCES[name]
    kind, raw = getattr(torchvision.datasets, source.folder), Path(data_dir) / source.folder / "raw"
    count = 60_000 if train else 10_000
    own = [file for file in MNIST_FILES if file.startswith("train") == train]
    if not all((raw / file).is_file() for file in MNIST_FILES):
        if not download:
            raise DataError(f"{data_dir} holds no complete {source.title}; {_where(raw)}")
        _download(kind, data_dir, raw, source.title)
    try:
        data = kind(str(data_dir), train=train)
        whole = data.data.shape == (count, SIDE, SIDE) and data.targets.shape == (count,)
        if name == MNIST:
            whole = whole and all(_sha256(raw / file) == MNIST_FILES[file] for file in own)
        else:  # torchvision knows only their archives' checksums; all their classes have as many images
            whole = whole and torch.bincount(data.targets).tolist() == [count // 10] * 10
    except Exception:  # AssertionError, KeyError, RuntimeError…: torchvision reads without looking
        whole = False
    if not whole:
        raise DataError(
            f"the files in {raw} are damaged or are not {source.title}'s; remove them, and they are fetched again."
        )
    return Images(data.data[:, None], data.targets.long(), source.class_names)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(kind: type, data_dir: str | Path, raw: Path, title: str) -> None:
    patience = socket.getdefaulttimeout()
    socket.setdefaulttimeout(20)  # seconds; torchvision would wait for a silent network for minutes
    try:
        kind(str(data_dir), download=True)
    except Exception as error:  # URLError, HTTPError, RuntimeError…: whatever went wrong, the remedy is the same
        cause = str(error).strip().split("\n")[-1]
        raise DataError(f"{title} could not be downloaded ({cause}); {_where(raw)}") from None
    finally:
        socket.setdefaulttimeout(patience)


def _where(raw: Path) -> str:
    return f"put the four files {', '.join(MNIST_FILES)} into {raw}, or name the folder with --data-dir."


def split_validation(data: Images) -> tuple[Images, Images]:
    """Training images and, the last 5,000, validation images."""
    return data[:-VALIDATION_IMAGES], data[-VALIDATION_IMAGES:]
