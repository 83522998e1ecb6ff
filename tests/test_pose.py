"""What pose numbers do, on a decoder whose every number has a known meaning."""

import importlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import capsnet.pose
from capsnet.card import direction_table, pose_table
from capsnet.checkpoint import load_model
from capsnet.configuration import recipe
from capsnet.models import create_model
from capsnet.morphometry import MEANINGFUL, PROPERTIES, measure
from capsnet.pose import amount, blend, directions, draw, effects, measure_poses, transplant
from capsnet.training import train

ROOT = Path(__file__).resolve().parent.parent

THICK, SLANT, HEIGHT = 0, 1, 2  # what the numbers of the decoder below do; the fourth does nothing


def stroke(thickness, slant, height, middle=(13.5, 13.5)):
    """An upright bar of that slant with soft edges, (1, 28, 28)."""
    y, x = torch.meshgrid(torch.arange(28.0), torch.arange(28.0), indexing="ij")
    across = (x - middle[0] + slant * (y - middle[1])).abs() / math.sqrt(1 + slant**2)
    return ((thickness / 2 - across + 0.5).clamp(0, 1) * (height / 2 - (y - middle[1]).abs() + 0.5).clamp(0, 1))[None]


@pytest.fixture
def model(monkeypatch):
    """A network whose decoder draws a bar 3 + p₀ thick, slanted by p₁ / 2, 18 + 3 p₂ high."""
    model = create_model("capsnet-small", pose_size=4).eval()

    def decode(poses, digits):
        chosen = poses[torch.arange(len(poses)), digits]
        return torch.stack([stroke(3 + p[0], 0.5 * p[1], 18 + 3 * p[2]) for p in chosen.tolist()])

    monkeypatch.setattr(model, "decode", decode)
    return model


@pytest.fixture
def poses():
    return torch.rand(60, 4, generator=torch.Generator().manual_seed(0)) * 2 - 1


def named(values):
    return dict(zip(PROPERTIES, values.tolist(), strict=True))


@pytest.mark.parametrize(("thickness", "slant", "height"), [(3, 0, 18), (4, 0.4, 18), (2, -0.3, 20)])
def test_a_bar_is_measured(thickness, slant, height):
    got = named(measure(stroke(thickness, slant, height)[None])[0])
    assert got["thickness"] == pytest.approx(thickness, abs=0.6)
    assert got["slant"] == pytest.approx(slant, abs=0.03)
    assert got["height"] == pytest.approx(height, abs=0.5)
    assert got["width"] == pytest.approx(thickness * math.sqrt(1 + slant**2), abs=0.6)
    assert height - thickness - 1 < got["length"] < 1.2 * height
    assert got["loop"] == 0 and abs(got["across"]) < 0.1 and abs(got["down"]) < 0.1


def test_place_and_loop_are_measured():
    moved = named(measure(stroke(3, 0, 16, middle=(15.5, 12.5))[None])[0])
    assert moved["across"] == pytest.approx(2, abs=0.1) and moved["down"] == pytest.approx(-1, abs=0.1)
    ring = torch.zeros(1, 1, 28, 28)
    ring[..., 8:20, 8:20] = 1
    ring[..., 11:17, 11:17] = 0
    assert named(measure(ring)[0])["loop"] == pytest.approx(36, abs=4)
    ring[..., 13, 8:11] = 0  # a gap lets the paper in
    assert named(measure(ring)[0])["loop"] == 0


def test_no_ink_is_nan():
    assert measure(torch.zeros(2, 1, 28, 28)).isnan().all()


def test_numbers_are_named_by_what_they_do(model, poses):
    found = effects(model, 3, poses[:12])
    assert [effect.names for effect in found] == [("thickness",), ("slant",), ("height",), ()]
    assert found[THICK].changes["thickness"] == pytest.approx(2, abs=0.5)
    assert found[SLANT].changes["slant"] == pytest.approx(1, abs=0.1)
    assert found[SLANT].strength == pytest.approx(1 / PROPERTIES["slant"].typical, rel=0.1)
    assert found[HEIGHT].changes["height"] == pytest.approx(6, abs=0.5)
    assert found[3].strength == 0


def test_a_falling_property_has_a_negative_change(model, poses):
    model.pose_range = model.pose_range.flip(0)
    assert effects(model, 3, poses[:12])[SLANT].changes["slant"] == pytest.approx(-1, abs=0.1)


