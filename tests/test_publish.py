"""The Space: what goes into it, whether that alone starts without a network, and how it gets there."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import hub
import psutil
import pytest
from server_side import rendering

import capsnet

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "train"))

import publish  # noqa: E402

SEVEN = [[[60, 50], [210, 50], [160, 150], [125, 240]]]
MEMORY = 2e9  # bytes that the page may take with every network loaded


def command(*options, **environment):
    env = {key: value for key, value in os.environ.items() if "PROXY" not in key.upper()} | environment
    program = [sys.executable, "train/publish.py", *options]
    return subprocess.run(program, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def staged(tmp_path):
    publish.stage(tmp_path / "space")
    return tmp_path / "space"


def test_the_repository_is_a_space(staged):
    assert publish.problems(staged) == []
    names = {path.as_posix() for path in publish.files()}
    assert {"app.py", "requirements.txt", "capsnet/demo/page.css", "weights/capsnet/model.safetensors"} <= names
    assert not [name for name in names if name.startswith(("tests/", "train/", ".")) or "__pycache__" in name]
    assert {str(path.relative_to(staged)) for path in staged.rglob("*") if path.is_file()} == names


@pytest.mark.parametrize(
    "file, old, new, part",
    [
        ("README.md", "sdk_version: 6.31.0", "sdk_version: 6.30.0", "sdk_version is 6.30.0"),
        ("README.md", 'python_version: "3.12"', 'python_version: "3.10"', "asks for >=3.11"),
        ("README.md", "colorTo: pink", "colorTo: rose", "colorTo"),
        ("README.md", "app_file: app.py", "app_file: main.py", "app_file"),
        ("README.md", "short_description: ", "short_description: " + "very " * 9, "60 characters"),
        ("README.md", "sdk: gradio", "sdk: docker", "sdk must be gradio"),
        ("requirements.txt", "torch>=2.6", "torch>=2.9", "different versions of torch"),
        ("requirements.txt", "numpy>=2.0", "", "different versions of numpy"),
        ("requirements.txt", "gradio==6.31.0", "gradio>=6", "asks for gradio >=6"),
    ],
)
def test_what_does_not_fit_together_is_said(staged, file, old, new, part):
    text = (staged / file).read_text(encoding="utf-8")
    assert old in text
    (staged / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    (sentence,) = publish.problems(staged)
    assert part in sentence and sentence.endswith(".")


def test_a_dry_run_lists_and_uploads_nothing(monkeypatch, capsys):
    monkeypatch.setattr(publish, "HfApi", lambda: pytest.fail("asked the Hub"))
    monkeypatch.setattr(sys, "argv", ["publish.py", "--space", "someone/page", "--dry-run"])
    publish.main()
    *listed, total = capsys.readouterr().out.splitlines()
    sizes = {name: int(size.replace(",", "")) for size, name in (line.split() for line in listed)}
    assert sizes["weights/capsnet/model.safetensors"] == (ROOT / "weights/capsnet/model.safetensors").stat().st_size
    assert total.split()[0] == f"{sum(sizes.values()):,}"


def test_it_is_uploaded_and_old_files_go(staged, tmp_path):
    with hub.serve() as there:
        there.commit("someone/page", {"old.py": b"", "app.py": b"another"})
        environment = {"HF_ENDPOINT": there.url, "HF_HOME": str(tmp_path / "home")}
        done = command("--space", "someone/page", HF_TOKEN="hf_test", **environment)
        assert done.returncode == 0, done.stderr
        (_, files) = there.files("someone/page", "main")
        refused = command("--space", "someone/page", HF_TOKEN="hf_wrong", **environment)
    assert files == {path.as_posix(): (ROOT / path).read_bytes() for path in publish.files()}
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "hf auth login" in refused.stderr


@pytest.mark.parametrize("options", [[], ["--space", "a/b", "--stage", "x"], ["--stage", "capsnet"], ["--colour"]])
def test_wrong_options_are_one_line(options, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["publish.py", *options])
    with pytest.raises(SystemExit) as ended:
        publish.main()
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == "" and said.err.count("\n") == 1


@pytest.mark.parametrize("server_side", [True, False])  # rendering, which a Space turns on
def test_the_staged_folder_alone_starts_without_network(staged, tmp_path, server_side):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    nowhere = "http://127.0.0.1:1"
    environment = {key: value for key, value in os.environ.items() if "PROXY" not in key.upper()}
    environment |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_ENDPOINT"), nowhere)
    environment |= {"NO_PROXY": "127.0.0.1,localhost", "HOME": str(tmp_path), **rendering(server_side)}
    environment |= {"PYTHONSAFEPATH": "", "PYTHONPATH": ""}
    program = [sys.executable, "app.py", "--port", port]
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(program, cwd=staged, env=environment, stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as http:
            for _ in range(600):
                try:
                    http.get("/gradio_api/startup-events")
                    break
                except httpx.TransportError:
                    assert process.poll() is None, (tmp_path / "log").read_text()
                    time.sleep(0.2)
            page = http.get("/")
            assert ("x-sveltekit-page" in page.headers) == server_side
            assert page.status_code == 200 and "https://fonts" not in page.text
            assert http.get("/config").json()["title"] == "Draw a digit, bend its pose"
            for name in capsnet.available_models():
                there = "/gradio_api/call/v2/recognize_strokes"
                event = http.post(there, json={"strokes": SEVEN, "model": name}).json()["event_id"]
                assert '"digit": 7' in http.get(f"{there}/{event}").text, name
        assert psutil.Process(process.pid).memory_info().rss < MEMORY
    finally:
        process.terminate()
        process.wait(60)
