"""Models on the Hub: against a stand-in that speaks its HTTP interface, in a process that knows no other."""

import json
import os
import pickle
import socket
import subprocess
import sys
import time
from pathlib import Path

import hub
import pytest

import capsnet
from capsnet.checkpoint import save_model, write_json
from capsnet.hub import ALL, LARGEST, PATIENCE

ROOT = Path(__file__).resolve().parents[1]
# Calls, one a line, of what stands in the arguments; prints what each returns or the error it raises.
PROGRAM = """
import json, sys, time
import capsnet
from capsnet.checkpoint import push_to_hub

def load(name, revision=None):
    model = capsnet.load_model(name, revision=revision)
    return [model.info.name, float(next(model.parameters()).flatten()[0]), model.pose_effects is not None]

def push(folder, repo):
    return push_to_hub(folder, repo)

for call in json.loads(sys.argv[1]):
    start = time.monotonic()
    try:
        said = {"load": load, "push": push}[call[0]](*call[1:])
    except capsnet.ModelError as error:
        said = "ModelError: " + str(error)
    print(json.dumps([said, time.monotonic() - start]))
"""


def run(home: Path, endpoint: str, *calls, token: str = "hf_test") -> list:
    """[what a call returned or raised, seconds] for every call, in one process with that Hub and that cache."""
    others = {key: value for key, value in os.environ.items() if "PROXY" not in key.upper()}
    environment = {**others, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_TOKEN": token}
    environment |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-c", PROGRAM, json.dumps(calls)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def folder(small, tmp_path):
    """A small trained model's folder, with a card and something that is no part of a model."""
    model = capsnet.create_model("small")
    next(model.parameters()).data.fill_(0.5)
    save_model(model, tmp_path / "mine")
    (tmp_path / "mine" / "README.md").write_text("---\nlicense: mit\n---\n# Mine\n")
    (tmp_path / "mine" / "checkpoint.safetensors").write_bytes(b"not for others")
    return tmp_path / "mine"


def test_pushed_is_what_is_loaded(folder, tmp_path):
    with hub.serve() as there:
        found = run(tmp_path / "home", there.url, ("push", str(folder), "someone/mine"), ("load", "someone/mine"))
        (commit, _), (loaded, _) = found
        assert loaded == ["small", 0.5, False]
        (only,) = there.repositories["someone/mine"]
        assert only[0] == commit and set(only[1]) == {"README.md", "config.json", "model.safetensors"}
        # Another is pushed: the branch moves, a pinned revision does not.
        model = capsnet.load_model(folder)
        next(model.parameters()).data.fill_(-2)
        save_model(model, folder)
        calls = ("push", str(folder), "someone/mine"), ("load", "someone/mine"), ("load", "someone/mine", commit)
        found = run(tmp_path / "home", there.url, *calls, ("load", "someone/mine", "no-such-branch"))
        assert [one[0] for one in found[1:3]] == [["small", -2.0, False], ["small", 0.5, False]]
        assert "'someone/mine' is no folder here" in found[3][0]
        # What is measured of poses goes along.
        found = run(tmp_path / "home", there.url, ("push", "affine-capsnet", "a/b"), ("load", "a/b"))
        assert found[1][0][0] == "affine-capsnet" and found[1][0][2]
        assert set(there.repositories["a/b"][0][1]) == set(ALL)
    # The Hub is gone: the cache answers, soon.
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes a connection and never answers
        nowhere = f"http://127.0.0.1:{silent.getsockname()[1]}"
        calls = ("load", "someone/mine"), ("load", "someone/mine", commit), ("load", "someone/other")
        found = run(tmp_path / "home", nowhere, *calls)
    assert [one[0] for one in found[:2]] == [["small", -2.0, False], ["small", 0.5, False]]
    assert "'someone/other' is not in the cache, and the Hugging Face Hub cannot be reached;" in found[2][0]
    assert all(seconds < PATIENCE + 5 for _, seconds in found)


def test_what_is_wrong_on_the_hub_is_one_sentence(folder, tmp_path):
    whole = (folder / "model.safetensors").read_bytes()
    config = (folder / "config.json").read_bytes()
    huge = json.dumps({**json.loads(config), "trunk_options": {"channels": 10**7}}).encode()
    spoilt = {
        "someone/cut": ({"model.safetensors": whole[:-100], "config.json": config}, "not a whole safetensors file"),
        "someone/pickled": ({"model.safetensors": pickle.dumps({}), "config.json": config}, "not a whole safetensors"),
        "someone/old": ({"pytorch_model.bin": pickle.dumps({}), "config.json": config}, "did not give it"),
        "someone/huge": ({"model.safetensors": whole, "config.json": huge}, "do not fit together"),
        "someone/long": ({"model.safetensors": whole, "config.json": b" " * (LARGEST["config.json"] + 1)}, "too many"),
        "someone/deep": ({"model.safetensors": whole, "config.json": b"[" * 100_000}, "cannot be read as JSON"),
        "someone/list": ({"model.safetensors": whole, "config.json": b"[]"}, "does not describe a model"),
        "someone/html": ({"model.safetensors": b"<html>", "config.json": b"<html>"}, "cannot be read as JSON"),
        "someone/empty": ({}, "did not give it"),
    }
    with hub.serve() as there:
        for repo, (files, _) in spoilt.items():
            there.commit(repo, files)
        calls = [("load", repo) for repo in [*spoilt, "someone/nobody"]]
        *found, nobody = (said for said, _ in run(tmp_path / "home", there.url, *calls))
        ((pushed, _),) = run(tmp_path / "home", there.url, ("push", str(folder), "someone/mine"), token="hf_wrong")
    for sentence, (_, part) in zip(found, spoilt.values(), strict=True):
        assert sentence.startswith("ModelError: ") and part in sentence and "\n" not in sentence, sentence
    assert "'someone/nobody' is no folder here" in nobody
    assert "could not be put on the Hugging Face Hub" in pushed and "hf auth login" in pushed and "\n" not in pushed


def test_only_what_loads_is_pushed(folder):
    (folder / "model.safetensors").write_bytes(b"")
    start = time.monotonic()
    with pytest.raises(capsnet.ModelError, match="not a whole safetensors file"):
        capsnet.push_to_hub(folder, "someone/mine")
    write_json(folder / "config.json", [])
    with pytest.raises(capsnet.ModelError, match="does not describe a model"):
        capsnet.push_to_hub(folder, "someone/mine")
    assert time.monotonic() - start < 10  # the Hub was not asked
