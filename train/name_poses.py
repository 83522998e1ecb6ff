"""Find out what a model's pose numbers do, and what moves one property: `python train/name_poses.py --model capsnet`.

Writes poses.json beside the weights and two tables into the model card. The page takes from it the words beside the
sliders, and the sliders that move one property alone. Needs scikit-image (requirements-dev.txt).
"""

import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from capsnet.card import direction_table, pose_table, write_card  # noqa: E402
from capsnet.checkpoint import POSES, ModelError, find_model, load_model, write_json  # noqa: E402
from capsnet.command_line import Parser  # noqa: E402
from capsnet.data import DataError  # noqa: E402
from capsnet.pose import measure_poses  # noqa: E402
from capsnet.redrawer import Redrawer  # noqa: E402
from capsnet.sources import load_mnist  # noqa: E402


def main() -> int:
    parser = Parser(description="Find out what each number of a model's poses does.")
    parser.add_argument("--model", default="capsnet", help="a name in weights/ or a folder (default: capsnet)")
    parser.add_argument("--data-dir", default=str(ROOT / "data"), help="folder with MNIST; fetched when missing")
    parser.add_argument("--images", type=int, default=40, help="of each class, to take the mean over (default: 40)")
    options = parser.parse_args()
    if options.images < 1:
        parser.error(f"--images is {options.images}; it must be at least 1")
    try:
        folder = find_model(options.model)
        model = load_model(folder)
        if not isinstance(model, Redrawer):
            parser.error(f"{options.model} has no poses; choose a network with capsules, or a student of one")
        info = model.info
        if (info.class_names, info.in_channels, info.input_size) != (list("0123456789"), 1, 28):
            parser.error(f"{options.model} does not read digits of 28 by 28 grey pixels; poses are measured on MNIST")
        found = measure_poses(model, load_mnist(options.data_dir, train=True), options.images)
    except (DataError, ModelError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        parser.error(f"{error.name} is missing; install requirements-dev.txt")
    print(pose_table(found["effects"]), direction_table(found["directions"]), sep="\n\n")
    try:
        write_json(folder / POSES, found)
    except OSError as error:
        print(f"the tables are only printed: {error}", file=sys.stderr)
        return 1
    with suppress(ModelError):  # weights without the files of their training have no card
        write_card(folder, model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
