"""How well two digits on one sheet are told apart."""

import pytest
import torch

from capsnet import overlap
from capsnet.data import to_float
from capsnet.overlap import count, evaluate_overlap, measure_presence, separate, singles, thrice, twice
from capsnet.pairs import fixed_pairs


def test_count():
    lengths = torch.tensor([[0.9, 0.5, 0.2], [0.5, 0.1, 0.1], [0.8, 0.7, 0.6]])
    assert count(lengths, 0.5).tolist() == [1, 0, 3]


def test_singles_are_digits_somewhere(digits):
    sheets = singles(digits)
    assert sheets.shape == (40, 1, 36, 36)
    assert torch.equal(sheets.sum((1, 2, 3)), digits.images.sum((1, 2, 3)))


def test_twice_and_thrice_have_as_many_digits_as_they_say(digits, monkeypatch):
    seen = []
    lay_each = overlap.lay_each
    monkeypatch.setattr(overlap, "lay_each", lambda its, generator: seen.append(its) or lay_each(its, generator))
    assert twice(digits).shape == (30, 1, 36, 36) and twice(digits).max() == 255
    seen.clear()
    twice(digits), thrice(digits)
    (one, other), three = seen
    assert torch.equal(one.labels, other.labels) and len(one) == 30  # three of four of each class have a next one
    assert not any(torch.equal(a, b) for a, b in zip(one.images, other.images, strict=True))
    assert len(three) == 3 and 20 < len(three[0]) <= 40
    for labels in zip(*(its.labels.tolist() for its in three), strict=True):
        assert len(set(labels)) == 3


def test_the_threshold_is_in_the_middle_of_the_best(pair, digits, monkeypatch):
    """Second capsules are 0.6 or 0.3 long in pairs, 0.4 or 0.1 for single digits: from 0.40 to 0.59 most is right."""
    two = torch.tensor([[0.9, 0.6, 0.05]] * 3 + [[0.9, 0.3, 0.05]])
    one = torch.tensor([[0.9, 0.4, 0.05]] * 2 + [[0.9, 0.1, 0.05]] * 2)
    answers = iter([two, one])
    monkeypatch.setattr(overlap, "read_lengths", lambda *_: next(answers))
    measure_presence(pair, digits)
    assert pair.presence_threshold == pytest.approx(0.495, abs=0.0051)


def test_separate(pair, digits):
    image = to_float(fixed_pairs(digits)[0].images[0])
    pair.eval()
    with pytest.raises(ValueError, match=r"^small-pair does not say how long"):
        separate(pair, image)
    with torch.no_grad():
        out = pair(image[None])
    lengths = out.lengths[0].sort(descending=True)
    for digits_there in (0, 1, 2, 3):
        ends = torch.cat([torch.ones(1), lengths.values])[digits_there : digits_there + 2]
        pair.presence_threshold = ends.mean().item()
        found = separate(pair, image)
        assert found.digits == lengths.indices[:digits_there].tolist()
        torch.testing.assert_close(found.lengths, out.lengths[0])
        ink = torch.zeros_like(image)
        for digit, picture in zip(found.digits, found.pictures, strict=True):
            torch.testing.assert_close(picture, pair.decode(out.poses, torch.tensor([digit]))[0].detach())
            ink += picture
        torch.testing.assert_close(found.unexplained, (image - ink.clamp(max=1)).clamp_min(0))
    with pytest.raises(ValueError, match="this model reads"):
        separate(pair, image[..., :28])


def test_the_measure_of_the_paper_by_hand(pair, digits):
    pair.eval().presence_threshold = 0.3
    found = evaluate_overlap(pair, digits, batch_size=7)
    pairs, alone = fixed_pairs(digits)
    errors, neither, redrawn, sheet, counts = 0, 0, 0.0, 0.0, [0, 0, 0, 0]
    with torch.no_grad():
        for n in range(40):
            image, labels = to_float(pairs.images[n, None]), pairs.labels[n].tolist()
            out = pair(image)
            best = sorted(range(10), key=lambda k: -out.lengths[0, k].item())[:2]
            errors += set(best) != set(labels)
            neither += not set(best) & set(labels)
            counts[min(3, sum(length > 0.3 for length in out.lengths[0].tolist()))] += 1
            for k in range(2):
                digit = to_float(alone[n, k])
                redrawn += (pair.decode(out.poses, torch.tensor([labels[k]]))[0] - digit).square().sum().item() / 80
                sheet += (image[0] - digit).square().sum().item() / 80
    summary = found.summary()
    assert (summary["images"], summary["errors"], summary["neither"]) == (40, errors, neither / 40)
    assert summary["redrawn"] == pytest.approx(redrawn, rel=1e-4) and summary["sheet"] == pytest.approx(sheet, rel=1e-4)
    assert summary["counts"]["two"] == pytest.approx([share / 40 for share in counts])
    assert all(sum(shares) == pytest.approx(1) for shares in summary["counts"].values())
