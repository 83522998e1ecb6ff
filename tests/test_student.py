"""The student: its layers by hand, and its way through training, files, measures and page."""

import json
import sys

import pytest
import torch
import torch.nn.functional as F
from scripts import load_script
from test_training import STILL, equal, interrupt

from capsnet.batches import network_for
from capsnet.checkpoint import ModelError, load_model, read_json, read_tensors, save_model
from capsnet.configuration import TrainingConfig, changed, recipe
from capsnet.data import Images, to_float
from capsnet.demo import page, tweak, votes, words
from capsnet.distillation import distillation_loss, engage
from capsnet.estimate import estimate
from capsnet.losses import margin_loss, reconstruction_loss
from capsnet.models import CONFIGS, create_model
from capsnet.rejection import judge
from capsnet.run import CHECKPOINT
from capsnet.step import make_step
from capsnet.student import Student
from capsnet.training import train

LITTLE = {"channels": [4, 4, 4, 8], "units": 16}


@pytest.fixture
def teacher(small, tmp_path):
    """The folder of a small capsule network, untrained."""
    torch.manual_seed(1)
    save_model(create_model("small"), tmp_path / "teacher")
    return tmp_path / "teacher"


@pytest.fixture
def little(monkeypatch, teacher):
    """How a small student, "little", is trained."""
    monkeypatch.setitem(CONFIGS, "little", {"teacher": str(teacher), **LITTLE})
    settings = {"soft_weight": 0.2, "temperature": 2.0, "pose_weight": 0.5, "precision": "fp32", "pen_share": 0.0}
    return recipe("little", teacher=str(teacher), epochs=2, batch_size=16, **settings)


def taught(config, digits, out, **options):
    return train(config, digits, digits[:20], out, log=lambda line: None, **options)


def like(config, **changes):
    return changed(config, augmentation=STILL, **changes)


def test_its_poses_are_what_its_layers_give_squashed(digits):
    torch.manual_seed(0)
    model, images = create_model("student").eval(), to_float(digits.images[:3])
    features = images
    for conv, _, norm in zip(*[iter(model.trunk.layers)] * 3, strict=True):
        features = F.conv2d(features, conv.weight, conv.bias, conv.stride).clamp_min(0)
        features = features / (norm.running_var[:, None, None] + 1e-3).sqrt()  # of a new network mean 0 and weight 1
    _, first, _, second = model.head
    hidden = (features.flatten(1) @ first.weight.T + first.bias).clamp_min(0)
    s = (hidden @ second.weight.T + second.bias).view(3, 10, 16)
    n = s.square().sum(2).sqrt()
    out = model(images)
    torch.testing.assert_close(out.lengths, n**2 / (1 + n**2), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(out.poses, s * (n / (1 + n**2))[..., None], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(images[:1]).lengths, out.lengths[:1], rtol=1e-4, atol=1e-5)


def test_all_of_it_learns_but_the_decoder(digits):
    torch.manual_seed(0)
    model, images = create_model("student"), to_float(digits.images[:4])
    out = model(images)
    loss = margin_loss(out.lengths, digits.labels[:4]) + reconstruction_loss(model.decode(out.poses), images)
    loss.backward()
    for name, p in model.named_parameters():
        assert p.grad is None if name.startswith("decoder.") else p.grad.abs().max() > 0, name


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"input_size": 18}, "at least 19"), ({"units": 0}, "units is 0"), ({"pose_size": 0}, "pose_size is 0")],
)
def test_settings_that_fit_no_network(settings, message):
    assert Student(input_size=19).trunk.map_size(19) == 2
    with pytest.raises(ValueError, match=message):
        Student(**settings)


def test_images_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"reads \(batch, 1, 28, 28\)"):
        create_model("student")(torch.zeros(1, 3, 28, 28))


# Training


def test_the_loss_is_that_of_labels_teacher_and_picture(little, digits):
    torch.manual_seed(0)
    student = network_for(little, digits)
    teacher = engage(little.teacher, student)
    images, labels = to_float(digits.images[:16]), digits.labels[:16]
    out, told = student.train()(images), teacher(images)
    by_hand = margin_loss(out.lengths, labels) + distillation_loss(little, out, told, labels)
    by_hand += little.reconstruction_weight * reconstruction_loss(teacher.decode(out.poses, labels), images)
    step = make_step(little, student, torch.optim.Adam(student.parameters()), torch.device("cpu"), teacher=teacher)
    assert step(images, labels, 0.0)[0] / 16 == pytest.approx(by_hand.item(), rel=1e-5)


