"""What is measured: errors, samples of writers, sets of drawn digits, the command and its table."""

import csv
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from scripts import load_script

from capsnet.data import DataError, Images
from capsnet.evaluation import (
    Result,
    _even_sample,
    evaluate_drawings,
    evaluate_drawn,
    evaluate_images,
    evaluate_mnist,
    load_drawings,
)
from capsnet.models import create_model
from capsnet.pens import pen_digits


class Reader:
    """Answers the class whose index is the brightness of the first pixel, in tenths."""

    info = SimpleNamespace(class_names=list("0123456789"), input_size=28)

    def __call__(self, images):
        answer = (images[:, 0, 0, 0] * 10).round().long()
        return SimpleNamespace(lengths=torch.nn.functional.one_hot(answer, 10).float())


def images_read_as(*digits):
    images = torch.zeros(len(digits), 1, 28, 28)
    images[:, 0, 0, 0] = torch.tensor(digits) / 10
    return images


def test_errors_are_counted_by_hand():
    result = evaluate_images(Reader(), images_read_as(3, 5, 5, 9), ["3", "5", "3", "4"])
    assert (result.images, result.errors, result.error) == (4, 2, 0.5)
    assert result.wrong == [(2, "3", "5"), (3, "4", "9")]
    assert result.summary() == {"images": 4, "errors": 2, "error": 0.5}


def test_more_images_than_a_batch():
    labels = [str(n % 10) for n in range(1203)]
    result = evaluate_images(Reader(), images_read_as(*[int(label) for label in labels]), labels)
    assert (result.images, result.errors) == (1203, 0)


def test_most_frequent_confusions_come_first():
    result = Result(9, 3, [(0, "1", "7"), (4, "4", "9"), (7, "1", "7")])
    assert result.confusions() == [(("1", "7"), 2), (("4", "9"), 1)]


def test_mnist_goes_in_as_it_is():
    images = (images_read_as(1, 2) * 255).byte()
    result = evaluate_mnist(Reader(), Images(images, torch.tensor([1, 0])))
    assert (result.errors, result.wrong) == (1, [(1, "0", "2")])


def test_no_writer_counts_more_than_five_times_a_label():
    keys = [("a", "1")] * 30 + [("a", "2")] * 3 + [("b", "1")] * 7
    chosen = _even_sample(keys)
    assert chosen == sorted(set(chosen)) == _even_sample(keys)
    assert [sum(keys[n] == key for n in chosen) for key in (("a", "1"), ("a", "2"), ("b", "1"))] == [5, 3, 5]
    assert chosen[:5] != [0, 1, 2, 3, 4]  # a random choice, not the first


def write_strokes(path):
    """Three items: a stroke of 2 points; strokes of 3 and 1 points; a stroke of 2 points."""
    points = np.arange(16, dtype=np.int16).reshape(8, 2)
    offsets = {"stroke_off": np.array([0, 2, 5, 6, 8]), "item_off": np.array([0, 1, 3, 4])}
    np.savez(path, pts=points, labels=np.array(list("14x")), writers=np.array(list("aab")), **offsets)


def test_strokes(tmp_path):
    write_strokes(tmp_path / "set.npz")
    drawings, labels = load_drawings(tmp_path / "set.npz")
    assert labels == ["1", "4", "x"]
    assert [[len(stroke) for stroke in d["strokes"]] for d in drawings] == [[2], [3, 1], [2]]
    assert drawings[1]["strokes"][1] == [[10, 11]]


