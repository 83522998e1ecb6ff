"""How digits are told from what is none: the area under the curve by counting, nonsense, and the sets of a folder."""

import numpy as np
import pytest
import torch

from capsnet.data import DataError
from capsnet.evaluation import drawn_sets
from capsnet.models import create_model
from capsnet.outsiders import auroc, evaluate_rejection, nonsense, scribbles
from capsnet.pens import pen_digits


def test_auroc_is_the_share_of_pairs_in_order():
    assert auroc(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])) == 1
    assert auroc(torch.tensor([3.0, 4.0]), torch.tensor([1.0, 2.0])) == 0
    assert auroc(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 3.0])) == (1 + 0 + 1 + 0.5) / 4
    generator = torch.Generator().manual_seed(0)
    low, high = torch.randint(0, 9, (41,), generator=generator), torch.randint(3, 12, (57,), generator=generator)
    pairs = [(b > a) + 0.5 * (b == a) for a in low.tolist() for b in high.tolist()]
    assert auroc(low.float(), high.float()) == pytest.approx(sum(pairs) / len(pairs))


def test_scribbles_are_drawn_lines_and_repeat():
    some = scribbles(20, seed=1)
    assert some.shape == (20, 1, 28, 28) and 0 <= some.min() and some.max() == 1
    ink = some.flatten(1).sum(1)
    assert ink.min() > 30 and ink.max() < 500
    assert torch.equal(scribbles(20, seed=1), some) and not torch.equal(scribbles(20, seed=2), some)


def test_nonsense_keeps_the_number_and_shuffles_the_pixels():
    digits = torch.from_numpy(pen_digits(6, seed=0)[0])[:, None] / 255
    sets = dict(nonsense(digits))
    assert list(sets) == ["scribbles", "noise", "shuffled pixels"]
    assert all(images.shape == digits.shape for images in sets.values())
    shuffled = sets["shuffled pixels"]
    assert torch.equal(shuffled.flatten(1).sort(1).values, digits.flatten(1).sort(1).values)
    moved = [order != digits[n].flatten().tolist() for n, order in enumerate(shuffled.flatten(1).tolist())]
    assert all(moved) and not torch.equal(shuffled[0] > 0, shuffled[1] > 0)


@pytest.fixture
def folder(tmp_path):
    """Four digits and a letter, three letters and a digit, and a sheet without ink among the letters."""
    images, labels = pen_digits(5, seed=0)
    names = [str(label) for label in labels]
    np.savez(tmp_path / "digits.npz", images=images, labels=np.array([*names[:4], "x"]))
    letters = np.concatenate([images[:4], np.full((1, 28, 28), 255, np.uint8)])
    np.savez(tmp_path / "letters.npz", images=letters, labels=np.array(["a", "b", "c", "1", "d"]))
    return tmp_path


def test_sets_are_of_digits_or_of_what_is_none(folder):
    (_, digits, labels), (name, letters, none) = drawn_sets(folder, list("0123456789"))
    assert len(digits) == len(labels) == 4 and name == "letters" and len(letters) == 4 and none is None
    with pytest.raises(DataError, match="holds no sets"):
        list(drawn_sets(folder / "nowhere", list("0123456789")))


@pytest.mark.parametrize("threshold, share", [(1e-6, 1), (2.0, 0)])
def test_rejections_are_counted(small, digits, folder, threshold, share):
    model = create_model("small").eval()
    model.rejection_threshold = threshold
    found = evaluate_rejection(model, digits, folder)
    assert list(found.digits) == ["digits"] and found.digits["digits"].images <= 4
    assert found.digits["digits"].rejected == share * found.digits["digits"].images
    assert list(found.outsiders) == ["letters", "scribbles", "noise", "shuffled pixels"]
    assert [its.images for its in found.outsiders.values()] == [3, 40, 40, 40]  # the empty sheet is none
    for its in found.outsiders.values():
        assert its.rejected == share * its.images
        assert all(0 <= area <= 1 for area in (its.auroc, its.by_picture, its.by_length))
    summary = found.summary()
    assert summary["threshold"] == threshold and summary["outsiders"]["noise"]["images"] == 40


def test_without_a_threshold_nothing_is_rejected(small, digits, folder):
    with pytest.raises(ValueError, match="does not say how strange an image is that is no digit"):
        evaluate_rejection(create_model("small"), digits, folder)
