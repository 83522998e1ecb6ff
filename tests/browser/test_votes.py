"""Who voted for what: dots on the drawing and a balance for every digit, round by round."""

import hand
import numpy as np
import pytest
import torch
from hand import DIGITS

import capsnet
from capsnet.explain import explain

CANVAS = "#votes canvas"


def look_at_votes(page):
    page.locator(CANVAS).scroll_into_view_if_needed()
    page.wait_for_function("!document.querySelector('#votes :is(.stale, canvas[aria-label*=yet])')")


def dots(page) -> int:
    """How many pixels are in the digit's colour; the drawing is grey."""
    values = page.locator(CANVAS).evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]",
    )
    red, green, blue, alpha = np.array(values).reshape(-1, 4).T
    return int(((alpha > 200) & (np.maximum(red, np.maximum(green, blue)) - np.minimum(red, blue) > 30)).sum())


def status(page) -> str:
    return page.locator("#votes [role=status]").inner_text()


def figures(page) -> list[float]:
    return [float(text) for text in page.locator("#votes .value").all_inner_texts()]


@pytest.fixture
def seven(page):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    look_at_votes(page)
    return page


def test_rounds_settle_on_the_answer(seven):
    rounds = seven.locator("#votes .rounds button")
    assert rounds.all_inner_texts() == ["Round 1", "2", "3"]
    assert rounds.nth(2).get_attribute("aria-pressed") == "true" and figures(seven) == hand.lengths(seven)
    last = dots(seven)
    rounds.nth(0).click()
    assert 0 < dots(seven) < last and figures(seven)[7] < hand.lengths(seven)[7]
    assert "for the 7" in status(seven)
    seven.locator("#votes .balance").nth(3).click()
    assert "for the 3" in status(seven) and seven.locator(CANVAS).get_attribute("class").endswith("digit-3")
    assert seven.locator("#votes .balance[aria-pressed=true]").all_inner_texts()[0].startswith("3")
    seven.locator("#lengths .bar").nth(7).click()
    assert "for the 7" in status(seven)


def test_the_dots_are_the_evidence(seven):
    """What is said of a place is what the network computes of the picture that it saw."""
    saw = seven.locator("#seen .screen").evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, 28, 28).data].filter((_, i) => i % 4 === 3)"
    )
    image = np.array(saw, np.float32).reshape(1, 28, 28) / 255
    network = capsnet.load_model("capsnet")
    expected = explain(network, torch.from_numpy(image)).by_place(-1)[7]
    row, column = divmod(int(expected.argmax()), 6)
    box = seven.locator(CANVAS).bounding_box()
    x, y = ((2 * at + 8.5) / 28 * box["width"] for at in (column, row))
    seven.locator(CANVAS).hover(position={"x": x, "y": y})
    assert status(seven).startswith(f"Row {row + 1}, column {column + 1}: 32 capsules see")
    said = float(status(seven).split("add +")[1].split(" ")[0])
    assert said == pytest.approx(expected.max().item(), abs=0.02)
    seven.mouse.move(5, 5)
    assert "All together" in status(seven)


def test_arrow_keys_go_from_place_to_place(seven):
    seven.locator(CANVAS).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowLeft"):
        seven.keyboard.press(key)
    assert status(seven).startswith("Row 2, column 1:")
    seven.keyboard.press("Escape")
    assert "All together" in status(seven)


def test_another_network_and_an_empty_sheet(seven):
    seven.select_option("#lengths select", "efficient-capsnet")
    hand.wait_for_verdict(seven, " 7.")
    seven.wait_for_function("document.querySelector('#votes .about').textContent.includes('16 capsules vote;')")
    assert seven.locator("#votes .rounds button").count() == 0
    seven.click("[data-do=clear]")
    seven.locator(CANVAS).scroll_into_view_if_needed()
    seven.wait_for_function("document.querySelector('#votes [role=status]').textContent.startsWith('Nobody')")
    assert dots(seven) == 0 and seven.locator("#votes .balance:disabled").count() == 10


def test_on_a_phone_it_fits_and_answers_a_finger(phone):
    hand.draw(phone, DIGITS[7])
    hand.wait_for_verdict(phone, " 7.")
    look_at_votes(phone)
    for part in (CANVAS, "#votes .balance >> nth=0", "#votes .rounds"):
        box = phone.locator(part).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= phone.viewport_size["width"]
    box = phone.locator(CANVAS).bounding_box()
    phone.touchscreen.tap(box["x"] + box["width"] * 8.5 / 28, box["y"] + box["height"] * 8.5 / 28)
    phone.wait_for_function("document.querySelector('#votes [role=status]').textContent.startsWith('Row 1, column 1:')")