def test_pictures_in_an_array_and_in_a_folder(tmp_path):
    images, labels = pen_digits(3, 0)
    np.savez(tmp_path / "array.npz", images=images, labels=labels.astype(str))
    drawings, read = load_drawings(tmp_path / "array.npz")
    assert read == [str(label) for label in labels] and (np.stack(drawings) == images).all()
    folder = tmp_path / "folder"
    folder.mkdir()
    with open(folder / "labels.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "label"])
        for n, image in enumerate(images):
            Image.fromarray(image).save(folder / f"{n}.png")
            rows.writerow([f"{n}.png", labels[n]])
    assert load_drawings(folder) == ([folder / f"{n}.png" for n in range(3)], read)


def test_sets_of_digits_are_read_and_sets_of_letters_left_out(tmp_path):
    write_strokes(tmp_path / "mixed.npz")
    images, _ = pen_digits(3, 0)
    np.savez(tmp_path / "letters.npz", images=images, labels=np.array(["a", "b", "1"]))
    results = evaluate_drawn(create_model("capsnet-small").eval(), tmp_path)
    assert list(results) == ["mixed"] and results["mixed"].images == 2  # without the x
    with pytest.raises(DataError, match="holds no sets of drawn digits"):
        evaluate_drawn(create_model("capsnet-small").eval(), tmp_path / "nowhere")


def test_a_drawing_without_a_digit_is_read_wrongly():
    images, labels = pen_digits(3, 0)
    blank, classes = np.full((28, 28), 255, np.uint8), [str(label) for label in labels]
    model = create_model("capsnet-small").eval()
    read = evaluate_drawings(model, list(images), classes)
    mixed = evaluate_drawings(model, [blank, *images], ["4", *classes])
    assert mixed.images == 4 and mixed.wrong == [(0, "4", "nothing"), *((n + 1, a, b) for n, a, b in read.wrong)]
    assert evaluate_drawings(model, [blank], ["4"]).wrong == [(0, "4", "nothing")]


@pytest.fixture
def evaluate(monkeypatch):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["evaluate.py", *map(str, arguments)])
        return load_script("evaluate").main()

    return run


def test_the_command_prints_a_table_and_keeps_the_figures(evaluate, small, digits, tmp_path, capsys):
    from capsnet.configuration import TrainingConfig
    from capsnet.training import train

    config = TrainingConfig(model="small", epochs=1, pen_share=0)
    train(config, digits, digits, tmp_path / "model", log=lambda line: None)
    (tmp_path / "drawn").mkdir()
    write_strokes(tmp_path / "drawn" / "mixed.npz")
    assert evaluate("--model", tmp_path / "model", "--suite", "drawn", "--data-dir", tmp_path) == 0
    figures = json.loads((tmp_path / "model" / "metrics.json").read_text())["drawn"]["mixed"]
    printed = capsys.readouterr().out
    assert figures["images"] == 2 and f"| mixed | 2 | {1 - figures['error']:.2%} |" in printed
    assert f"| drawn digits: mixed | 2 | {figures['error']:.2%} |" in (tmp_path / "model" / "README.md").read_text()
    assert evaluate("--model", tmp_path / "model", "--suite", "drawn", "--data-dir", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"mixed": figures}


def test_rejection_is_measured_and_its_threshold_kept(evaluate, small, digits, tmp_path, monkeypatch, capsys):
    from capsnet.checkpoint import load_model, save_model, write_json

    monkeypatch.setattr("capsnet.sources.load_mnist", lambda *arguments, **options: digits)
    monkeypatch.setattr("capsnet.sources.split_validation", lambda data: (data, data))
    folder = tmp_path / "model"
    save_model(create_model("small"), folder)
    (tmp_path / "drawn").mkdir()
    write_strokes(tmp_path / "drawn" / "mixed.npz")
    command = ["--model", folder, "--suite", "rejection", "--data-dir", tmp_path]
    assert evaluate(*command) == 0 and "only printed" in capsys.readouterr().err  # no metrics.json
    assert load_model(folder).rejection_threshold is None

    from capsnet.configuration import TrainingConfig
    from capsnet.training import train

    train(TrainingConfig(model="small", epochs=1, pen_share=0), digits, digits, folder, log=lambda line: None)
    model = load_model(folder)
    assert model.rejection_threshold > 0
    model.rejection_threshold = None
    write_json(folder / "config.json", {k: v for k, v in model.config.items() if v is not None})
    assert evaluate(*command) == 0
    printed = capsys.readouterr().out.strip()
    assert "| digits: mixed | " in printed and "| scribbles | 40 | " in printed
    assert printed in (folder / "README.md").read_text()
    figures = json.loads((folder / "metrics.json").read_text())["rejection"]
    assert load_model(folder).rejection_threshold == figures["threshold"] > 0