def test_a_number_that_does_many_things_has_no_name(model, poses):
    plain = model.decode
    everything = torch.tensor([[1, 1, 1.3, 0]]).expand(4, -1)  # each by about four typical differences
    model.decode = lambda poses, digits: plain(poses * torch.tensor([1.0, 0, 0, 0]) @ everything, digits)
    found = effects(model, 3, poses[:12])
    assert found[0].strength > 2 and found[1].strength == 0
    assert found[0].names == found[1].names == ()


def test_poses_without_ink_are_left_out(model, poses):
    plain = model.decode
    model.decode = lambda poses, digits: plain(poses, digits) * (poses[:, 3, 3] <= 0.9)[:, None, None, None]
    found = effects(model, 3, poses[:12])
    assert found[SLANT].names == ("slant",) and found[3].strength == 0


# Directions


def mixed(model, monkeypatch):
    """Each number of the pose does a bit of everything."""
    mixture, plain = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1))).Q, model.decode
    monkeypatch.setattr(model, "decode", lambda poses, digits: plain(poses @ mixture, digits))


def test_directions_move_one_property_and_leave_the_others(model, poses, monkeypatch):
    mixed(model, monkeypatch)
    found = directions(model, 3, poses)
    assert found.keys() == {"thickness", "slant", "height"}  # a bar has no loop; its width is its thickness
    start = torch.zeros(1, 4)
    before = named(measure(draw(model, 3, start))[0])
    # Thickness is measured along a skeleton, which moves by whole pixels.
    for name, by, rel in (("thickness", 0.6, 0.75), ("slant", 0.2, 0.2), ("height", 2.0, 0.2)):
        after = named(measure(draw(model, 3, start + by * torch.tensor(found[name].change)))[0])
        assert after[name] - before[name] == pytest.approx(by, rel=rel)
        for other in found.keys() - {name}:
            assert abs(after[other] - before[other]) <= 0.3 * PROPERTIES[other].typical
        assert 0.6 <= found[name].gain <= 1.4 and found[name].leak <= 0.3


def test_directions_know_the_property_of_a_pose(model, poses, monkeypatch):
    mixed(model, monkeypatch)
    found = directions(model, 3, poses)
    drawn = measure(draw(model, 3, poses))[:, list(PROPERTIES).index("height")]
    height = found["height"]
    said = height.offset + poses @ torch.tensor(height.slope)
    assert (said - drawn).abs().max() < 0.7
    assert said.min() <= height.low < height.high <= said.max()
    for name, direction in found.items():  # each is of its own property only
        for other in found:
            along = torch.tensor(direction.change) @ torch.tensor(found[other].slope)
            assert along.item() == pytest.approx(float(name == other), abs=1e-3)


def test_what_does_not_move_has_no_direction(model, poses, monkeypatch):
    assert directions(model, 3, poses[:15]) == {}  # too few
    assert directions(model, 3, poses[:1].expand(60, -1)) == {}  # a dead capsule
    monkeypatch.setattr(model, "decode", lambda poses, digits: torch.zeros(len(poses), 1, 28, 28))
    assert directions(model, 3, poses) == {}


@pytest.mark.parametrize(
    ("gain", "leak", "kept"), [(1, 0, True), (0.5, 0.5, True), (0.4, 0, False), (1.6, 0, False), (1, 0.6, False)]
)
def test_a_direction_that_does_not_do_what_it_says_is_left_out(model, poses, monkeypatch, gain, leak, kept):
    monkeypatch.setattr(capsnet.pose, "_gain_and_leak", lambda *_: (gain, leak))
    found = directions(model, 3, poses)
    assert found.keys() == ({"thickness", "slant", "height"} if kept else set())
    assert all((one.gain, one.leak) == (gain, leak) for one in found.values())


