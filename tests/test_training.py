import json
import math
import re
import signal
import threading

import pytest
import torch

from capsnet import batches, step, training
from capsnet.checkpoint import ModelError, load_model, read_json, read_tensors, save_model, write_tensors
from capsnet.configuration import TrainingConfig
from capsnet.data import Augmentation, Images, to_float
from capsnet.losses import margin_loss, spread_loss
from capsnet.models import create_model
from capsnet.run import CHECKPOINT, PREVIOUS
from capsnet.step import evaluate, use_bf16
from capsnet.training import measure_pose_range, train

STILL = Augmentation(shift=0, rotation=0, scale=0, shear=0, elastic=0, thickness=0)


def configuration(**changes):
    """40 images and 10 pen digits an epoch: three batches of 16 and one of 2."""
    settings = {"model": "small", "epochs": 3, "batch_size": 16, "pen_share": 0.2, "pen_pool": 15, "precision": "fp32"}
    return TrainingConfig(**{**settings, **changes})


def run(out, digits, resume=False, log=lambda line: None, checkpoint_minutes=10, **changes):
    options = {"resume": resume, "log": log, "checkpoint_minutes": checkpoint_minutes}
    return train(configuration(**changes), digits, digits[:20], out, **options)


def equal(a, b):
    """Both folders hold the same weights, figures and settings, bit for bit; times may differ."""
    figures = [read_json(folder / "metrics.json") for folder in (a, b)]
    for value in figures:
        del value["run"]["seconds"]
    files = [(folder / "model.safetensors").read_bytes() for folder in (a, b)]
    full = [read_tensors(folder / CHECKPOINT)[0] for folder in (a, b)]
    same = full[0].keys() == full[1].keys() and all(torch.equal(full[0][k], full[1][k]) for k in full[0])
    settings = [read_json(folder / "training.json") for folder in (a, b)]
    return figures[0] == figures[1] and files[0] == files[1] and settings[0] == settings[1] and same


# One step, end to end


def test_one_step_lowers_the_loss(small, digits, tmp_path):
    eight = digits[:8]
    changes = {"epochs": 1, "batch_size": 8, "pen_share": 0, "augmentation": STILL, "warm_up": 0}
    torch.manual_seed(0)
    before = evaluate(create_model("small"), eight, configuration())["loss"]
    model = train(configuration(**changes), eight, eight, tmp_path, log=lambda line: None)
    assert evaluate(model, eight, configuration())["loss"] < 0.97 * before


def test_the_network_learns_a_handful_of_digits(small, digits, tmp_path):
    changes = {"epochs": 12, "pen_share": 0, "augmentation": STILL, "learning_rate": 5e-3}
    model = train(configuration(**changes), digits, digits, tmp_path, log=lambda line: None)
    history = read_json(tmp_path / "metrics.json")["history"]
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]
    assert evaluate(model, digits, configuration())["error"] < 0.5


def test_result_folder(small, digits, tmp_path):
    lines = []
    model = run(tmp_path / "new" / "folder", digits, log=lines.append)
    out = tmp_path / "new" / "folder"
    files = {"README.md", "config.json", "metrics.json", "model.safetensors", "training.json", CHECKPOINT, PREVIOUS}
    assert {path.name for path in out.iterdir()} == files
    assert load_model(out).config == model.config == read_json(out / "config.json")
    settings = read_json(out / "training.json")
    assert TrainingConfig(**{**settings, "augmentation": Augmentation(**settings["augmentation"])}) == configuration()

    metrics = read_json(out / "metrics.json")
    assert [epoch["epoch"] for epoch in metrics["history"]] == [1, 2, 3]
    assert metrics["run"]["epochs"] == 3 and metrics["run"]["torch"] == torch.__version__
    best = min(metrics["history"], key=lambda epoch: (epoch["validation_error"], epoch["validation_loss"]))
    expected = {"epoch": best["epoch"]} | {k: best[f"validation_{k}"] for k in ("loss", "error", "length")}
    assert metrics["validation"] == expected
    del expected["epoch"]
    assert evaluate(model, digits[:20], configuration()) == pytest.approx(expected)

    assert len(lines) == 3
    training_part = r"epoch 2/3  loss \d\.\d{4}  error [\d.]+%  "
    validation_part = r"validation error [\d.]+%  loss \d\.\d{5}  length \d\.\d{3}  \d+ s/epoch"
    assert re.fullmatch(training_part + validation_part, lines[1])


def test_pose_range_is_measured_on_the_training_images(small, digits, tmp_path):
    run(tmp_path, digits, epochs=1)
    model = load_model(tmp_path)
    assert (model.pose_range[0] < model.pose_range[1]).all() and model.pose_range.abs().max() < 1