def test_it_learns_and_its_teacher_does_not(little, digits, tmp_path, monkeypatch):
    """The teacher reads exactly what the student reads, in evaluation mode; its decoder becomes the student's."""
    seen, modes, make = [], [], make_step

    def watched(config, model, optimizer, device, network, teacher):
        def see(module, inputs):
            seen.append(inputs[0])

        def note(module, inputs):
            assert torch.equal(inputs[0], seen[-1])
            modes.append((module.training, torch.is_grad_enabled()))

        model.register_forward_pre_hook(see)
        teacher.register_forward_pre_hook(note)
        return make(config, model, optimizer, device, network, teacher)

    monkeypatch.setattr("capsnet.training.make_step", watched)
    model = taught(like(little, epochs=6, learning_rate=5e-3, warm_up=0.0), digits, tmp_path / "out")
    assert len(modes) == 18 and set(modes) == {(False, False)}
    history = read_json(tmp_path / "out" / "metrics.json")["history"]
    assert history[-1]["loss"] < 0.8 * history[0]["loss"]
    for folder in (tmp_path / "out", tmp_path / "teacher"):
        kept = load_model(folder)
        for name, tensor in load_model(little.teacher).decoder.state_dict().items():
            assert torch.equal(kept.decoder.state_dict()[name], tensor)
    again = load_model(tmp_path / "out")
    assert isinstance(again, Student) and again.info == model.info and again.config["teacher"] == little.teacher
    assert again.rejection_threshold > 0 and (again.pose_range[0] < again.pose_range[1]).any()
    images = to_float(digits.images)
    assert judge(again, images).unlikeness.min() > 0  # it draws
    torch.testing.assert_close(again(images).lengths, model.eval()(images).lengths, rtol=0, atol=2e-2)  # in fp16
    kept, checkpoint = (read_tensors(tmp_path / "out" / name)[0] for name in ("model.safetensors", CHECKPOINT))
    assert kept.keys() == again.state_dict().keys()  # nothing else of the teacher
    learns = [f"optimizer.{n}" for n, p in enumerate(model.parameters()) if p.requires_grad]
    assert {key.rpartition(".")[0] for key in checkpoint if key.startswith("optimizer.")} == set(learns)


def test_a_run_that_was_stopped_goes_on_exactly(little, digits, tmp_path, monkeypatch):
    taught(little, digits, tmp_path / "straight")
    with monkeypatch.context() as patch:
        interrupt(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            taught(little, digits, tmp_path / "cut")
    taught(little, digits, tmp_path / "cut", resume=True)
    assert equal(tmp_path / "straight", tmp_path / "cut")


def test_it_can_start_from_another_student_and_keeps_its_own_teachers_decoder(little, digits, tmp_path, small):
    taught(little, digits, tmp_path / "first")
    torch.manual_seed(7)
    save_model(create_model("small"), tmp_path / "other")
    config = like(little, epochs=1, start=str(tmp_path / "first"), teacher=str(tmp_path / "other"))
    model = taught(config, digits, tmp_path / "second")
    weight = load_model(tmp_path / "other").decoder.net[0].weight
    assert torch.equal(model.decoder.net[0].weight, weight) and model.config["teacher"] == str(tmp_path / "other")


@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        ("student", {"teacher": ""}, "teacher is missing"),
        ("student", {"loss": "spread"}, "student is trained with margin$"),
        ("student", {"projection": 4}, "has no capsules"),
        ("student", {"part_capsules": 4}, "has no capsules"),
        ("student", {"temperature": 0.0}, "temperature is 0"),
        ("student", {"pose_weight": -1.0}, "pose_weight is -1"),
        ("capsnet", {"teacher": "capsnet"}, "capsnet has no teacher"),
        ("cnn", {"soft_weight": 1.0}, "cnn has no teacher"),
        ("multi-capsnet", {"pose_weight": 1.0}, "multi-capsnet has no teacher"),
        ("capsnet", {"temperature": 2.0}, "capsnet has no teacher"),
    ],
)
def test_settings_that_fit_no_training(model, changes, message):
    with pytest.raises(ValueError, match=message):
        recipe(model, **changes).check()


def test_the_recipe_names_its_teacher():
    recipe("student").check()
    assert recipe("student").teacher == CONFIGS["student"]["teacher"] == "capsnet" and TrainingConfig().teacher == ""


@pytest.mark.parametrize("model", ["cnn", "em-capsnet", "multi-capsnet", "little"])
def test_networks_that_cannot_teach(little, digits, tmp_path, model):
    save_model(create_model(model), tmp_path / "odd")
    with pytest.raises(ModelError, match="odd cannot teach: name a capsule network of vectors"):
        taught(like(little, teacher=str(tmp_path / "odd")), digits, tmp_path / "out")


