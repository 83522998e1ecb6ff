"""The command line of training, `python train/train_mnist.py`."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scripts import load_script
from test_training import interrupt

from capsnet import step
from capsnet.checkpoint import load_model, read_json
from capsnet.configuration import OPTIONS, RECIPES, TrainingConfig, command, read_config, recipe
from capsnet.data import Augmentation, DataError
from capsnet.models import CONFIGS
from capsnet.sources import SOURCES

SCRIPT = Path(__file__).resolve().parent.parent / "train" / "train_mnist.py"


@pytest.fixture
def script():
    return load_script("train_mnist")


@pytest.fixture
def main(script, small, digits, monkeypatch):
    """Runs the command on 40 digits in place of MNIST."""
    monkeypatch.setattr(script, "load_mnist", lambda *_, **__: digits)
    monkeypatch.setattr(script, "split_validation", lambda data: (data[:20], data[20:]))

    def main(*arguments):
        few = ("--model", "small", "--device", "cpu", "--pen-pool", "5", "--batch-size", "16")
        monkeypatch.setattr(sys, "argv", ["train_mnist.py", *few, *map(str, arguments)])
        return script.main()

    return main


def test_defaults_are_those_of_the_configuration(script):
    options, config = script.parse([])
    assert config == TrainingConfig()
    assert options.data_dir == str(SCRIPT.parent.parent / "data") and "out" not in vars(options) and not options.resume


@pytest.mark.parametrize(
    "config",
    [
        TrainingConfig(),
        TrainingConfig(model="capsnet-small", epochs=3, compile=True, learning_rate=2e-5, seed=7, max_batches=2),
        TrainingConfig(augmentation=Augmentation(shift=1.5, thickness=0.0), precision="fp32"),
        recipe("em-capsnet"),
        recipe("em-capsnet", epochs=2, loss="margin", shear=0.3),
        recipe("capsnet-small", dataset="my/letters", input_size=32, drawings=True, start="runs/other"),
    ],
    ids=str,
)
def test_command_of_the_card_gives_the_configuration(script, config):
    python, path, *arguments = shlex.split(command(config))
    assert (python, path) == ("python", "train/train_mnist.py")
    assert script.parse(arguments)[1] == config


def test_a_model_brings_its_recipe(script):
    config = script.parse(["--model", "em-capsnet"])[1]
    assert config == recipe("em-capsnet")
    assert config.loss == "spread" and command(config) == "python train/train_mnist.py --model em-capsnet"
    changed = script.parse("--model em-capsnet --loss margin --shift 1".split())[1]
    assert (changed.loss, changed.learning_rate, changed.augmentation.shift) == ("margin", config.learning_rate, 1)


def test_recipes(script, capsys):
    assert recipe() == TrainingConfig() and recipe("unknown to recipes") == TrainingConfig("unknown to recipes")
    for model in RECIPES:
        assert model in CONFIGS
        recipe(model).check()
    with pytest.raises(TypeError, match="colour"):
        recipe(colour="blue")
    with pytest.raises(SystemExit):
        script.parse(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "orth-capsnet, windowed-capsnet: epochs 10, learning-rate 0.003, reconstruction-weight 0.0005; " in text
    assert "0.0005, loss spread" in text


def test_options(script):
    options, config = script.parse(
        "--model capsnet-small --epochs 3 --learning-rate 0.01 --shift 1.5 --thickness 0 --m-plus 0.8 --compile "
        "--max-batches 7 --precision fp32 --seed 4 --out there --resume --device cpu --data-dir here".split()
    )
    assert config == TrainingConfig(
        model="capsnet-small",
        epochs=3,
        learning_rate=0.01,
        m_plus=0.8,
        compile=True,
        max_batches=7,
        precision="fp32",
        seed=4,
        augmentation=Augmentation(shift=1.5, thickness=0),
    )
    assert (options.out, options.resume, options.device, options.data_dir) == ("there", True, "cpu", "here")


@pytest.mark.parametrize(
    "arguments",
    [
        "--colour blue",
        "stray",
        "--epochs",
        "--epochs 0",
        "--epochs many",
        "--epochs 1.5",
        "--batch-size 0",
        "--learning-rate 0",
        "--learning-rate nan",
        "--clip -1",
        "--model capsule",
        "--precision fp8",
        "--pen-share 1",
        "--m-plus 2",
        "--m-plus 0.2 --m-minus 0.3",
        "--drawings",
        "--input-size 32",
        "--dataset somewhere --input-size 4",
        "--from nothing",
        "--config nothing.json",
        "--stop-at-length nan",
        "--seed -1",
        "--max-batches -1",
        "--checkpoint-minutes -1",
        "--checkpoint-minutes nan",
        "--shift -1",
        "--scale 1",
        "--elastic inf",
        "--device abacus",
        "--device cuda:77",
    ],
)
def test_a_mistake_is_one_line_and_status_2(script, arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        script.parse(arguments.split())
    error = capsys.readouterr().err
    assert stop.value.code == 2
    assert error.count("\n") == 1 and "--help" in error, error


def test_seeds_under_torchrun(script, monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit):
        script.parse(["--seeds", "2"])
    assert "use one of them" in capsys.readouterr().err


def test_help_lists_every_option(script, capsys):
    with pytest.raises(SystemExit) as stop:
        script.parse(["--help"])
    text = " ".join(capsys.readouterr().out.split())  # argparse wraps its lines
    assert stop.value.code == 0
    for name in ("--data-dir", "--out", "--resume", "--epochs", "--max-batches", "--precision", "--rotation", "--seed"):
        assert name in text


def test_a_run(main, tmp_path, capsys):
    assert main("--out", tmp_path, "--epochs", 1) == 0
    assert load_model(tmp_path).info.name == "small"
    assert main("--out", tmp_path, "--epochs", 1, "--resume") == 0


def test_only_whole_trainings_go_into_weights(script, main, monkeypatch, tmp_path):
    monkeypatch.setattr(script, "ROOT", tmp_path)
    assert main("--epochs", 1, "--max-batches", 1) == 0
    assert (tmp_path / "runs" / "small" / "model.safetensors").exists() and not (tmp_path / "weights").exists()
    assert main("--epochs", 1) == 0
    assert (tmp_path / "weights" / "small" / "model.safetensors").exists()


def test_resuming_with_other_settings(main, tmp_path, capsys):
    assert main("--out", tmp_path, "--epochs", 1) == 0
    capsys.readouterr()
    assert main("--out", tmp_path, "--epochs", 2, "--resume") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "was made with another epochs" in error


def test_nothing_to_resume(main, tmp_path, capsys):
    assert main("--out", tmp_path / "none", "--resume") == 1
    assert "is missing" in capsys.readouterr().err


def test_a_result_folder_that_is_a_file(main, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main("--out", tmp_path / "file") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and str(tmp_path / "file") in error


def test_a_training_that_was_stopped_is_not_overwritten(script, main, monkeypatch, tmp_path, capsys):
    interrupt(monkeypatch, 1)
    assert main("--out", tmp_path, "--epochs", 1) == 130
    assert "--resume goes on" in capsys.readouterr().err
    assert main("--out", tmp_path, "--epochs", 1) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "go on with --resume" in error
    assert main("--out", tmp_path, "--epochs", 1, "--resume") == 0


def test_a_training_that_diverges(main, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(step, "class_loss", lambda *_: torch.tensor(torch.nan, requires_grad=True))
    assert main("--out", tmp_path) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "step 1 of epoch 1" in error and "lower learning rate" in error


def test_a_dry_run_trains_nothing(main, tmp_path, capsys):
    assert main("--out", tmp_path / "none", "--dry-run") == 0
    text = capsys.readouterr().out
    assert "epochs: 30" in text and "memory: about" in text and "steps: " in text and "floor time: " in text
    assert not (tmp_path / "none").exists()


def test_too_little_memory_is_said_before_the_first_step(script, main, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(script, "free_memory", lambda device: 2**21)
    assert main("--out", tmp_path, "--epochs", 1) == 0
    assert "GiB are free: " in capsys.readouterr().err


def test_missing_data(script, main, monkeypatch, capsys):
    def refuse(*_, **__):
        raise DataError("MNIST could not be downloaded.")

    monkeypatch.setattr(script, "load_mnist", refuse)
    assert main() == 1
    assert capsys.readouterr().err == "MNIST could not be downloaded.\n"


def test_interrupted(script, main, monkeypatch, tmp_path, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(script, "train", interrupt)
    assert main("--out", tmp_path) == 130
    assert capsys.readouterr().err == "stopped; nothing was trained yet\n"
    (tmp_path / "checkpoint.safetensors").touch()
    assert main("--out", tmp_path) == 130
    error = capsys.readouterr().err
    assert "--resume" in error and str(tmp_path) in error


def test_runs_from_any_folder(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--colour", "blue"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "--colour" in done.stderr and not done.stdout


def test_cuda_where_there_is_none(script, monkeypatch, capsys):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(SystemExit):
        script.parse(["--device", "cuda"])
    assert capsys.readouterr().err.count("\n") == 1


def test_help_explains_every_setting(script, capsys):
    with pytest.raises(SystemExit) as end:
        script.parse(["--help"])
    assert end.value.code == 0
    text = " ".join(capsys.readouterr().out.split())  # argparse wraps its lines
    for owner in (TrainingConfig(), Augmentation()):
        for name, value in vars(owner).items():
            if name != "augmentation":
                said = script.descriptions(type(owner))[name]
                assert len(said) > 5 and f"--{OPTIONS.get(name, name).replace('_', '-')}" in text
                assert f"(default: {value})" in text


def test_a_finished_folder_trains_again_from_its_own_files(main, script, tmp_path):
    assert main("--out", tmp_path / "a", "--epochs", 1, "--shear", 0.3) == 0
    settings = read_config(tmp_path / "a" / "training.json")
    assert settings == recipe("small", epochs=1, shear=0.3, pen_pool=5, batch_size=16)
    assert main("--out", tmp_path / "b", "--config", tmp_path / "a" / "training.json") == 0
    for name in ("model.safetensors", "training.json", "config.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    config = script.parse(["--config", str(tmp_path / "a" / "training.json"), "--epochs", "7", "--shift", "1"])[1]
    assert (config.model, config.epochs, config.augmentation.shift, config.augmentation.shear) == ("small", 7, 1, 0.3)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"colour": "blue", "epochs": 3}', "has settings that this version does not know: colour; remove them"),
        ('{"augmentation": {"twist": 1}}', "has settings that this version does not know: twist; remove them"),
        ('{"epochs": "many"}', "epochs in {path} is 'many'; it must be of type int"),
        ('{"epochs": 1.5}', "epochs in {path} is 1.5; it must be of type int"),
        ('{"compile": 1}', "compile in {path} is 1; it must be of type bool"),
        ('{"augmentation": 3}', "{path} is no configuration of a training"),
        ("[]", "{path} is no configuration of a training"),
        ("{", "{path} cannot be read as JSON"),
        ('{"epochs": 0}', "epochs is 0; it must be at least 1"),
        ('{"model": "oak"}', "model is 'oak'; choose one of"),
    ],
)
def test_a_configuration_that_cannot_be(script, tmp_path, capsys, content, says):
    path = tmp_path / "training.json"
    path.write_text(content)
    with pytest.raises(SystemExit):
        script.parse(["--config", str(path)])
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and says.format(path=path) in error


def test_whole_numbers_are_numbers(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"learning_rate": 1, "augmentation": {"shift": 2}}))
    assert read_config(tmp_path / "x.json") == TrainingConfig(learning_rate=1.0, augmentation=Augmentation(shift=2.0))


def test_two_processes_under_torchrun(shapes, tmp_path):
    """The real command, on a folder of pictures."""
    settings = "--model efficient-capsnet --epochs 1 --batch-size 8 --device cpu --precision fp32"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*torchrun, SCRIPT, *settings.split(), "--dataset", shapes, "--out", tmp_path / "out"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 1/1") == 1  # one speaks
    model = load_model(tmp_path / "out")
    assert model.info.class_names == ["circle", "cross", "square"]


def test_layers_between_by_options(script, digits):
    """What --projection and --part-capsules build."""
    from capsnet.batches import network_for

    def network(options):
        return network_for(script.parse(options.split())[1], digits)

    plain, compressed = network("--model capsnet-small"), network("--model capsnet-small --projection 4")
    assert plain.routing.weight.shape == (288, 8, 10, 16) and compressed.routing.weight.shape == (288, 4, 10, 16)
    both = network("--model uniform-capsnet --projection 4 --part-capsules 32")
    assert both.hidden[0].weight.shape == (48, 4, 32, 16) and both.routing.weight.shape == (32, 16, 10, 16)
    assert both.hidden[0].iterations == both.routing.iterations == 1
    attention = network("--model attention-capsnet --part-capsules 6")
    assert type(attention.hidden[0]) is type(attention.routing)
    with pytest.raises(SystemExit):
        network("--model cnn --projection 4")
    with pytest.raises(SystemExit):
        network("--part-capsules -1")


def test_a_set_by_name(script, main, digits, monkeypatch, tmp_path):
    """Its classes reach config.json and card, its own recipe the configuration; there are no pen digits."""
    names = SOURCES["fashion-mnist"].class_names
    asked = []
    monkeypatch.setattr(script, "load_mnist", lambda *_, **how: asked.append(how) or replace(digits, class_names=names))
    assert main("--dataset", "fashion-mnist", "--epochs", 1, "--out", tmp_path) == 0
    assert asked == [{"train": True, "name": "fashion-mnist"}]
    assert read_json(tmp_path / "config.json")["class_names"] == names
    settings = read_json(tmp_path / "training.json")
    assert (settings["m_plus"], settings["m_minus"], settings["pen_share"]) == (0.88, 0.09, 0.0)
    card = (tmp_path / "README.md").read_text()
    assert "the first 55,000 images of Fashion-MNIST's training files" in card and "ankle boot" in card
    assert script.parse(["--dataset", "kmnist"])[1].m_plus == 0.9
    with pytest.raises(SystemExit):
        script.parse(["--dataset", "kmnist", "--input-size", "32"])