def test_images_of_another_size_and_colour(small, digits, tmp_path):
    colour = Images(torch.nn.functional.pad(digits.images, (2, 2, 2, 2)).repeat(1, 3, 1, 1), digits.labels)
    model = run(tmp_path, colour, epochs=1, pen_share=0)
    assert (model.info.in_channels, model.info.input_size) == (3, 32)
    with pytest.raises(ValueError) as error:
        run(tmp_path, colour, epochs=1)
    assert str(error.value) == "pen digits are images of 1×28×28, not 3×32×32; train with pen_share 0."


@pytest.mark.parametrize("changes", [{"precision": "bf16"}, {"max_batches": 1}, {"augmentation": STILL}], ids=str)
def test_other_settings_train(small, digits, tmp_path, changes):
    run(tmp_path, digits, epochs=1, **changes)
    (epoch,) = read_json(tmp_path / "metrics.json")["history"]
    assert 0 < epoch["loss"] < 2 and 0 <= epoch["error"] <= 1


def test_compiled_training_equals_eager(small, digits, tmp_path, monkeypatch):
    compile = torch.compile
    monkeypatch.setattr(torch, "compile", lambda f, mode=None: compile(f, backend="aot_eager"))
    changes = {"epochs": 1, "max_batches": 1, "batch_size": 8}
    eager, compiled = (run(tmp_path / str(c), digits, compile=c, **changes) for c in (False, True))
    for name, tensor in compiled.state_dict().items():
        torch.testing.assert_close(tensor, eager.state_dict()[name], rtol=1e-3, atol=1e-4)


def test_early_stop(small, digits, tmp_path):
    run(tmp_path, digits, stop_at_length=0.01)
    assert read_json(tmp_path / "metrics.json")["run"]["epochs"] == 1


# Stop and resume


class PowerCut(BaseException):
    pass


@pytest.fixture
def straight(small, digits, tmp_path):
    run(tmp_path / "straight", digits)
    return tmp_path / "straight"


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_run_cut_off_after_an_epoch_resumes_exactly(straight, digits, tmp_path, monkeypatch, epoch):
    write = training.write_checkpoint

    def write_and_die(*arguments):
        write(*arguments)
        if arguments[5].epoch == epoch:
            raise PowerCut

    out = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(training, "write_checkpoint", write_and_die)
        with pytest.raises(PowerCut):
            run(out, digits)
    assert not (out / "model.safetensors").exists()
    run(out, digits, resume=True)
    assert equal(out, straight)


def interrupt(monkeypatch, step, times=1, number=signal.SIGINT):
    """Ctrl-C, or another signal, while batch number `step` is on its way."""
    augment, seen = batches.augment, []

    def counted(*arguments):
        seen.append(1)
        if len(seen) == step:
            for _ in range(times):
                signal.raise_signal(number)
        return augment(*arguments)

    monkeypatch.setattr(batches, "augment", counted)


@pytest.mark.parametrize("step", [1, 4, 6, 12])
def test_an_interrupted_run_resumes_exactly(straight, digits, tmp_path, monkeypatch, step):
    """In the first epoch, at its last batch, in the second, and at the very end, where nothing is left to stop."""
    out, handler = tmp_path / "stopped", signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        interrupt(patch, step)
        if step == 12:
            run(out, digits)
        else:
            with pytest.raises(KeyboardInterrupt):
                run(out, digits)
    assert signal.getsignal(signal.SIGINT) is handler
    progress = read_tensors(out / CHECKPOINT)[1]["progress"]
    assert (progress["epoch"], progress["batch"]) == {1: (0, 1), 4: (1, 0), 6: (1, 2), 12: (3, 0)}[step]
    assert not list(out.glob("*.part"))
    run(out, digits, resume=True)
    assert equal(out, straight)


def test_interrupted_twice_in_different_epochs(straight, digits, tmp_path, monkeypatch):
    out = tmp_path / "stopped"
    for resume in (False, True):
        with monkeypatch.context() as patch:
            interrupt(patch, 5)
            with pytest.raises(KeyboardInterrupt):
                run(out, digits, resume=resume)
    run(out, digits, resume=True)
    assert equal(out, straight)


def test_a_second_interrupt_stops_at_once(small, digits, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, 2, times=2)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, digits)
    assert not (tmp_path / CHECKPOINT).exists()


def test_training_in_a_thread_leaves_signals_alone(small, digits, tmp_path):
    thread = threading.Thread(target=run, args=(tmp_path, digits), kwargs={"epochs": 1})
    thread.start()
    thread.join()
    assert (tmp_path / "model.safetensors").exists()


