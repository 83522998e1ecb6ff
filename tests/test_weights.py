"""The trained weights that come with the repository."""

import json
import math
import shutil

import pytest
import torch
from huggingface_hub import ModelCard

from capsnet.card import write_card
from capsnet.checkpoint import WEIGHTS, available_models, load_model, read_json, read_tensors, save_model
from capsnet.data import Images, to_float
from capsnet.demo import examples
from capsnet.distillation import evaluate_distillation
from capsnet.morphometry import PROPERTIES
from capsnet.outsiders import nonsense
from capsnet.pairs import fixed_pairs
from capsnet.rejection import judge

FOLDER = WEIGHTS / "capsnet"


def is_student(name):
    return "teacher" in read_json(WEIGHTS / name / "config.json")


@pytest.fixture(scope="module")
def model():
    return load_model("capsnet")


@pytest.fixture(scope="module")
def digits():
    """The MNIST test digits of the page: images (N, 1, 28, 28) and labels (N,)."""
    every = examples.digits()
    images = torch.stack([examples.image(i) for i in range(len(every["labels"]))])
    return images, torch.from_numpy(every["labels"]).long()


@pytest.fixture(scope="module")
def answers(model, digits):
    with torch.inference_mode():
        return model(digits[0])


def test_the_network_of_the_paper(model):
    assert "capsnet" in available_models()
    assert sum(p.numel() for p in model.parameters()) == 8_215_728
    info = model.info
    assert (info.name, info.kind, info.input_size, info.in_channels) == ("capsnet", "digit", 28, 1)
    assert info.class_names == list("0123456789") and info.pose_size == 16
    assert model.routing.iterations == 3
    assert all(t.isfinite().all() for t in model.state_dict().values())


def test_half_precision_fits_under_20_megabytes():
    assert 16e6 < (FOLDER / "model.safetensors").stat().st_size < 20e6


def test_half_precision_does_not_change_answers(model, answers, digits, tmp_path):
    save_model(model, tmp_path)
    written, kept = (read_tensors(folder / "model.safetensors")[0] for folder in (tmp_path, FOLDER))
    assert written.keys() == kept.keys() and all(torch.equal(written[name], kept[name]) for name in kept)
    with torch.inference_mode():
        again = load_model(tmp_path)(digits[0])
    assert torch.equal(again.lengths, answers.lengths)


def test_reads_the_digits_of_the_page(answers, digits):
    right = answers.lengths.argmax(1) == digits[1]
    assert len(right) >= 250 and right.float().mean() >= 0.97


def test_right_capsules_are_long_and_the_others_short(answers, digits):
    own = torch.nn.functional.one_hot(digits[1], 10).bool()
    assert answers.lengths[own].mean() > 0.8 and answers.lengths[~own].mean() < 0.15


def test_one_image_is_read_as_in_a_batch(model, answers, digits):
    with torch.inference_mode():
        alone = model(digits[0][:1])
    torch.testing.assert_close(alone.lengths, answers.lengths[:1], rtol=0, atol=1e-4)


def test_decoded_digits_resemble_their_images(model, answers, digits):
    images, labels = digits
    with torch.inference_mode():
        pictures = model.decode(answers.poses)
    error = (pictures - images).square().mean((1, 2, 3))
    assert error.mean() < 0.035
    # Closer to their own image than the average digit of the same kind is.
    average = torch.stack([images[labels == k].mean(0) for k in range(10)])[labels]
    assert (error < (average - images).square().mean((1, 2, 3))).float().mean() > 0.9


def test_moving_a_pose_number_through_its_range_changes_the_picture_and_keeps_the_digit(model, answers, digits):
    kept, moved = [], []
    for k in range(10):
        index = int((digits[1] == k).nonzero()[0])
        poses = answers.poses[index].repeat(32, 1, 1)  # (2 · 16, K, P): every number at either end
        for end in (0, 1):
            for p in range(16):
                poses[16 * end + p, k, p] = model.pose_range[end, k, p]
        with torch.inference_mode():
            pictures = model.decode(poses, torch.full((32,), k))
            kept.append((model(pictures).lengths.argmax(1) == k).float().mean())
        moved.append((pictures[:16] - pictures[16:]).abs().amax((1, 2, 3)))
    assert torch.stack(kept).mean() > 0.8
    assert torch.cat(moved).median() > 0.05


def test_pose_range_is_where_the_poses_are(model, answers, digits):
    low, high = model.pose_range
    assert (low < high).all() and low.min() > -1 and high.max() < 1
    own = answers.poses[torch.arange(len(digits[1])), digits[1]]  # (N, P)
    inside = (own >= low[digits[1]]) & (own <= high[digits[1]])
    assert inside.float().mean() > 0.9  # 98 % of the training images


def test_metrics():
    metrics, history = read_json(FOLDER / "metrics.json"), read_json(FOLDER / "metrics.json")["history"]
    best = min(history, key=lambda epoch: (epoch["validation_error"], epoch["validation_loss"]))
    assert metrics["validation"] == {
        "epoch": best["epoch"],
        **{key: best[f"validation_{key}"] for key in ("loss", "error", "length")},
    }
    assert metrics["run"]["epochs"] == len(history) <= read_json(FOLDER / "training.json")["epochs"]
    assert metrics["test"]["images"] == 10_000
    assert all(math.isfinite(value) for epoch in history for value in epoch.values())


