import numpy as np
import pytest

from capsnet.habits import HABITS
from capsnet.habits.five_to_nine import seven_bar_and_stem
from capsnet.habits.parts import arc, corner
from capsnet.habits.zero_to_four import one_flag
from capsnet.pens import pen_digits, pen_strokes, smooth_curve


def uniform(seed):
    random = np.random.default_rng(seed).random
    return lambda low, high: low + (high - low) * random()


def slope(start, stop):
    """Degrees above the horizontal of a line to the right, y down."""
    return np.degrees(np.arctan2(start[1] - stop[1], stop[0] - start[0]))


def test_curve_through_corners_is_the_polyline():
    points = np.array([[0, 0], [3, 0], [3, 6.0]])
    curve = smooth_curve(points, np.array([False, True, False]))
    assert curve.shape == (13, 2)
    assert np.allclose(curve[3], [1.5, 0]) and np.allclose(curve[6], [3, 0]) and np.allclose(curve[9], [3, 3])
    assert (curve[:6, 1] == 0).all() and np.allclose(curve[6:, 0], 3)


def test_curve_without_corner_passes_its_points_with_their_common_tangent():
    curve = smooth_curve(np.array([[0, 0], [1, 1], [2, 0.0]]), np.zeros(3, bool))
    assert np.allclose(curve[[0, 6, 12]], [[0, 0], [1, 1], [2, 0]])
    # By hand: both time steps are 2^(1/4), so the tangent is (1, 0) in the middle and (1, 1.5) at a free end;
    # half-way the Hermite weights 1/2, 1/2, 1/8, -1/8 give (0.5, 0.5 + 1.5 / 8).
    assert np.allclose(curve[3], [0.5, 0.6875], atol=1e-5)
    assert np.allclose(curve[9], [1.5, 0.6875], atol=1e-5)


def test_arc_runs_clockwise_from_the_top():
    points = np.array(arc(1, 2, 3, 4, 0, 90))
    assert np.allclose(points[0], [1, -2]) and np.allclose(points[-1], [4, 2])
    assert np.allclose(arc(1, 2, 3, 4, 0, -90, grow=-0.5)[-1], [-0.5, 2])


@pytest.mark.parametrize("digit", range(10))
def test_every_habit_stays_in_its_box(digit):
    assert len(HABITS[digit]) >= 3
    for weight, habit in HABITS[digit]:
        assert weight > 0
        for seed in range(50):
            strokes = habit(uniform(seed))
            assert all(len(stroke) >= 2 for stroke in strokes)
            points = np.array([point[:2] for stroke in strokes for point in stroke])
            assert points.min() > -0.75 and points.max() < 1.25, habit.__name__
            assert np.ptp(points[:, 1]) > 0.6, habit.__name__


def test_one_and_seven_stay_apart():
    """The up-stroke of a 1 is steep; the bar of a 7 is flat and stands far from its stem."""
    for seed in range(300):
        flag = one_flag(uniform(seed), drop=0.1 + seed / 350)
        assert flag[-1] == corner(0, 0)
        assert slope(flag[0], flag[-1]) >= 33.9
        bar, stem = seven_bar_and_stem(uniform(seed), 58, 6)
        rise = slope(bar[0], bar[1])
        assert -10.1 <= rise <= 6.1
        assert slope(stem[-1], bar[-1]) - rise >= 57.9


def test_slash_of_a_zero_is_never_flat():
    slashed = next(habit for _, habit in HABITS[0] if habit.__name__ == "zero_slashed")
    for seed in range(300):
        strokes = slashed(uniform(seed))
        low, high = (strokes[1][1], strokes[1][0]) if len(strokes) == 2 else (strokes[0][-1], strokes[0][0])
        assert 25 <= slope(low, high) <= 155


def test_strokes_are_bent_but_keep_their_size():
    rng = np.random.default_rng(1)
    drawings = [pen_strokes(8, rng) for _ in range(20)]
    for strokes in drawings:
        points = np.concatenate(strokes)
        assert np.isfinite(points).all() and 0.7 < np.ptp(points[:, 1]) < 1.5
    assert len({strokes[0].tobytes() for strokes in drawings}) == 20


def test_pen_digits_look_like_mnist():
    images, labels = pen_digits(200, seed=3)
    assert images.shape == (200, 28, 28) and images.dtype == np.uint8 and labels.dtype == np.int64
    assert (np.bincount(labels) == 20).all() and len(set(labels[:20])) > 5
    for image in images:
        rows, columns = np.nonzero(image.max(1))[0], np.nonzero(image.max(0))[0]
        assert 19 <= max(np.ptp(rows), np.ptp(columns)) + 1 <= 22  # MNIST's box of 20, and antialiasing
        grid = np.arange(28) + 0.5
        centre = np.array([image.sum(0) @ grid, image.sum(1) @ grid]) / image.sum(dtype=np.int64)
        assert np.abs(centre - 14.5).max() < 0.6
        assert image.max() > 200 and 0.03 < image.mean() / 255 < 0.35


def test_same_seed_same_digits():
    images, labels = pen_digits(30, seed=5)
    again, labels_again = pen_digits(30, seed=5)
    other, _ = pen_digits(30, seed=6)
    assert (images == again).all() and (labels == labels_again).all()
    assert (images != other).any()


def test_none_and_fewer():
    images, labels = pen_digits(0, seed=0)
    assert images.shape == (0, 28, 28) and labels.shape == (0,)
    with pytest.raises(ValueError, match="0 or more, not -1"):
        pen_digits(-1, seed=0)