def test_a_finished_run_resumes_to_itself(straight, digits):
    before = {path.name: path.read_bytes() for path in straight.iterdir()}
    run(straight, digits, resume=True)
    assert {path.name: path.read_bytes() for path in straight.iterdir()} == before


def test_the_same_seed_gives_the_same_weights(straight, digits, tmp_path):
    run(tmp_path / "again", digits)
    assert equal(tmp_path / "again", straight)
    run(tmp_path / "other", digits, seed=1)
    assert not equal(tmp_path / "other", straight)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"learning_rate": 1e-3}, "learning_rate"),
        ({"epochs": 4}, "epochs"),
        ({"seed": 1, "batch_size": 8}, "batch_size, seed"),
        ({"augmentation": STILL}, "augmentation"),
    ],
)
def test_resuming_with_other_settings_is_refused(straight, digits, changes, name):
    with pytest.raises(ModelError) as error:
        run(straight, digits, resume=True, **changes)
    assert str(error.value).startswith(f"{straight / CHECKPOINT} was made with another {name}; ")
    assert str(error.value).endswith(".") and "\n" not in str(error.value)


def test_nothing_to_resume(small, digits, tmp_path):
    with pytest.raises(ModelError, match="checkpoint.safetensors is missing"):
        run(tmp_path, digits, resume=True)


def test_resuming_from_something_else(small, digits, tmp_path):
    write_tensors(tmp_path / CHECKPOINT, {"a": torch.ones(2)})
    with pytest.raises(ModelError, match="is not a checkpoint of a training run"):
        run(tmp_path, digits, resume=True)
    (tmp_path / CHECKPOINT).write_bytes(b"PK\x03\x04 pickled things")
    with pytest.raises(ModelError, match="is not a whole safetensors file"):
        run(tmp_path, digits, resume=True)


def test_the_checkpoint_holds_all_that_resuming_needs(straight):
    tensors, note = read_tensors(straight / CHECKPOINT)
    moments = {name.rsplit(".", 1)[1] for name in tensors if name.startswith("optimizer.")}
    assert moments == {"step", "exp_avg", "exp_avg_sq"}
    assert "generator" in tensors and "best.pose_range" in tensors and "model.routing.weight" in tensors
    assert note["config"]["model"] == "small" and note["progress"]["epoch"] == 3
    json.dumps(note)


# Parts


@pytest.mark.parametrize(
    ("epoch", "rate"), [(0, 0.001), (0.5, 0.501), (1, 2 / 2), (2, 0.5), (1 + 2 / 3, 0.75), (3, 0), (3.1, 0)]
)
def test_learning_rate(epoch, rate):
    """One epoch of warm-up to 1, then half a cosine period down to 0 at the third."""
    config = TrainingConfig(learning_rate=1, warm_up=1, epochs=3)
    assert step.learning_rate(config, epoch) == pytest.approx(rate)


def test_learning_rate_without_warm_up_or_decay():
    assert step.learning_rate(TrainingConfig(learning_rate=2, warm_up=0), 0) == 2
    still_rising = TrainingConfig(learning_rate=2, warm_up=8, epochs=2)
    assert step.learning_rate(still_rising, 2) == pytest.approx(0.5, rel=0.01)


def test_order_of_an_epoch():
    config = TrainingConfig(pen_share=0.25, seed=3)
    orders = [batches.epoch_order(config, epoch, 30, 50) for epoch in (0, 1, 0)]
    for order in orders:
        assert order[order < 30].sort().values.tolist() == list(range(30))  # every image once
        pens = order[order >= 30]
        assert len(pens) == 10 and len(pens.unique()) == 10 and pens.max() < 80  # a quarter of 40
    assert torch.equal(orders[0], orders[2]) and not torch.equal(orders[0], orders[1])
    assert len(batches.epoch_order(TrainingConfig(pen_share=0), 0, 30, 0)) == 30


def test_pick_takes_images_and_pens_with_their_labels(digits):
    data, pens = digits[:30], digits[30:]
    indices = torch.tensor([35, 2, 30, 29])
    images, labels = batches.pick(indices, data, pens)
    got = {(image.sum().item(), label.item()) for image, label in zip(images, labels, strict=True)}
    assert got == {(digits.images[k].sum().item(), digits.labels[k].item()) for k in indices}