def test_all_suites_in_one_command(evaluate, small, digits, tmp_path, monkeypatch, capsys):
    from capsnet.configuration import TrainingConfig
    from capsnet.training import train

    monkeypatch.setattr("capsnet.sources.load_mnist", lambda *arguments, **options: digits)
    monkeypatch.setattr("capsnet.sources.split_validation", lambda data: (data, data))
    weights = tmp_path / "weights"
    monkeypatch.setattr("capsnet.checkpoint.WEIGHTS", weights)
    folder = weights / "small"
    train(TrainingConfig(model="small", epochs=1, pen_share=0), digits, digits, folder, log=lambda line: None)
    (tmp_path / "drawn").mkdir()
    write_strokes(tmp_path / "drawn" / "mixed.npz")
    assert evaluate("--model", "small", "--suite", "all", "--data-dir", tmp_path) == 0
    printed, card = capsys.readouterr().out, (folder / "README.md").read_text()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert {"test", "drawn", "rejection", "robustness", "affine", "calibration"} <= metrics.keys()
    for table in printed.strip().split("\n\n"):
        assert table in card or "| MNIST test |" in table or "| mixed |" in table or "| affine digits |" in table
    for kind, curve in metrics["robustness"].items():
        clean = next(point for point in curve if point["amount"] == 0)
        assert clean == metrics["robustness"]["rotation"][4] and clean["images"] == 8, kind
        low, high = clean["interval"]
        assert low <= clean["error"] <= high
    assert metrics["affine"]["images"] == 40 and sum(metrics["calibration"]["MNIST test"]["images"]) == 40
    assert f"| small | {100 * clean['error']:.2f} |" in (weights / "robustness.md").read_text()
    with Image.open(weights / "robustness.png") as picture:
        assert picture.format == "PNG" and picture.width > 1000
    assert evaluate("--model", folder, "--suite", "affine", "--data-dir", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out) == metrics["affine"]


def test_robustness_of_a_model_elsewhere_lies_beside_it(evaluate, small, digits, tmp_path, monkeypatch):
    from capsnet.configuration import TrainingConfig
    from capsnet.training import train

    monkeypatch.setattr("capsnet.sources.load_mnist", lambda *arguments, **options: digits)
    train(
        TrainingConfig(model="small", epochs=1, pen_share=0), digits, digits, tmp_path / "mine", log=lambda line: None
    )
    assert evaluate("--model", tmp_path / "mine", "--suite", "robustness", "--data-dir", tmp_path) == 0
    page = (tmp_path / "mine" / "robustness.md").read_text()
    assert page.count("\n| ") == 2 and "| mine | " in page and "–" in page  # neither affine digits nor calibration yet
    assert (tmp_path / "mine" / "robustness.png").exists()


def test_harm_is_the_mean_where_something_was_changed():
    curve = [{"amount": -1, "error": 0.5}, {"amount": 0, "error": 0.9}, {"amount": 2, "error": 0.1}]
    assert load_script("robustness").harm(curve) == pytest.approx(0.3)


@pytest.mark.parametrize("arguments", ["--model nope --suite mnist", "--suite drawn --data-dir nope"])
def test_what_cannot_be_measured_is_one_sentence(evaluate, arguments, capsys):
    assert evaluate(*arguments.split()) == 1
    complaint = capsys.readouterr().err.strip()
    assert complaint and "\n" not in complaint and "Traceback" not in complaint


def test_unknown_suite_stops_with_status_2(evaluate, capsys):
    with pytest.raises(SystemExit) as end:
        evaluate("--suite", "nope")
    assert end.value.code == 2 and capsys.readouterr().err.count("\n") == 1


def test_benchmark_counts_medians_over_the_floor(monkeypatch):
    benchmark = load_script("benchmark")
    clock = iter([0, 9, 0, 9, 0, 9, 0, 9] + [0, 2, 0, 3] + [0, 4, 0, 8] + [0, 1, 0, 5])  # two rounds do not count
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(clock))
    calls = []
    rows = {"floor": lambda: calls.append("floor"), "whole": lambda: calls.append("whole")}
    seconds = benchmark.time_in_turns(rows, 3, torch.device("cpu"))
    assert seconds == {"floor": 2, "whole": 5} and calls == ["floor", "whole"] * 5
    whole = benchmark.summary(seconds, "floor", 10)["whole"]
    assert whole == {"ratio": 2.5, "milliseconds": 5000, "images_per_second": 2}
