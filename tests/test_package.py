"""What holds for the repository as a whole."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import capsnet

ROOT = Path(__file__).resolve().parent.parent


def imported(modules: str, heavy: str) -> str:
    """Which of the heavy modules come along when the others are imported."""
    program = f"import sys, {modules}; print(sorted(set('{heavy}'.split()) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_capsnet_imports_nothing_heavy_besides_torch():
    modules = "capsnet, capsnet.training, capsnet.evaluation, capsnet.data, capsnet.pens, capsnet.pictures"
    assert imported(modules, "gradio torchvision huggingface_hub scipy") == "[]"
    assert imported("capsnet", "torch._dynamo") == "[]"  # the compiler: seconds at each start of the page


def test_public_face():
    public = {"available_models", "create_model", "load_model", "prepare_digit", "push_to_hub"}
    errors = {"EmptyDrawingError", "InvalidDrawingError", "ModelError"}
    assert public | errors == set(capsnet.__all__)
    assert all(callable(getattr(capsnet, name)) for name in capsnet.__all__)
    assert issubclass(capsnet.EmptyDrawingError, ValueError) and issubclass(capsnet.InvalidDrawingError, ValueError)


@pytest.fixture
def front_matter():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").split("\n")
    assert lines[0] == "---"
    pairs = (line.split(":", 1) for line in lines[1 : lines.index("---", 1)] if re.match(r"\w+:", line))
    return {key: value.strip().strip("'\"") for key, value in pairs}


def test_space_runs_the_pinned_gradio(front_matter):
    (pin,) = re.findall(r"^gradio==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert front_matter["sdk"] == "gradio" and front_matter["sdk_version"] == pin


def test_space_starts_the_page(front_matter):
    assert front_matter["python_version"] == "3.12"
    assert (ROOT / front_matter["app_file"]).name == "app.py" and (ROOT / front_matter["app_file"]).exists()


def test_weights_stay_small():
    files = [path for path in (ROOT / "weights").glob("*/*") if path.is_file()]
    sizes = [path.stat().st_size for path in files if not path.name.startswith("checkpoint")]
    assert max(sizes) < 20e6 and sum(sizes) < 45e6  # 3 MB are the decoder of capsnet that the student has, too


def test_extras_ask_for_what_the_requirements_files_ask_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *sum(project["optional-dependencies"].values(), [])]
    lines = "\n".join((ROOT / name).read_text() for name in ("requirements.txt", "requirements-dev.txt")).splitlines()
    asked = [line for line in lines if line and not line.startswith(("#", "-r"))]
    assert sorted(one for one in listed if not one.startswith("capsnet")) == sorted(asked)


def test_the_version_is_the_newest_in_the_list_of_changes():
    changes = (ROOT / ".github" / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\S+)$", changes, re.MULTILINE)
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert versions[0] == capsnet.__version__ and f"version: {capsnet.__version__}" in cited