def test_card_is_written_from_the_metrics(model, tmp_path):
    for name in ("config", "training", "metrics", "poses"):
        shutil.copy(FOLDER / f"{name}.json", tmp_path)
    write_card(tmp_path, model)
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == card
    metrics = read_json(FOLDER / "metrics.json")
    for result in (metrics["validation"], metrics["test"], *metrics.get("drawn", {}).values()):
        assert f"{result['error']:.2%}" in card
    assert "8,215,728" in card


@pytest.mark.parametrize("name", available_models(None))
def test_the_hub_reads_the_accuracy_from_the_card(name):
    data = ModelCard((WEIGHTS / name / "README.md").read_text(encoding="utf-8")).data
    metrics = read_json(WEIGHTS / name / "metrics.json")
    assert (data.license, data.library_name, data.pipeline_tag) == ("mit", "capsnet", "image-classification")
    assert data.model_name == name and data.datasets == ["ylecun/mnist"]
    found = {one.dataset_split: one.metric_value for one in data.eval_results}
    measured = {"train[-5000:]": metrics["validation"], "test": metrics.get("test") or metrics.get("overlap")}
    assert found == {split: pytest.approx(1 - one["error"], abs=5e-5) for split, one in measured.items() if one}
    assert {(one.task_type, one.metric_type) for one in data.eval_results} == {("image-classification", "accuracy")}


@pytest.mark.parametrize("name", available_models(None))
def test_files_are_json_as_every_language_reads_it(name):
    for file in (WEIGHTS / name).glob("*.json"):
        json.loads(file.read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_what_pose_numbers_do_is_known(model):
    effects = [effect for of_digit in model.pose_effects.values() for effect in of_digit]
    assert len(effects) == 10 * 16
    assert sum(bool(effect["names"]) for effect in effects) > 40
    assert {name for effect in effects for name in effect["names"]} <= PROPERTIES.keys()


@pytest.mark.parametrize("name", available_models())
def test_shuffled_pixels_are_no_digits_and_digits_are(name, digits):
    model, images = load_model(name), digits[0][::3]
    assert judge(model, images).strangeness.le(model.rejection_threshold).float().mean() > 0.95
    shuffled = dict(nonsense(images))["shuffled pixels"]
    assert judge(model, shuffled).strangeness.gt(model.rejection_threshold).float().mean() > 0.9
    measured = read_json(WEIGHTS / name / "metrics.json")["rejection"]
    assert measured["threshold"] == model.rejection_threshold
    assert all(0.85 < its["auroc"] <= 1 for its in measured["outsiders"].values())


# Taught by another


@pytest.mark.parametrize("name", [name for name in available_models() if is_student(name)])
def test_a_student_is_as_good_as_promised(name, digits):
    student, figures = load_model(name), read_json(WEIGHTS / name / "metrics.json")["distillation"]
    teacher = load_model(student.config["teacher"])
    assert figures["teacher"] == student.config["teacher"] and figures["images"] == 10_000
    assert figures["errors"] <= 60 and figures["redrawn_ratio"] <= 1.5 and figures["single_image"]["times_faster"] >= 10
    assert all(
        torch.equal(a, b) for a, b in zip(student.decoder.parameters(), teacher.decoder.parameters(), strict=True)
    )
    found = evaluate_distillation(student, teacher, Images((digits[0] * 255).round().byte(), digits[1]))
    assert found.errors / found.images <= 0.03 and found.summary()["redrawn_ratio"] <= 1.6
    assert (WEIGHTS / name / "model.safetensors").stat().st_size < 4e6


# Two digits at once


@pytest.fixture(scope="module")
def pairs():
    """The network for pairs, and a pair for each of the page's digits: images, each digit alone."""
    every = examples.digits()
    data = Images(torch.from_numpy(every["images"])[:, None], torch.from_numpy(every["labels"]).long())
    return load_model("multi-capsnet"), *fixed_pairs(data)


def test_pairs_are_read_and_taken_apart(pairs):
    model, sheets, alone = pairs
    assert available_models("pair") == ["multi-capsnet"] and model.info.kind == "pair"
    with torch.inference_mode():
        out = model(to_float(sheets.images))
        drawn = model.decode(out.poses.repeat_interleave(2, 0), sheets.labels.flatten())
    right = (out.lengths.topk(2).indices.sort(1).values == sheets.labels.sort(1).values).all(1)
    assert right.float().mean() >= 0.85
    digits = to_float(alone).flatten(0, 1)
    sheet = to_float(sheets.images).repeat_interleave(2, 0)
    redrawn, as_it_is = ((one - digits).square().sum((1, 2, 3)).mean() for one in (drawn, sheet))
    assert redrawn < 0.6 * as_it_is


def test_one_digit_is_not_taken_for_two(pairs):
    model, sheets, alone = pairs
    with torch.inference_mode():
        one, two = (model(to_float(images)).lengths for images in (alone[:, 0], sheets.images))
    there = model.presence_threshold
    assert ((one > there).sum(1) == 1).float().mean() > 0.85 and ((two > there).sum(1) == 2).float().mean() > 0.75
