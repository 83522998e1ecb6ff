"""Two digits on one sheet: how pairs are made, and what a step learns from them."""

import pytest
import torch
from test_training import configuration

from capsnet import batches, step
from capsnet.checkpoint import load_model, read_json
from capsnet.data import Images, to_float
from capsnet.losses import margin_loss, present, reconstruction_loss
from capsnet.pairs import MARGIN, fixed_pairs, lay, over, partners, shifts
from capsnet.training import measure_pose_range, train


def test_a_pixel_goes_where_its_shift_says():
    images = torch.zeros(3, 2, 28, 28)
    images[0, 0, 0, 0] = images[1, 1, 27, 27] = images[2, 0, 10, 20] = 1
    sheets = lay(images, torch.tensor([[-4, 4], [4, 4], [1, -3]]))
    assert sheets.shape == (3, 2, 36, 36) and sheets.sum() == 3
    assert sheets[0, 0, 0, 8] == 1 and sheets[1, 1, 35, 35] == 1 and sheets[2, 0, 15, 21] == 1


def test_shifts_are_even_and_boxes_overlap_as_in_the_paper():
    generator = torch.Generator().manual_seed(0)
    one, other = shifts(50_000, generator), shifts(50_000, generator)
    assert torch.equal(one.unique(), torch.arange(-MARGIN, MARGIN + 1))
    assert (torch.bincount(one[:, 0] + MARGIN) / 50_000).sub(1 / 9).abs().max() < 0.01
    common = (20 - (one - other).abs()).prod(1) / 400
    assert common.mean().item() == pytest.approx(0.726, abs=0.003)


def test_partners_are_of_another_class_and_all_equally_likely():
    pool = torch.tensor([2, 0, 1, 1, 2, 2, 2, 0])
    labels = torch.tensor([0, 1, 2]).repeat(20_000)
    data = Images(torch.zeros(8, 1, 28, 28, dtype=torch.uint8), pool, list("abcd"))  # of the fourth class there is none
    chosen = partners(labels, data, torch.Generator().manual_seed(0))
    for k in range(3):
        counts = torch.bincount(chosen[labels == k], minlength=8)
        others = pool != k
        assert (counts[~others] == 0).all()
        assert (counts[others] / 20_000).sub(1 / others.sum()).abs().max() < 0.01


def test_ink_is_added_up_to_full():
    sheets = torch.tensor([[0.25, 0.75, 1.0, 0.0], [0.5, 0.5, 1.0, 0.0]]).view(1, 2, 1, 2, 2)
    assert over(sheets).flatten().tolist() == [0.75, 1.0, 1.0, 0.0]
    whole = over((sheets * 200).byte())
    assert whole.dtype == torch.uint8 and whole.flatten().tolist() == [150, 250, 255, 0]


def test_fixed_pairs_are_sums_of_their_digits(digits):
    pairs, alone = fixed_pairs(digits, seed=3)
    assert pairs.images.shape == (40, 1, 36, 36) and pairs.labels.shape == (40, 2) and alone.shape == (40, 2, 1, 36, 36)
    assert torch.equal(pairs.labels[:, 0], digits.labels) and (pairs.labels[:, 0] != pairs.labels[:, 1]).all()
    ink = {(its.sum().item(), label.item()) for its, label in zip(digits.images, digits.labels, strict=True)}
    for n in range(40):
        assert torch.equal(pairs.images[n].int(), alone[n].int().sum(0).clamp(max=255))
        for k in range(2):
            assert (alone[n, k].sum().item(), pairs.labels[n, k].item()) in ink
    again, _ = fixed_pairs(digits, seed=3)
    assert torch.equal(again.images, pairs.images)
    assert not torch.equal(fixed_pairs(digits, seed=4)[0].images, pairs.images)


def test_present():
    assert present(torch.tensor([2, 0]), 3).tolist() == [[False, False, True], [True, False, False]]
    assert present(torch.tensor([[2, 0], [1, 1]]), 3).tolist() == [[True, False, True], [False, True, False]]


