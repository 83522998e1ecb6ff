import json
import os
import shutil

import pytest
import torch

import capsnet
from capsnet import checkpoint, hub
from capsnet.checkpoint import (
    ModelError,
    available_models,
    load_model,
    read_json,
    read_tensors,
    save_model,
    write_atomically,
    write_json,
    write_tensors,
)
from capsnet.models import create_model


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "WEIGHTS", tmp_path / "weights")
    return tmp_path / "weights"


@pytest.fixture
def model(small):
    torch.manual_seed(0)
    model = create_model("small")
    model.pose_range.copy_(torch.randn(2, 10, 16))
    return model


def refusal(name, **options):
    """The one sentence with which `load_model` refuses."""
    with pytest.raises(ModelError) as error:
        load_model(name, **options)
    message = str(error.value)
    assert "\n" not in message and message.endswith(".") and len(message) < 400, message
    return message


# Round trip


def test_a_saved_model_comes_back_in_half_precision(model, weights):
    save_model(model, weights / "mine")
    again = load_model("mine")
    assert again.info == model.info and again.config == model.config
    for name, tensor in again.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, model.state_dict()[name].half().float()), name
    assert not again.training and not any(p.requires_grad for p in again.parameters())


def test_saving_again_changes_nothing(model, weights):
    save_model(model, weights / "a")
    save_model(load_model("a"), weights / "b")
    for name in ("model.safetensors", "config.json"):
        assert (weights / "a" / name).read_bytes() == (weights / "b" / name).read_bytes()
    x = torch.rand(3, 1, 28, 28)
    assert torch.equal(load_model("a")(x).poses, load_model("b")(x).poses)


def test_two_bytes_a_number(model, weights):
    save_model(model, weights / "mine")
    numbers = sum(t.numel() for t in model.state_dict().values())
    assert 2 * numbers < (weights / "mine" / "model.safetensors").stat().st_size < 2 * numbers + 4000


def test_a_model_on_another_device_and_in_bf16_is_saved_all_the_same(model, weights):
    save_model(model.bfloat16().to(memory_format=torch.channels_last), weights / "mine")
    assert load_model("mine").trunk.conv.weight.dtype == torch.float32


def test_names_folders_and_paths(model, weights, tmp_path, monkeypatch):
    save_model(model, weights / "mine")
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "weights/mine", weights / "mine", str(weights / "mine")):
        assert load_model(name).info.name == "small"


def test_tensors_and_their_note(tmp_path):
    tensors = {"a": torch.arange(6).view(2, 3).T, "b": torch.tensor(1.5)}
    write_tensors(tmp_path / "x", tensors, {"epoch": 3, "of": [1.5, None, "ß"]})
    again, note = read_tensors(tmp_path / "x")
    assert again.keys() == tensors.keys() and all(torch.equal(again[k], tensors[k]) for k in tensors)
    assert note == {"epoch": 3, "of": [1.5, None, "ß"]}
    write_tensors(tmp_path / "x", tensors)
    assert read_tensors(tmp_path / "x")[1] is None


def test_json(tmp_path):
    write_json(tmp_path / "new" / "x.json", {"ß": [1, 2.5, None]})
    assert read_json(tmp_path / "new" / "x.json") == {"ß": [1, 2.5, None]}


# Atomic writing


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_while_writing_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="disk full"):
            write_atomically(path, b"new")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["file"]


