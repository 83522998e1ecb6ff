"""The sheet of perturbations: drawn when it is looked at, and each of its pictures can be taken to the sliders."""

import hand
import numpy as np
import pytest
from hand import DIGITS

CANVAS = "#perturbations canvas"


def look_at_sheet(page):
    page.locator("#perturbations").scroll_into_view_if_needed()
    page.locator(CANVAS).scroll_into_view_if_needed()
    page.wait_for_function("!document.querySelector('#perturbations canvas').matches('.stale, [aria-label*=yet]')")


def sheet(page) -> np.ndarray:
    """16 × 11 pictures."""
    values = page.locator(CANVAS).evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((_, i) => i % 4 === 3)"
    )
    return np.array(values).reshape(16, 28, 11, 28).transpose(0, 2, 1, 3)


def press(page, row, column):
    box = page.locator(CANVAS).bounding_box()
    at = {"x": (column + 0.5) * box["width"] / 11, "y": (row + 0.5) * box["height"] / 16}
    page.locator(CANVAS).click(position=at)


@pytest.fixture
def seven(page):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    return page


def test_a_picture_goes_to_the_sliders(seven, expected):
    own, pose = hand.bent(seven).astype(int), hand.pose(seven)
    look_at_sheet(seven)
    pictures = sheet(seven)
    assert np.abs(pictures[:, 5] - own).max() <= 1
    for row, column in ((2, 0), (9, 10)):
        press(seven, row, column)
        hand.settle(seven)
        bent = hand.pose(seven)
        assert [i for i in range(16) if bent[i] != pose[i]] == [row]
        assert (bent[row] > pose[row]) == (column == 10)
        assert np.abs(hand.bent(seven) - pictures[row, column]).max() <= 2
        assert np.abs(hand.bent(seven) - expected(7, bent)).max() <= 1
    seven.locator("#perturbations").get_by_role("button", name="See it on the sliders").click()
    seven.wait_for_function("Math.abs(document.querySelector('#tweak').getBoundingClientRect().top) < 40")
    press(seven, 4, 5)
    assert hand.pose(seven) == pose and "own" in seven.locator("#perturbations [role=status]").inner_text()


def test_arrow_keys_choose_a_picture(seven):
    pose = hand.pose(seven)
    look_at_sheet(seven)
    seven.locator(CANVAS).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "Enter"):
        seven.keyboard.press(key)
    hand.settle(seven)
    assert [i for i in range(16) if hand.pose(seven)[i] != pose[i]] == [1]
    assert seven.locator("#perturbations [role=status]").inner_text() == "Number 2, +10 % of its range."


def test_another_capsule_and_no_drawing(seven, expected):
    look_at_sheet(seven)
    seven.locator("#lengths .bar").nth(3).click()
    look_at_sheet(seven)
    assert np.abs(sheet(seven)[0, 5] - expected(3, hand.pose(seven))).max() <= 1
    seven.click("[data-do=clear]")
    hand.wait_for_verdict(seven, "empty")
    assert sheet(seven).max() == 0
    press(seven, 3, 3)
    assert hand.pose(seven) == [0] * 16


def test_a_finger_takes_a_picture(phone):
    hand.draw(phone, DIGITS[7])
    hand.wait_for_verdict(phone, " 7.")
    look_at_sheet(phone)
    pose, box = hand.pose(phone), phone.locator(CANVAS).bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= phone.viewport_size["width"]
    phone.touchscreen.tap(box["x"] + box["width"] * 0.5 / 11, box["y"] + box["height"] * 0.5 / 16)
    hand.settle(phone)
    assert [i for i in range(16) if hand.pose(phone)[i] != pose[i]] == [0]
