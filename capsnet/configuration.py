"""How a model is trained: every setting, its usual value, and the recipes of models that need others."""

import math
import shlex
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from capsnet.checkpoint import read_json
from capsnet.data import Augmentation
from capsnet.models import CONFIGS
from capsnet.sources import MNIST, SOURCES

MOST_PAD = 100  # pixels; sheets of eight times a digit's side
LOSSES = ("margin", "spread", "cross-entropy")


@dataclass
class TrainingConfig:
    """How a model is trained; saved as training.json.

    Attributes:
        model: a named configuration of `capsnet.models`.
        projection: numbers to which each primary capsule is compressed before it is routed; 0 leaves it as it is.
        part_capsules: capsules in one more layer between primary and class capsules, routed alike; 0 is no such layer.
        dataset: "mnist", "fashion-mnist" or "kmnist", or a folder of pictures with a folder for each class, see
            `capsnet.folder`.
        input_size: side in pixels to which the pictures of a folder are brought.
        pad: pixels of paper added on each side of every picture, which is then moved by up to so many and changed in no
            other way, if nothing else is asked for: the paper's training for affNIST, where it is 6.
        drawings: the folder's pictures are drawings, to be brought into MNIST's form as on the page.
        start: trained weights to start from, a name in weights/ or a folder; none are random ones.
        teacher: of a model that is taught (student), the trained capsule network, a name in weights/ or a folder.
        epochs: passes over the data.
        batch_size: images a step.
        learning_rate: the peak of the rate, from which it falls to zero along a cosine.
        warm_up: epochs over which the rate rises to its peak, fractions allowed.
        clip: largest norm of the gradient.
        reconstruction_weight: of the squared error summed over pixels; 0.0005 is the paper's (0.392 on the mean of
            28×28 pixels), 0.01 the authors' code (7.84).
        loss: "margin"; "spread", that of matrix capsules, whose margin grows over the whole training;
            "cross-entropy", that of networks without capsules, and only theirs.
        m_plus: length from which the capsule of a class that is present is long enough.
        m_minus: length up to which the capsule of an absent class is short enough.
        down_weight: of absent classes in the margin loss.
        soft_weight: of the distance between a student's lengths and its teacher's, see `capsnet.distillation`.
        temperature: divides the logits of both lengths in that distance.
        pose_weight: of the squared distance between a student's pose of the right class and its teacher's.
        augmentation: see `capsnet.data.Augmentation`.
        pen_share: part of each epoch that is pen digits drawn by `capsnet.pens`, chosen anew every time.
        pen_pool: how many pen digits are drawn to choose from.
        stop_at_length: stop early once the mean length of the correct capsule on the validation images reaches this.
        precision: "auto" is bf16 where the hardware multiplies it, else fp32.
        compile: compile the step with torch.compile.
        seed: of the starting weights, the order of the images and their augmentation.
        max_batches: stop each epoch after so many batches (to try things out); 0 is all.
    """

    model: str = "capsnet"
    projection: int = 0
    part_capsules: int = 0
    dataset: str = MNIST
    input_size: int = 28
    pad: int = 0
    drawings: bool = False
    start: str = ""
    teacher: str = ""
    epochs: int = 30
    batch_size: int = 128
    learning_rate: float = 2e-3
    warm_up: float = 0.5
    clip: float = 1.0
    reconstruction_weight: float = 0.002
    loss: str = "margin"
    m_plus: float = 0.9
    m_minus: float = 0.1
    down_weight: float = 0.5
    soft_weight: float = 0.0
    temperature: float = 1.0
    pose_weight: float = 0.0
    augmentation: Augmentation = field(default_factory=Augmentation)
    pen_share: float = 0.15
    pen_pool: int = 20_000
    stop_at_length: float = 1.0
    precision: str = "auto"
    compile: bool = False
    max_batches: int = 0
    seed: int = 0

    @property
    def kind(self) -> str:
        """What the model reads, see `capsnet.recognizer.ModelInfo`."""
        return CONFIGS.get(self.model, {}).get("kind", "digit")

    @property
    def taught(self) -> bool:
        """Whether the model learns from a teacher."""
        return "teacher" in CONFIGS.get(self.model, {})

    def check(self) -> None:
        """Raises ValueError for values that cannot work."""
        if self.model not in CONFIGS:
            raise ValueError(f"model is {self.model!r}; choose one of {', '.join(CONFIGS)}")
        if self.loss not in LOSSES:
            raise ValueError(f"loss is {self.loss!r}; choose one of {', '.join(LOSSES)}")
        fits = {"baseline": ["cross-entropy"], "pair": ["margin"]}.get(self.kind, ["margin", "spread"])
        fits = ["margin"] if self.taught else fits
        if self.loss not in fits:
            raise ValueError(f"loss is {self.loss!r}; {self.model} is trained with {' or '.join(fits)}")
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("learning_rate", "clip", "temperature"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
        if (self.kind == "baseline" or self.taught) and (self.projection or self.part_capsules):
            raise ValueError(f"{self.model} has no capsules; leave projection and part_capsules at 0")
        if self.taught and not self.teacher:
            raise ValueError(f"teacher is missing; {self.model} learns from a trained capsule network, name one")
        untaught = (self.teacher, self.soft_weight, self.temperature, self.pose_weight) == ("", 0, 1, 0)
        if not self.taught and not untaught:
            raise ValueError(
                f"{self.model} has no teacher; leave out teacher, soft_weight, temperature and pose_weight"
            )
        if self.kind == "pair" and self.pad:
            raise ValueError(f"pad is {self.pad}; {self.model} lays its pictures on a sheet of its own, leave pad at 0")
        if self.pad > MOST_PAD:
            raise ValueError(f"pad is {self.pad}; it must be at most {MOST_PAD} pixels")
        sizes = ("pad", "projection", "part_capsules", "max_batches", "pen_pool", "seed")
        weights = ("reconstruction_weight", "down_weight", "soft_weight", "pose_weight")
        for name in ("warm_up", *weights, *sizes):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must not be negative")
        for name in ("m_plus", "m_minus", "stop_at_length"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it is a length from 0 to 1")
        if not 0 <= self.pen_share < 1:
            raise ValueError(f"pen_share is {self.pen_share}; it must be at least 0 and below 1")
        if self.m_minus > self.m_plus:
            raise ValueError(f"m_minus is {self.m_minus}; it must not be above m_plus, {self.m_plus}")
        if self.input_size < 8:
            raise ValueError(f"input_size is {self.input_size}; it must be at least 8")
        if named := SOURCES.get(self.dataset):
            if self.input_size != 28:
                raise ValueError(f"input_size is {self.input_size}; {named.title}'s images have 28 pixels a side")
            if self.drawings:
                form = f"{named.title}'s images are in that form already"
                raise ValueError(f"drawings is for the pictures of a folder; {form}")
        if self.seed >= 2**32:
            raise ValueError(f"seed is {self.seed}; it must be below {2**32}")
        self.augmentation.check()


# The networks that differ in routing alone are trained alike.
_ALIKE = {"epochs": 10, "learning_rate": 3e-3, "reconstruction_weight": 0.0005}
_ROUTINGS = ("dynamic", "uniform", "affine", "attention", "multi-head", "orth", "windowed")

# Few parameters take longer and bear stronger bending.
_EFFICIENT = {
    "epochs": 50,
    "warm_up": 1.0,
    "reconstruction_weight": 0.0005,
    "pen_share": 0.1,
    "rotation": 15.0,
    "scale": 0.15,
    "shear": 0.15,
    "elastic": 0.6,
}

# Clothes are less alike within a class than digits.
BY_DATASET: dict[str, dict[str, Any]] = {"fashion-mnist": {"m_plus": 0.88, "m_minus": 0.09}}

# What the training of a model changes of the defaults, which are those of "capsnet".
RECIPES: dict[str, dict[str, Any]] = {
    "efficient-capsnet": _EFFICIENT,
    # Its twin; without a decoder there is nothing to weigh, but what it says of the twin stays the same.
    "cnn": {**_EFFICIENT, "loss": "cross-entropy"},
    **{f"{routing}-capsnet": _ALIKE for routing in _ROUTINGS},
    # The place on the sheet is the shift, and each digit meets a new partner every time: little bending is needed. More
    # are sharp, since a pair is as sharp as both of its digits.
    "multi-capsnet": {
        "epochs": 85,
        "learning_rate": 3e-3,
        "warm_up": 1.0,
        "reconstruction_weight": 0.0005,
        "pen_share": 0.05,
        "rotation": 5.0,
        "scale": 0.04,
        "shift": 0.0,
        "shear": 0.04,
        "elastic": 0.2,
        "thickness": 0.15,
        "sharp": 0.8,
    },
    # Labels are learned soon, and poses as near to the teacher's as its decoder needs are not: they count more.
    "student": {
        "teacher": CONFIGS["student"]["teacher"],
        "epochs": 20,
        "learning_rate": 3e-3,
        "warm_up": 1.0,
        "reconstruction_weight": 0.05,
        "soft_weight": 0.2,
        "temperature": 2.0,
        "pose_weight": 5.0,
    },
    # Hinton, Sabour, Frosst 2018 and the authors' code: spread loss, Adam at 0.003 as the others have it here.
    "em-capsnet": {**_ALIKE, "loss": "spread"},
}


def recipe(model: str = TrainingConfig.model, **changes: Any) -> TrainingConfig:
    """The configuration with which the named model is trained, with some settings changed.

    Args:
        changes: settings by name, those of `Augmentation` too.
    Raises:
        TypeError: there is no such setting.
    """
    # Pens draw digits in MNIST's form: they are for MNIST unless somebody asks for them.
    dataset = changes.get("dataset", MNIST)
    pens = {} if dataset == MNIST else {"pen_share": 0.0}
    usual = {**RECIPES.get(model, {}), **pens, **BY_DATASET.get(dataset, {})}
    if pad := changes.get("pad"):
        usual |= {**dict.fromkeys(vars(Augmentation()), 0.0), "shift": float(pad), "sharp": 1.0, "pen_share": 0.0}
    return changed(TrainingConfig(model=model), **{**usual, **changes})


def changed(config: TrainingConfig, **changes: Any) -> TrainingConfig:
    """The configuration with some settings changed; arguments and errors as for `recipe`."""
    bends = {f.name: changes.pop(f.name) for f in fields(Augmentation) if f.name in changes}
    return replace(config, **{"augmentation": replace(config.augmentation, **bends), **changes})


def read_config(path: str | Path) -> TrainingConfig:
    """The configuration in a training.json; settings that are not in it have their usual values.

    Raises:
        ModelError: the file is missing or not JSON.
        ValueError: it has settings that there are not, or of another type.
    """
    values = read_json(Path(path))
    return _typed(TrainingConfig, values, path)


def _typed(owner: type, values: Any, path: str | Path) -> Any:
    usual = owner()
    if not isinstance(values, dict):
        raise ValueError(f"{path} is no configuration of a training; name the training.json of a result folder")
    unknown = [name for name in values if name not in vars(usual)]
    if unknown:
        raise ValueError(f"{path} has settings that this version does not know: {', '.join(unknown)}; remove them")
    found = {}
    for name, value in values.items():
        kind = type(getattr(usual, name))
        if kind is Augmentation:
            value = _typed(Augmentation, value, path)
        elif kind is float and type(value) is int:
            value = float(value)
        elif type(value) is not kind:
            raise ValueError(f"{name} in {path} is {value!r}; it must be of type {kind.__name__}")
        found[name] = value
    return owner(**found)


OPTIONS = {"start": "from"}  # settings whose option on the command line has another name


def command(config: TrainingConfig) -> str:
    """The command line that trains with this configuration."""

    def flat(settings: TrainingConfig) -> dict[str, Any]:
        values = asdict(settings)
        return values.pop("augmentation") | values

    given, usual = flat(config), flat(recipe(config.model, pad=config.pad)) | {"pad": 0}
    changed = {name: value for name, value in given.items() if value != usual.get(name)}
    options = ""
    for name, value in changed.items():
        options += f" --{OPTIONS.get(name, name).replace('_', '-')}"
        options += "" if value is True else f" {shlex.quote(str(value))}"
    return f"python train/train_mnist.py --model {config.model}{options}"