def test_a_model_is_never_half_written(model, weights, monkeypatch):
    save_model(model, weights / "mine")
    with torch.no_grad():
        model.trunk.conv.bias.add_(1)
    monkeypatch.setattr(os, "fsync", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_model(model, weights / "mine")
    assert (load_model("mine").trunk.conv.bias < 0.9).all()


# Damaged files


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def replace_by_directory(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "is not a whole safetensors file"),
        (lambda path: path.write_bytes(path.read_bytes()[:20]), "is not a whole safetensors file"),
        (lambda path: path.write_bytes(b""), "is not a whole safetensors file"),
        (lambda path: path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n" * 3), "is not a whole"),
        (lambda path: path.write_text('{"weights": [1, 2, 3]}'), "is not a whole safetensors file"),
        (lambda path: path.unlink(), "is missing"),
        (replace_by_directory, "is not a whole safetensors file"),
    ],
    ids=["cut", "header cut", "empty", "foreign", "json", "missing", "directory"],
)
def test_damaged_weights(model, weights, spoil, says):
    save_model(model, weights / "mine")
    spoil(weights / "mine" / "model.safetensors")
    message = refusal("mine")
    assert str(weights / "mine" / "model.safetensors") in message and says in message


@pytest.mark.parametrize("new_format", [True, False])
def test_pickles_are_refused_and_not_opened(model, weights, tmp_path, new_format):
    save_model(model, weights / "mine")
    pickled = {**model.state_dict(), "bomb": Bomb(tmp_path / "exploded")}
    torch.save(pickled, weights / "mine" / "model.safetensors", _use_new_zipfile_serialization=new_format)
    assert "is not a whole safetensors file" in refusal("mine")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"pose_size": 8},
        {"primary_options": {"types": 3}},
        {"routing_options": {"bias": False}},
        {"class_names": ["a", "b"]},
    ],
    ids=str,
)
def test_weights_and_configuration_of_different_models(model, weights, change):
    save_model(model, weights / "mine")
    write_json(weights / "mine" / "config.json", {**model.config, **change})
    assert "do not fit together" in refusal("mine")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{", "cannot be read as JSON"),
        ("\x00\xff", "cannot be read as JSON"),
        ("", "cannot be read as JSON"),
        ("[1, 2]", "does not describe a model"),
        ("null", "does not describe a model"),
        ('{"layers": 3}', "does not describe a model"),
        ('{"in_channels": 7}', "does not describe a model"),
        ('{"in_channels": "one"}', "does not describe a model"),
        ('{"trunk": "oak"}', "does not describe a model"),
        ('{"trunk_options": {"channels": "many"}}', "does not describe a model"),
        ('{"trunk_options": {"channels": -4}}', "does not describe a model"),
        ('{"trunk_options": {"kernel": 0}}', "does not describe a model"),
        ('{"primary_options": {"types": null, "dim": 0.5}}', "does not describe a model"),
        ('{"pose_size": -1}', "does not describe a model"),
        ('{"routing": "telepathy"}', "does not describe a model"),
        ('{"routing": ["dynamic"]}', "does not describe a model"),
        ('{"routing_options": {"iterations": 0}}', "does not describe a model"),
        ('{"routing_options": "fast"}', "does not describe a model"),
        ('{"decoder_hidden": [1]}', "does not describe a model"),
        ('{"class_names": 10}', "does not describe a model"),
    ],
)
def test_damaged_configuration(model, weights, config, says):
    save_model(model, weights / "mine")
    (weights / "mine" / "config.json").write_text(config, encoding="latin-1")
    message = refusal("mine")
    assert str(weights / "mine" / "config.json") in message and says in message


# Names


def test_unknown_name(model, weights):
    assert "clone of the repository" in refusal("nothing")
    save_model(model, weights / "mine")
    save_model(model, weights / "other")
    assert "there is no model 'nothing'; choose mine, other, a folder" in refusal("nothing")


def test_a_folder_without_a_model(tmp_path):
    assert f"the folder {tmp_path} holds no config.json" in refusal(tmp_path)


def test_available_models(model, weights):
    assert available_models() == []
    for name, kind in [("b", "digit"), ("a", "digit"), ("two", "pair"), ("plain", "baseline")]:
        save_model(model, weights / name)
        write_json(weights / name / "config.json", {**model.config, "kind": kind})
    shutil.copytree(weights / "a", weights / "unfinished")
    (weights / "unfinished" / "model.safetensors").unlink()
    (weights / "empty").mkdir()
    assert available_models() == ["a", "b"]
    assert available_models("pair") == ["two"] and available_models(kind="baseline") == ["plain"]
    assert available_models(None) == ["a", "b", "plain", "two"]