def test_directions_of_the_weights_move_their_property_alone():
    """Real digits, which the fit has not seen, through the real decoder: the property grows with every step."""
    model = load_model("capsnet")
    digits = np.load(ROOT / "capsnet" / "demo" / "mnist_digits.npz")
    assert sum(map(len, model.pose_directions.values())) >= 30
    assert all({"thickness", "slant"} <= of.keys() for of in model.pose_directions.values())
    leaks = []
    for digit in range(10):
        images = torch.from_numpy(digits["images"][digits["labels"] == digit][:20]).float()[:, None] / 255
        with torch.no_grad():
            poses = model(images).poses[:, digit]
        for name, direction in model.pose_directions[str(digit)].items():
            own = list(PROPERTIES).index(name)
            assert name in MEANINGFUL and 0.5 <= direction["gain"] <= 1.5
            steps = torch.linspace(-1, 1, 5) * PROPERTIES[name].typical
            moved = poses + steps[:, None, None] * torch.tensor(direction["change"])  # (5, 20, 16)
            drawn = measure(draw(model, digit, moved.flatten(0, 1))).unflatten(0, (5, 20)).mean(1)[:, own]
            every = 2 if name == "loop" else 1  # a loop that opens or closes makes it jump
            assert (drawn[::every].diff() > 0).all(), (digit, name)
            leaks.append(direction["leak"])
    assert np.median(leaks) <= 0.25


# From one pose to another


@pytest.fixture
def pair():
    """Two poses that lie within ±1."""
    return torch.rand(2, 16, generator=torch.Generator().manual_seed(2)) * 2 - 1


def test_a_blend_begins_with_one_digit_and_ends_with_the_other(pair):
    model = create_model("capsnet-small").eval()
    pictures = blend(model, 3, pair[0], 8, pair[1], 5)
    assert pictures.shape == (5, 1, 28, 28) and not pictures.requires_grad
    torch.testing.assert_close(pictures[:1], draw(model, 3, pair[:1]))
    torch.testing.assert_close(pictures[-1:], draw(model, 8, pair[1:]))
    for step, share in enumerate((0, 0.25, 0.5, 0.75, 1)):
        inputs = torch.zeros(10, 16)
        for p in range(16):
            inputs[3, p] = (1 - share) * pair[0, p]
            inputs[8, p] = share * pair[1, p]
        with torch.no_grad():
            slow = model.decoder.net(inputs.view(1, 160)).view(1, 28, 28)
        torch.testing.assert_close(pictures[step], slow)


def test_a_blend_of_one_digit_is_a_straight_line_of_poses(pair):
    model = create_model("capsnet-small").eval()
    line = torch.stack([pair[0] + share * (pair[1] - pair[0]) for share in (0, 0.25, 0.5, 0.75, 1)])
    torch.testing.assert_close(blend(model, 6, pair[0], 6, pair[1], 5), draw(model, 6, line))


def test_style_by_hand():
    """Two numbers, each a property by itself: B takes what A has of the one that both digits have."""
    model = create_model("capsnet-small", pose_size=2)
    thickness = {"change": [0.5, 0], "slope": [2, 0], "offset": 3.0, "low": 2.0, "high": 4.0}
    slant = {"change": [0, 1], "slope": [0, 1], "offset": 0.0, "low": -1.0, "high": 1.0}
    model.pose_directions = {
        "1": {"thickness": {**thickness, "offset": 3.5}, "loop": slant},
        "2": {"slant": slant, "thickness": thickness},
    }
    own = torch.tensor([0.1, 0.2])
    for number, taken in (
        (0.0, 0.25),
        (-0.5, -0.25),
        (0.9, 0.5),
        (-0.99, -0.5),
    ):  # A: 3.5, 2.5, 5.3, 1.5
        pose, names = transplant(model, 1, torch.tensor([number, 0.7]), 2, own)
        assert pose.tolist() == pytest.approx([taken, 0.2]) and names == ("thickness",)
    assert own.tolist() == pytest.approx([0.1, 0.2])
    thick = torch.tensor([0.8, 0.2])  # 4.6: more than `high` itself
    assert transplant(model, 1, torch.tensor([0.9, 0.0]), 2, thick)[0].tolist() == pytest.approx([0.8, 0.2])


def test_without_directions_there_is_no_style(pair):
    model = create_model("capsnet-small")
    for found in (None, {}, {"3": {}, "8": {}}):
        model.pose_directions = found
        pose, names = transplant(model, 3, pair[0], 8, pair[1])
        assert torch.equal(pose, pair[1]) and names == ()