def test_a_lesson_of_pairs(pair, digits, monkeypatch):
    monkeypatch.setattr(batches, "SINGLES", 0.5)
    config = configuration(model="small-pair")
    indices = torch.arange(40).repeat(20)
    its = batches.lesson(config, indices, digits, digits[:0], torch.Generator().manual_seed(1), slice(None))
    assert its.images.shape == (800, 1, 36, 36) and its.pictures.shape == (800, 2, 1, 36, 36)
    single = its.labels[:, 0] == its.labels[:, 1]
    assert 0.4 < single.float().mean() < 0.6 and torch.equal(its.labels[:, 0], digits.labels[indices])
    torch.testing.assert_close(its.images[~single], over(its.pictures[~single]))
    assert torch.equal(its.images[single], its.pictures[single, 0])
    assert torch.equal(its.images[single], its.pictures[single, 1])
    assert not torch.equal(its.pictures[~single, 0], its.pictures[~single, 1])
    part = batches.lesson(config, indices, digits, digits[:0], torch.Generator().manual_seed(1), slice(300, 700))
    for name in ("images", "labels", "pictures"):  # what a process gets of it is what it is in the whole
        assert torch.equal(getattr(part, name), getattr(its, name)[300:700])


def test_a_lesson_of_single_digits_has_no_pictures(small, digits):
    its = batches.lesson(configuration(), torch.arange(5), digits, digits[:0], torch.Generator(), slice(1, 4))
    assert its.pictures is None and torch.equal(its.labels, digits.labels[1:4]) and len(its.images) == 3


def test_a_step_on_pairs_by_hand(pair, digits):
    config = configuration(model="small-pair", reconstruction_weight=0.01)
    pairs, alone = fixed_pairs(digits[:6])
    images, pictures, labels = to_float(pairs.images), to_float(alone), pairs.labels.clone()
    labels[5, 1] = labels[5, 0]  # one digit
    with torch.no_grad():
        out = pair(images)
        there = torch.zeros(6, 10)
        for n in range(6):
            there[n, labels[n]] = 1
        drawn = [[pair.decode(out.poses[n, None], labels[n, k, None])[0] for k in range(2)] for n in range(6)]
        drawn = torch.stack([torch.stack(two) for two in drawn])
        wanted = margin_loss(out.lengths, there) + 0.01 * (drawn - pictures).square().sum((2, 3, 4)).mean()
        wrong = 0
        for n in range(6):
            right = set(labels[n].tolist())
            wrong += set(out.lengths[n].topk(len(right)).indices.tolist()) != right
        length = sum(out.lengths[n, labels[n]].mean().item() for n in range(6))
    assert reconstruction_loss(drawn.flatten(0, 1), pictures.flatten(0, 1)) > 0
    take = step.make_step(config, pair, torch.optim.Adam(pair.parameters()), torch.device("cpu"))
    row = take(images, labels, 0.0, 1.0, pictures)
    assert row[0].item() / 6 == pytest.approx(wanted.item(), rel=1e-4)
    assert row[1].item() == wrong and row[2].item() == pytest.approx(length, rel=1e-4) and row[3].item() == 6


def test_pose_range_of_pairs_is_over_both_digits(pair, digits):
    pairs, _ = fixed_pairs(digits)
    measure_pose_range(pair, pairs, batch_size=16)
    with torch.no_grad():
        poses = pair(to_float(pairs.images)).poses
    own = torch.cat([poses[pairs.labels[:, k] == 7, 7] for k in range(2)])
    ends = torch.quantile(own, torch.tensor([0.01, 0.99]), dim=0)
    torch.testing.assert_close(pair.pose_range[:, 7], ends, rtol=0, atol=1e-5)


def test_training_on_pairs(pair, digits, tmp_path):
    config = configuration(model="small-pair", epochs=2)
    model = train(config, digits, digits[:20], tmp_path, log=lambda line: None)
    assert model.info.kind == "pair" and model.info.input_size == 36 and 0 < model.presence_threshold < 1
    assert model.rejection_threshold is None
    metrics = read_json(tmp_path / "metrics.json")
    assert metrics["run"]["images"] == 40 and metrics["run"]["validation_images"] == 20
    assert step.evaluate(model, fixed_pairs(digits[:20])[0], config)["error"] == metrics["validation"]["error"]
    card = (tmp_path / "README.md").read_text()
    assert "one over the other on 36×36 pixels" in card and "pairs of MNIST validation" in card
    assert load_model(tmp_path).presence_threshold == model.presence_threshold


def test_a_pair_needs_the_margin_loss():
    with pytest.raises(ValueError, match=r"^loss is 'spread'; multi-capsnet is trained with margin$"):
        configuration(model="multi-capsnet", loss="spread").check()
