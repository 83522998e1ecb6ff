"""Pen strokes become MNIST-like pictures, or one sentence says why not."""

import math
import time

import numpy as np
import pytest
import torch
from sheets import DIGITS, FOUR, SEVEN, TWO, ZERO, centre_of_mass, difference, ink_box, sheet

from capsnet.digits import EmptyDrawingError, InvalidDrawingError, prepare_digit, rasterize
from capsnet.strokes import coverage


def test_upright_line_by_hand():
    """A line of 20 with its round ends lies on column 14, y 5.75 to 23.25; ink is 1.75 less the distance."""
    picture = prepare_digit({"strokes": [[[3, 0], [3, 10]]]})
    expected = torch.zeros(1, 28, 28)
    expected[0, 5:24, 14] = 1.0
    expected[0, 6:23, [13, 15]] = 0.75
    expected[0, [4, 24], 14] = 1.75 - 1.25
    for row in (5, 23):
        expected[0, row, [13, 15]] = 1.75 - math.hypot(1, 0.25)
    for row in (4, 24):
        expected[0, row, [13, 15]] = 1.75 - math.hypot(1, 1.25)
    assert picture.dtype == torch.float32
    torch.testing.assert_close(picture, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("size, width", [(28, 2.5), (28, 4.0), (14, 1.25), (40, 1.0)])
def test_coverage_equals_a_slow_loop(size, width):
    rng = np.random.default_rng(size)
    segments = rng.uniform(3, size - 3, (7, 2, 2))
    segments[0, 1] = segments[0, 0]
    expected = np.zeros((size, size))
    for row in range(size):
        for column in range(size):
            point, nearest = np.array([column + 0.5, row + 0.5]), math.inf
            for start, end in segments:
                along = end - start
                share = np.clip((point - start) @ along / max(along @ along, 1e-12), 0, 1)
                nearest = min(nearest, np.linalg.norm(point - start - share * along))
            expected[row, column] = min(max(width / 2 + 0.5 - nearest, 0), 1)
    np.testing.assert_allclose(coverage(segments, size, width), expected, atol=1e-5)


@pytest.mark.parametrize("strokes", DIGITS)
def test_strokes_fill_mnists_box_and_balance_in_its_centre(strokes):
    picture = prepare_digit({"strokes": strokes})
    assert picture.shape == (1, 28, 28)
    assert max(ink_box(picture)) in (20, 21)  # 20 wide, but not on whole pixels
    assert centre_of_mass(picture) == pytest.approx((14.5, 14.5), abs=0.1)
    assert picture.min() == 0 and picture.max() == 1


@pytest.mark.parametrize("scale, shift", [(0.003, 0), (1000, -3e5), (0.1, 250)])
def test_units_and_place_do_not_matter(scale, shift):
    moved = [[[x * scale + shift, y * scale + shift] for x, y in stroke] for stroke in TWO]
    assert difference({"strokes": moved}, TWO) < 1e-4


def test_other_keys_are_ignored_and_arrays_are_taken():
    expected = prepare_digit({"strokes": FOUR})
    assert torch.equal(prepare_digit({"strokes": FOUR, "width": 99, "size": "large"}), expected)
    assert torch.equal(prepare_digit({"strokes": [np.array(stroke) for stroke in FOUR]}), expected)
    assert torch.equal(prepare_digit({"strokes": [torch.tensor(stroke) for stroke in FOUR]}), expected)
    assert np.array_equal(rasterize([np.array(stroke, dtype=float) for stroke in FOUR]), expected[0].numpy())


def test_rasterize_takes_a_pen_width():
    thin, fat = rasterize(TWO, width=1.5), rasterize(TWO, width=4)
    assert thin.dtype == np.float32 and thin.shape == (28, 28)
    assert fat.sum() > 2 * thin.sum()


@pytest.mark.parametrize("size", [14, 20, 56, 112])
def test_other_sizes_scale_the_layout(size):
    for drawing in ({"strokes": TWO}, sheet(TWO)):
        picture = prepare_digit(drawing, size=size)
        assert picture.shape == (1, size, size)
        assert max(ink_box(picture)) == pytest.approx(20 / 28 * size, abs=1.5)
        middle = 14.5 / 28 * size
        assert centre_of_mass(picture) == pytest.approx((middle, middle), abs=0.6)


def test_resting_and_trembling_pen_leave_no_trace():
    calm = [[[x, y] for x in np.linspace(60, 200, 30) for y in [60 + abs(x - 130)]]]
    rng = np.random.default_rng(0)
    resting = [[point for point in calm[0] for _ in range(5)]]
    trembling = [[[x + dx, y + dy] for x, y in calm[0] for dx, dy in rng.normal(0, 0.3, (5, 2))]]
    torch.testing.assert_close(prepare_digit({"strokes": resting}), prepare_digit({"strokes": calm}))
    assert difference({"strokes": trembling}, calm) < 0.005


def test_tap_in_the_digit_is_ink_and_tap_beside_it_is_dropped():
    expected = prepare_digit({"strokes": ZERO})
    inside = prepare_digit({"strokes": [*ZERO, [[140, 140]]]})
    assert expected[0, 14, 14] == 0 and inside[0, 14, 14] > 0.9
    beside = prepare_digit({"strokes": [*ZERO, [[400, 270], [401, 270]], [[-90, 3]]]})
    torch.testing.assert_close(beside, expected)


def test_ink_stays_in_the_picture_where_its_mass_sits_at_one_end():
    scribble = [[x, 10 * (x % 2)] for x in range(40)] + [[200, 5]]
    picture = prepare_digit({"strokes": [scribble]})
    assert max(ink_box(picture)) in (20, 21)


@pytest.mark.parametrize(
    "strokes",
    [
        [],
        [[]],
        [[], []],
        [[[5, 5]]],
        [[[5, 5], [5, 5]]],
        [[[140, 140], [141, 140], [140, 141]]],
        [[[0, 0], [1e-310, 0]]],
    ],
)
def test_nothing_or_a_dot_is_empty(strokes):
    with pytest.raises(EmptyDrawingError, match="draw a digit"):
        prepare_digit({"strokes": strokes})


@pytest.mark.parametrize(
    "strokes",
    [
        None,
        "abc",
        3,
        {"x": 1},
        [None],
        ["ab"],
        [3],
        SEVEN[0],
        [SEVEN],
        [[["1", "2"], ["3", "4"]]],
        [[[1, 2, 3], [4, 5, 6]]],
        [[[1, 2], [3, 4, 5]]],
        [[[1, 2], None]],
        [[[True, False], [False, True]]],
        [[[0, math.nan], [1, 2]]],
        [[[0, math.inf], [1, 2]]],
        [[[1e200, 0], [0, 0]]],
        [[[10**400, 0], [0, 0]]],
        [[[1, 2]] * 1_000_000],
    ],
)
def test_wrong_strokes_get_one_sentence(strokes):
    with pytest.raises(InvalidDrawingError) as caught:
        prepare_digit({"strokes": strokes})
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_strokes_missing():
    with pytest.raises(InvalidDrawingError, match="strokes"):
        prepare_digit({"stroke": SEVEN})


def fastest(function, tries=5):
    times = []
    for _ in range(tries):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def test_strokes_are_drawn_quickly():
    """Processor time, with bounds wide enough for slow machines: about 0.5 ms and 70 ms are usual."""
    hundred = [[[140 + 80 * math.sin(a), 140 + 100 * math.cos(a)] for a in np.linspace(0, 6.28, 100)]]
    assert fastest(lambda: prepare_digit({"strokes": hundred})) < 0.01
    scribble = [(np.random.default_rng(0).random((100_000, 2)) * 280).tolist()]
    assert fastest(lambda: prepare_digit({"strokes": scribble})) < 0.5
