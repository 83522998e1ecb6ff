"""The laboratory: pictures, curves and sentences follow the drawing, the kind of change, the slider and the network."""

import hand
import numpy as np
import pytest
from hand import DIGITS

from capsnet.demo import laboratory

SCRIBBLE = [[(0.15, 0.15), (0.85, 0.22), (0.18, 0.33), (0.82, 0.43), (0.2, 0.54), (0.85, 0.65), (0.15, 0.82)]]
SLIDER = "#laboratory input[type=range]"


def look(page):
    page.locator("#laboratory").scroll_into_view_if_needed()
    page.wait_for_function(
        "!document.querySelector('#laboratory .stale') && !document.querySelector('#laboratory input').disabled"
    )


def turn(page, step: int):
    page.locator(SLIDER).evaluate(
        "(e, step) => { e.value = step; e.dispatchEvent(new Event('input', {bubbles: true})) }", step
    )


def says(page) -> list[str]:
    return page.locator("#laboratory .says").all_inner_texts()


def picture(page) -> np.ndarray:
    return hand.picture(page, "#laboratory canvas")


@pytest.fixture
def seven(page):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    look(page)
    return page


def test_nothing_to_change_before_something_is_drawn(page):
    page.locator("#laboratory").scroll_into_view_if_needed()
    assert "draw a digit" in page.locator("#laboratory [role=status]").inner_text()
    assert page.locator(SLIDER).is_disabled() and picture(page).sum() == 0


def test_it_begins_with_the_drawing_and_turns_it(seven):
    assert np.abs(picture(seven) - hand.picture(seven, "#seen canvas.screen")).max() <= 3
    assert seven.locator("#laboratory .amount").inner_text() == "0 degrees clockwise"
    curves = seven.locator("#laboratory svg")
    assert [curves.nth(n).locator(".curve").count() for n in range(3)] == [10, 10, 16]
    capsules, plain, moved = says(seven)
    assert capsules.startswith("Here: a 7, ") and "The capsules stay with the 7 from −" in capsules
    assert plain.startswith("Here: a 7, ") and "plain network stays" in plain and "move most" in moved
    before = picture(seven)
    turn(seven, 24)
    steps = laboratory.steps("rotation")
    assert seven.locator("#laboratory .amount").inner_text() == f"{steps[24]:g} degrees clockwise"
    assert np.abs(picture(seven).astype(int) - before).max() > 100
    assert says(seven)[0] != capsules
    assert seven.locator("#laboratory .now").first.get_attribute("transform") == "translate(300 0)"


def test_scales_and_the_lines_that_move_most(seven):
    assert [text.split() for text in seven.locator("#laboratory .scale-x").all_inner_texts()] == [["−60", "60"]] * 3
    assert seven.locator("#laboratory figure >> nth=0 >> .scale-y").all_inner_texts() == ["0", "1"]
    marks, moved = seven.locator("#laboratory .mark").all_inner_texts(), says(seven)[2]
    assert len(marks) == 2 and all(f" {number} " in moved.replace(",", " ") for number in marks)
    assert seven.locator("#laboratory svg .faint").count() == 14


def test_a_scribble_is_no_digit_here_either(page):
    hand.draw(page, SCRIBBLE)
    hand.wait_for_verdict(page, "does not look like a digit")
    look(page)
    assert says(page)[0].startswith("Here: no digit; closest is a")


def test_another_change_another_network_another_drawing(seven):
    buttons = seven.locator("#laboratory [data-kind]")
    assert buttons.count() == 7 and buttons.first.get_attribute("aria-pressed") == "true"
    buttons.last.click()
    seven.locator("#laboratory .specimen").scroll_into_view_if_needed()  # panels above may have grown meanwhile
    seven.wait_for_function("document.querySelector('#laboratory .amount').textContent.includes('noise')")
    look(seven)
    assert buttons.last.get_attribute("aria-pressed") == "true" and "of noise" in says(seven)[0]
    moved = says(seven)[2]
    seven.evaluate("document.dispatchEvent(new CustomEvent('network', {detail: 'efficient-capsnet'}))")
    seven.wait_for_function("old => document.querySelectorAll('#laboratory .says')[2].textContent !== old", arg=moved)
    seven.get_by_role("button", name="Clear", exact=True).click()
    seven.wait_for_function("document.querySelector('#laboratory input').disabled")
    assert "draw a digit" in seven.locator("#laboratory [role=status]").inner_text()
