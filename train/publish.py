"""Stage what a Hugging Face Space needs, check it, and upload it.

python train/publish.py --space user/name              # create the Space where there is none, and upload
python train/publish.py --space user/name --dry-run    # list what would go, and check it
python train/publish.py --stage FOLDER                 # only put it into a folder, where `python app.py` starts it

Signs in as `hf auth login` has, or with HF_TOKEN.
"""

import argparse
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from huggingface_hub import HfApi, metadata_load  # noqa: E402

from capsnet.command_line import Parser  # noqa: E402

TOP = ("app.py", "README.md", "LICENSE", "requirements.txt")
PARTS = {"capsnet": ("**/*.*",), "weights": ("*/config.json", "*/model.safetensors", "*/poses.json", "*/README.md")}
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
MOST = 1_000_000_000  # bytes that a free Space may hold


def files() -> list[Path]:
    """What goes into the Space, relative to the repository: the page, the package, the weights with their cards."""
    found = {ROOT / name for name in TOP}
    for folder, patterns in PARTS.items():
        found |= {path for pattern in patterns for path in (ROOT / folder).glob(pattern) if path.is_file()}
    return sorted(path.relative_to(ROOT) for path in found if "__pycache__" not in path.parts)


def stage(folder: Path) -> None:
    """Copy them into an empty folder."""
    for path in files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, folder / path)


def problems(folder: Path) -> list[str]:
    """What keeps a staged folder from being a Space, one sentence each."""
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    front = metadata_load(folder / "README.md") or {}
    lines = (line.split("#")[0].strip() for line in (folder / "requirements.txt").read_text().splitlines())
    needed = {need.name: need for need in map(Requirement, filter(None, lines))}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = []

    def expect(right: bool, sentence: str) -> None:
        if not right:
            found.append(sentence)

    expect(front.get("sdk") == "gradio", "README.md: sdk must be gradio.")
    expect(bool(front.get("title")) and bool(front.get("emoji")), "README.md: title and emoji are missing.")
    for key in ("colorFrom", "colorTo"):
        expect(front.get(key) in COLOURS, f"README.md: {key} must be one of {', '.join(sorted(COLOURS))}.")
    expect(len(front.get("short_description", "")) <= 60, "README.md: short_description is longer than 60 characters.")
    expect((folder / str(front.get("app_file"))).is_file(), "README.md: app_file names no file of the Space.")
    pinned = str(needed["gradio"].specifier) if "gradio" in needed else "nothing"
    version = front.get("sdk_version")
    expect(pinned == f"=={version}", f"sdk_version is {version}, but requirements.txt asks for gradio {pinned}.")
    python = str(front.get("python_version"))
    asked = project["requires-python"]
    expect(python in SpecifierSet(asked), f"python_version is {python}, but pyproject.toml asks for {asked}.")
    for need in map(Requirement, project["dependencies"]):
        theirs = needed.get(need.name)
        expect(
            theirs is not None and theirs.specifier == need.specifier,
            f"requirements.txt and pyproject.toml ask for different versions of {need.name}.",
        )
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    expect(size <= MOST, f"The Space has {size / 1e6:.0f} MB: {MOST / 1e6:.0f} are allowed.")
    expect(Version(str(version)).major >= 6, "The page needs Gradio 6.")
    return found


def main() -> None:
    parser = Parser(prog="publish.py", description="Stage, check and upload a Hugging Face Space.")
    parser.add_argument("--space", metavar="USER/NAME", help="the Space; it is made where there is none")
    parser.add_argument("--private", action="store_true", help="make it private, where it is made")
    parser.add_argument("--dry-run", action="store_true", help="list and check what would go; upload nothing")
    parser.add_argument("--stage", type=Path, metavar="FOLDER", help="put it into this new folder; upload nothing")
    options = parser.parse_args()
    if bool(options.space) == bool(options.stage):
        parser.error("name either a --space or a folder to --stage in")
    if options.stage and options.stage.exists() and any(options.stage.iterdir()):
        parser.error(f"{options.stage} is not empty: name a new folder")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.stage or Path(temporary)
        stage(folder)
        total = 0
        for path in files():
            size = (folder / path).stat().st_size
            total += size
            print(f"{size:>12,}  {path.as_posix()}")
        print(f"{total:>12,}  bytes in {len(files())} files")
        for sentence in (wrong := problems(folder)):
            print(sentence, file=sys.stderr)
        if wrong:
            sys.exit(1)
        if options.space and not options.dry_run:
            print(f"https://huggingface.co/spaces/{upload(folder, options.space, options.private, parser)}")


def upload(folder: Path, space: str, private: bool, parser: argparse.ArgumentParser) -> str:
    """Make the Space what the folder is; files that are there from before go."""
    api = HfApi()
    try:
        api.create_repo(space, repo_type="space", space_sdk="gradio", private=private, exist_ok=True)
        api.upload_folder(repo_id=space, repo_type="space", folder_path=folder, delete_patterns="*")
    except Exception as error:
        cause = str(error).strip().split("\n")[0]
        parser.error(f"{space} could not be uploaded ({cause}): check the name, the network and `hf auth login`")
    return space


if __name__ == "__main__":
    main()