def test_public_face():
    assert capsnet.load_model is load_model and capsnet.available_models is available_models
    assert capsnet.ModelError is ModelError and capsnet.create_model is create_model


def poses_of(model, **direction):
    effect = {"names": ["slant"], "changes": {"slant": 0.3}, "strength": 1.2}
    vector = [0.1] * model.info.pose_size
    direction = {
        "change": vector,
        "slope": vector,
        "offset": 0.5,
        "low": -1.0,
        "high": 1.0,
        "gain": 1,
        "leak": 0,
        **direction,
    }
    names = model.info.class_names
    return {
        "effects": {name: [effect] * model.info.pose_size for name in names},
        "directions": {name: {"slant": direction} if name in names[:2] else {} for name in names},
    }


def test_what_poses_do_comes_with_the_weights(model, weights):
    save_model(model, weights / "mine")
    assert load_model("mine").pose_effects is load_model("mine").pose_directions is None
    write_json(weights / "mine" / "poses.json", poses_of(model))
    assert load_model("mine").pose_effects == poses_of(model)["effects"]
    assert load_model("mine").pose_directions == poses_of(model)["directions"]


def test_other_weights_do_not_keep_what_poses_did(model, weights):
    save_model(model, weights / "mine")
    write_json(weights / "mine" / "poses.json", poses_of(model))
    save_model(model, weights / "mine")
    assert load_model("mine").pose_effects is None


SPOILT = {
    "few": {name: [] for name in "0123456789"},
    "unknown": {name: [{"names": ["charm"], "changes": {"charm": 1}}] * 16 for name in "0123456789"},
    "no numbers": {name: [{"names": ["slant"], "changes": {"slant": "much"}}] * 16 for name in "0123456789"},
    "not all": {"0": [{"names": [], "changes": {}}] * 16},
    "no list": {name: None for name in "0123456789"},
}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda poses, model: [],
        lambda poses, model: None,
        lambda poses, model: {},
        lambda poses, model: poses["effects"],
        *(lambda poses, model, name=name: {**poses, "effects": SPOILT[name]} for name in SPOILT),
        lambda poses, model: {**poses, "directions": {name: [] for name in "0123456789"}},
        lambda poses, model: {**poses, "directions": {name: {"charm": {}} for name in "0123456789"}},
        lambda poses, model: poses_of(model, change=[0.1] * 3),
        lambda poses, model: poses_of(model, slope=["much"] * 16),
        lambda poses, model: poses_of(model, low=None),
        lambda poses, model: poses_of(model, gain=10**400),
    ],
)
def test_poses_json_that_does_not_fit(model, weights, spoil):
    save_model(model, weights / "mine")
    write_json(weights / "mine" / "poses.json", spoil(poses_of(model), model))
    assert "poses.json does not fit the model; remove it" in refusal("mine")


# The Hub


def test_a_folder_goes_before_the_hub(model, weights, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "download", lambda *_: pytest.fail("asked the Hub"))
    save_model(model, tmp_path / "some" / "one")
    monkeypatch.chdir(tmp_path)
    assert load_model("some/one").info.name == "small"
    assert "there is no model 'a/b/c'" in refusal("a/b/c")


def test_config_json_is_readable(model, weights):
    save_model(model, weights / "mine")
    config = json.loads((weights / "mine" / "config.json").read_text())
    assert config["name"] == "small" and config["trunk_options"] == {"channels": 16} and config["input_size"] == 28


@pytest.mark.parametrize("name", ["", "x" * 3000, "a\0b"])
def test_names_that_no_path_can_have(name):
    with pytest.raises(ModelError, match="there is no model"):
        load_model(name)