def test_evaluation_weights_every_image_alike(small, digits):
    """Seven images in batches of three, three and one."""
    torch.manual_seed(0)
    model, seven = create_model("small").eval(), digits[:7]
    config = TrainingConfig(m_plus=0.8, m_minus=0.2, down_weight=1)
    out = model(to_float(seven.images)).lengths
    expected = {
        "loss": margin_loss(out, seven.labels, 0.8, 0.2, 1).item(),
        "error": sum(out[i].argmax().item() != seven.labels[i].item() for i in range(7)) / 7,
        "length": sum(out[i, seven.labels[i]].item() for i in range(7)) / 7,
    }
    for size in (3, 7, 500):
        assert evaluate(model, seven, config, batch_size=size) == pytest.approx(expected, rel=1e-5)


def test_the_spread_loss_trains_with_a_growing_margin(small, digits):
    """One step of the plain network by hand, at the margin of that moment; and what evaluation calls the loss."""
    config = configuration(loss="spread", epochs=4, reconstruction_weight=0.0)
    images, labels = to_float(digits.images[:6]), digits.labels[:6]
    for epoch, margin in [(0.0, 0.2 + 0.79 / (1 + math.exp(4))), (2.0, 0.595), (3.0, 0.2 + 0.79 / (1 + math.exp(-2)))]:
        torch.manual_seed(0)
        model = create_model("small")
        wanted = spread_loss(model(images).lengths, labels, margin).item()
        take = step.make_step(config, model, torch.optim.Adam(model.parameters()), torch.device("cpu"))
        assert take(images, labels, epoch)[0].item() / 6 == pytest.approx(wanted, rel=1e-5)
    model.eval()
    wanted = spread_loss(model(images).lengths, labels, 0.2 + 0.79 / (1 + math.exp(-4))).item()
    assert evaluate(model, digits[:6], config)["loss"] == pytest.approx(wanted, rel=1e-5)


def test_pose_range_is_the_middle_98_percent_of_each_class(small, digits):
    torch.manual_seed(0)
    model = create_model("small")
    few = digits[digits.labels != 3]
    measure_pose_range(model, few, batch_size=16)
    with torch.no_grad():
        poses = model(to_float(few.images)).poses
    for k in range(10):
        if k == 3:  # no images: as it was
            assert (model.pose_range[0, k] == -1).all() and (model.pose_range[1, k] == 1).all()
            continue
        own = poses[few.labels == k, k].sort(dim=0).values  # four images: quantiles 0.03 steps inside the ends
        torch.testing.assert_close(model.pose_range[0, k], own[0] + 0.03 * (own[1] - own[0]), rtol=0, atol=1e-5)
        torch.testing.assert_close(model.pose_range[1, k], own[3] - 0.03 * (own[3] - own[2]), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("precision", "hardware", "answer"),
    [
        ("bf16", {}, True),
        ("fp32", {"amx_bf16": True}, False),
        ("auto", {}, False),
        ("auto", {"amx_bf16": True}, True),
        ("auto", {"avx512_bf16": True}, True),
    ],
)
def test_bf16_where_the_hardware_multiplies_it(monkeypatch, precision, hardware, answer):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: hardware, raising=False)
    assert use_bf16(precision, torch.device("cpu")) is answer


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "hinge"}, "loss is 'hinge'; choose one of margin, spread, cross-entropy"),
        ({"epochs": 0}, "epochs is 0; it must be at least 1"),
        ({"batch_size": -3}, "batch_size is -3; it must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be above 0"),
        ({"learning_rate": math.nan}, "learning_rate is nan; it must be above 0"),
        ({"clip": math.inf}, "clip is inf; it must be above 0"),
        ({"warm_up": -0.5}, "warm_up is -0.5; it must not be negative"),
        ({"reconstruction_weight": -1.0}, "reconstruction_weight is -1.0; it must not be negative"),
        ({"down_weight": -1.0}, "down_weight is -1.0; it must not be negative"),
        ({"m_plus": 1.5}, "m_plus is 1.5; it is a length from 0 to 1"),
        ({"m_minus": math.nan}, "m_minus is nan; it is a length from 0 to 1"),
        ({"stop_at_length": -0.1}, "stop_at_length is -0.1; it is a length from 0 to 1"),
        ({"pen_share": 1.0}, "pen_share is 1.0; it must be at least 0 and below 1"),
        ({"seed": -1}, "seed is -1; it must not be negative"),
        ({"seed": 2**40}, "seed is 1099511627776; it must be below 4294967296"),
        ({"augmentation": Augmentation(scale=2)}, "scale is 2; it must be below 1"),
    ],
)
def test_impossible_settings(changes, message):
    TrainingConfig().check()
    with pytest.raises(ValueError) as error:
        TrainingConfig(**changes).check()
    assert str(error.value) == message


def test_a_saved_result_can_be_saved_over(straight, small):
    save_model(create_model("small"), straight)
    assert load_model(straight).info.name == "small"