def test_a_teacher_of_other_images_or_classes(little, digits, tmp_path):
    large = Images(F.pad(digits.images, (2, 2, 2, 2)), digits.labels)
    letters = Images(digits.images, digits.labels, list("abcdefghij"))
    for data, says in ((large, "images of 1×32×32 as 0, 1, 2"), (letters, "images of 1×28×28 as a, b, c")):
        with pytest.raises(ModelError, match=f"teacher reads images of 1×28×28 as 0, 1, 2.*{says}.*--teacher"):
            taught(little, data, tmp_path / "out")


def test_what_it_will_take_counts_the_teacher(little, digits):
    found, student, teacher = estimate(little, digits), network_for(little, digits), create_model("small")
    learning = sum(p.numel() for p in student.parameters() if p.requires_grad)
    resting = sum(p.numel() for p in [*teacher.decoder.parameters(), *teacher.parameters()])
    assert found.parameters == learning and found.state == 20 * learning + 4 * resting + 40 * 784
    alone = estimate(recipe("small", batch_size=16, pen_share=0.0), digits)
    assert found.image > alone.image and found.flops > alone.flops / 3 and found.steps == 6


def test_the_command(little, digits, teacher, tmp_path, monkeypatch, capsys):
    script = load_script("train_mnist")
    monkeypatch.setattr(script, "load_mnist", lambda *_, **__: digits)
    monkeypatch.setattr(script, "split_validation", lambda data: (data[:20], data[20:]))

    def command(*arguments):
        fixed = ("--model", "little", "--device", "cpu", "--pen-share", "0", "--epochs", "1", "--out", tmp_path / "out")
        monkeypatch.setattr(sys, "argv", ["train_mnist.py", *map(str, [*fixed, *arguments])])
        return script.main()

    assert command("--teacher", teacher, "--dry-run") == 0
    assert "soft_weight: 0.0" in capsys.readouterr().out and not (tmp_path / "out").exists()
    assert command("--teacher", "nobody") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "there is no model 'nobody'" in error
    assert command("--teacher", teacher, "--pose-weight", 0.5) == 0
    assert read_json(tmp_path / "out" / "training.json")["teacher"] == str(teacher)
    with pytest.raises(SystemExit):
        script.parse(["--model", "student", "--teacher", ""])
    with pytest.raises(SystemExit):
        script.parse(["--teacher", "capsnet"])


# What is measured


def test_the_suite_measures_it_beside_its_teacher(little, digits, tmp_path, monkeypatch, capsys):
    taught(little, digits, tmp_path / "out")
    monkeypatch.setattr("capsnet.sources.load_mnist", lambda *arguments, **options: digits)
    monkeypatch.setattr("train.comparison.ROUNDS", 1, raising=False)

    def evaluate(*arguments):
        monkeypatch.setattr(sys, "argv", ["evaluate.py", *map(str, arguments)])
        return load_script("evaluate").main()

    assert evaluate("--model", tmp_path / "out", "--suite", "distillation") == 0
    printed, card = capsys.readouterr().out.strip(), (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    figures = read_json(tmp_path / "out" / "metrics.json")["distillation"]
    assert printed in card and "MNIST test images" in card and "## Beside its teacher" in card
    assert f"Taught by `{little.teacher}`" in card and "out.coupling" not in card and "Network: " in card
    one = figures["single_image"]
    assert one["times_faster"] == one["teacher_milliseconds"] / one["milliseconds"] > 0
    assert figures["images"] == 40 and figures["redrawn_ratio"] == figures["redrawn"] / figures["teacher_redrawn"]
    assert evaluate("--model", little.teacher, "--suite", "distillation") == 1
    assert "the suite distillation does not fit" in capsys.readouterr().err
    assert evaluate("--model", tmp_path / "out", "--suite", "distillation", "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert {**again, "single_image": None} == {**figures, "single_image": None}


# On the page

SEVEN = {"kind": "strokes", "strokes": [[[60, 50], [210, 50], [160, 150], [125, 240]]]}


def test_the_page_shows_all_but_votes():
    torch.manual_seed(0)
    networks = {"student": create_model("student").eval(), "capsnet": create_model("capsnet-small").eval()}
    sheet = {"network": "student", **SEVEN}
    shown = page.respond(networks, sheet)
    assert len(shown["tweak"]["poses"]) == 10 and max(shown["lengths"]["lengths"]) > 0
    bounds = tweak.bounds(networks["student"])
    assert bounds["most"] == 1 and len(bounds["ranges"]) == len(bounds["does"]) == 10
    assert votes.count(networks, sheet) == {"why": words.message("votes.unrouted")}
    assert votes.count(networks, {"network": "student", "kind": "strokes", "strokes": []}) == {
        "why": words.message("votes.unvoted")
    }
    assert "nothing votes" in words.say(words.message("votes.unrouted"))
    assert words.network("student")[0] == words.FAST and words.say(words.FAST and words.message(words.FAST)) == "Fast"