def test_style_of_the_weights_is_exact_in_the_linear_model():
    model = load_model("capsnet")
    digits = np.load(ROOT / "capsnet" / "demo" / "mnist_digits.npz")
    with torch.no_grad():
        poses = model(torch.from_numpy(digits["images"][:40]).float()[:, None] / 255).poses
    for i, (a, b) in enumerate(zip(digits["labels"][:39].tolist(), digits["labels"][1:40].tolist(), strict=True)):
        moved, names = transplant(model, a, poses[i, a], b, poses[i + 1, b])
        of_a, of_b = model.pose_directions[str(a)], model.pose_directions[str(b)]
        assert set(names) == of_a.keys() & of_b.keys() and {"thickness", "slant"} <= set(names)
        for name, direction in of_b.items():
            own, typical = amount(direction, poses[i + 1, b]), PROPERTIES[name].typical
            wanted = own
            if name in names:
                ends = sorted((direction["low"], own, direction["high"]))
                wanted = min(max(amount(of_a[name], poses[i, a]), ends[0]), ends[2])
            assert amount(direction, moved) == pytest.approx(wanted, abs=1e-3 * typical)
        assert torch.allclose(transplant(model, b, moved, b, moved)[0], moved)


def test_style_is_seen_in_the_picture():
    """Drawn and measured: of two digits the thinner and the more slanted one give just that to the other."""
    model = load_model("capsnet")
    digits = np.load(ROOT / "capsnet" / "demo" / "mnist_digits.npz")
    order = list(PROPERTIES)
    nearer = []
    with torch.no_grad():
        poses = model(torch.from_numpy(digits["images"][:60]).float()[:, None] / 255).poses
    for i, (a, b) in enumerate(zip(digits["labels"][:59].tolist(), digits["labels"][1:60].tolist(), strict=True)):
        moved, _ = transplant(model, a, poses[i, a], b, poses[i + 1, b])
        of_a = measure(draw(model, a, poses[i, a][None]))[0]
        before, after = measure(draw(model, b, torch.stack([poses[i + 1, b], moved])))
        for name in ("thickness", "slant"):
            q = order.index(name)
            if abs(before[q] - of_a[q]) > PROPERTIES[name].typical:
                nearer.append(bool(abs(after[q] - of_a[q]) < abs(before[q] - of_a[q])))
    assert len(nearer) >= 15 and np.mean(nearer) >= 0.9


# The command


@pytest.fixture
def name_poses(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    script = importlib.import_module("train.name_poses")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["name_poses.py", *map(str, arguments)])
        return script.main()

    run.script = script
    return run


def test_the_command_writes_what_the_page_and_the_card_show(small, digits, tmp_path, name_poses, monkeypatch, capsys):
    train(recipe("small", epochs=1, pen_share=0), digits, digits, tmp_path, log=lambda line: None)
    monkeypatch.setattr(name_poses.script, "load_mnist", lambda *_, **__: digits)
    assert name_poses("--model", tmp_path, "--images", 2) == 0
    model = load_model(tmp_path)
    found = json.loads(json.dumps(measure_poses(model, digits, 2)))
    assert (model.pose_effects, model.pose_directions) == (found["effects"], found["directions"])
    card, tables = (tmp_path / "README.md").read_text(), capsys.readouterr().out.strip().split("\n\n")
    assert tables[0].count("\n") == 1 + 16 and len(tables) == 2 and all(table in card for table in tables)


def test_the_table_of_the_card():
    def effect(*names, **changes):
        return {"names": names, "changes": changes, "strength": 1}

    poses = {"0": [effect("slant", slant=-0.256), effect()], "1": [effect("width", "loop", width=2.04, loop=9.96)] * 2}
    assert pose_table(poses).splitlines() == [
        "| number | 0 | 1 |",
        "|---|---|---|",
        "| 1 | slant −0.26 | width +2.0, loop +10.0 |",
        "| 2 |  | width +2.0, loop +10.0 |",
    ]


def test_the_table_of_directions():
    def direction(gain, leak):
        return {"change": [], "gain": gain, "leak": leak}

    found = {"0": {"loop": direction(0.912, 0.04), "slant": direction(1, 0.5)}, "1": {"slant": direction(0.7, 0.125)}}
    assert direction_table(found).splitlines() == [
        "| property | 0 | 1 |",
        "|---|---|---|",
        "| slant | 1.00, 0.50 | 0.70, 0.12 |",
        "| loop | 0.91, 0.04 |  |",
    ]


def test_what_cannot_be_named_is_one_sentence(name_poses, capsys):
    assert name_poses("--model", "nope") == 1
    for arguments in (("--images", 0), ("--model", "cnn")):
        with pytest.raises(SystemExit) as stop:
            name_poses(*arguments)
        assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 3 and "cnn has no poses" in said
