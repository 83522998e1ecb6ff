"""Two drawings: a slider and a film from one to the other, and one in the style of the other."""

import io

import hand
import numpy as np
import pytest
from hand import DIGITS
from PIL import Image

SLANTED = [[(x + 0.45 * (0.5 - y), y) for x, y in stroke] for stroke in DIGITS[4]]


def keep(page):
    """Keep what is on the pad as A."""
    page.locator("#morph .way").scroll_into_view_if_needed()
    page.click("#morph [data-do=keep]")
    page.wait_for_selector("#morph .a:not(.digit-none)")


def draw_anew(page, strokes, digit):
    """Put another drawing on the pad, then look at both."""
    page.locator("#pad canvas").scroll_into_view_if_needed()
    page.click("[data-do=clear]")
    hand.draw(page, strokes)
    hand.wait_for_verdict(page, f" {digit}.")
    look(page, digit)


def look(page, digit):
    page.locator("#morph .way").scroll_into_view_if_needed()
    page.wait_for_selector(f"#morph .way:not(.stale) .b.digit-{digit}")
    hand.settle(page)


def status(page) -> str:
    return page.locator("#morph [role=status]").inner_text()


def between(page) -> np.ndarray:
    return hand.picture(page, "#morph .between").astype(int)


def slide(page, step: int):
    page.locator("#morph [type=range]").fill(str(step))


def ended(page, kept) -> bool:
    """Whether the slider's ends are what the decoder draws of this pose and of the one on the sliders."""
    found = []
    for step, picture in ((0, kept), (30, hand.bent(page).astype(int))):
        slide(page, step)
        found.append(np.abs(between(page) - picture).max() <= 2)
    return all(found)


@pytest.fixture
def pair(page):
    """A is a slanted 4, B a 7."""
    hand.draw(page, SLANTED)
    hand.wait_for_verdict(page, " 4.")
    keep(page)
    draw_anew(page, DIGITS[7], 7)
    return page


def test_first_a_then_b(page):
    assert "Draw a digit" in status(page) and page.locator("#morph :is(button, input):enabled").count() == 0
    hand.draw(page, DIGITS[4])
    hand.wait_for_verdict(page, " 4.")
    four = hand.bent(page).astype(int)
    assert "Keep this drawing" in status(page)
    keep(page)
    assert "draw B" in status(page) and page.locator("#morph [type=range]").is_disabled()
    assert np.array_equal(hand.picture(page, "#morph .a canvas"), hand.picture(page, "#seen .screen"))
    draw_anew(page, DIGITS[7], 7)
    assert status(page).startswith("From a 4 to a 7") and between(page).max() > 100
    assert ended(page, four)
    assert page.locator("#morph [type=range]").get_attribute("aria-valuetext") == "100 of 100 from the 4 to the 7"
    page.locator("#pad canvas").scroll_into_view_if_needed()
    page.click("[data-do=clear]")
    hand.wait_for_verdict(page, "empty")
    assert "draw B" in status(page) and between(page).max() == 0 and page.locator("#morph .a.digit-4").count() == 1


def test_another_network_reads_both_anew(pair):
    pair.select_option("#lengths select", "efficient-capsnet")
    hand.wait_for_verdict(pair, " 7.")
    look(pair, 7)
    pair.wait_for_function("document.querySelector('#morph .way').matches(':not(.stale)')")
    assert status(pair).startswith("From a 4 to a 7")
    slide(pair, 30)
    assert np.abs(between(pair) - hand.bent(pair)).max() <= 2


def test_it_plays_until_the_slider_is_touched(pair):
    slider = pair.locator("#morph [type=range]")
    slide(pair, 0)
    play = pair.locator("#morph [data-do=play]")
    play.click()
    assert play.inner_text() == "Stop"
    pair.wait_for_function("Number(document.querySelector('#morph [type=range]').value) > 5")
    slider.focus()
    pair.keyboard.press("ArrowLeft")
    assert play.inner_text() == "Play"
    stands = slider.input_value(), between(pair).tolist()
    pair.wait_for_timeout(300)
    assert (slider.input_value(), between(pair).tolist()) == stands
    play.click()
    pair.evaluate("scrollTo(0, document.body.scrollHeight)")
    pair.wait_for_function("document.querySelector('#morph [data-do=play]').textContent === 'Play'")


def test_a_film_is_saved(pair):
    slide(pair, 30)
    seven = between(pair)
    with pair.expect_download() as saved:
        pair.click("#morph [data-do=film]")
    film = Image.open(io.BytesIO(saved.value.path().read_bytes()))
    assert saved.value.suggested_filename == "morph-4-to-7.gif" and status(pair) == "Saved as morph-4-to-7.gif."
    assert film.format == "GIF" and film.n_frames == 60 and film.size == (280, 280) and film.info["loop"] == 0
    film.seek(30)
    assert np.abs(np.asarray(film.convert("L"), int)[5::10, 5::10] - seven).max() <= 2


def test_style_goes_to_the_sliders(pair, expected):
    own = hand.pose(pair)
    assert pair.locator("#morph .says").inner_text().startswith("Taken over, as far as a 7 goes: thickness, slant")
    styled = hand.picture(pair, "#morph .style figure:nth-child(2) canvas").astype(int)
    pair.click("#morph [data-do=bend]")
    hand.settle(pair)
    pair.wait_for_function("Math.abs(document.querySelector('#tweak').getBoundingClientRect().top) < 40")  # in view
    assert hand.pose(pair) != own and np.abs(hand.bent(pair) - styled).max() <= 1
    assert np.abs(hand.bent(pair) - expected(7, hand.pose(pair))).max() <= 1
    slant = pair.locator("#move-slant")
    assert float(slant.input_value()) > slant.locator("xpath=..").evaluate(
        "(rail) => { const {min, max} = rail.querySelector('input');"
        " return Number(min) + (max - min) * rail.style.getPropertyValue('--start'); }"
    )
    assert "sliders" in status(pair)
    pair.locator("#lengths .bar").nth(3).click()  # from another capsule's sliders it is B's again
    pair.click("#morph [data-do=bend]")
    hand.settle(pair)
    assert np.abs(hand.bent(pair) - styled).max() <= 1
    assert pair.locator("#lengths .bar[aria-pressed=true]").get_attribute("data-capsule") == "7"


def test_what_cannot_be_read_or_reached_is_one_sentence(pair, complaints):
    hand.cut_off(pair)
    pair.click("#morph [data-do=film]")
    pair.wait_for_function("document.querySelector('#morph [role=status]').textContent.startsWith('The server')")
    pair.locator("#pad canvas").scroll_into_view_if_needed()
    pair.click("[data-do=clear]")
    hand.draw(pair, DIGITS[3])
    pair.locator("#morph .way").scroll_into_view_if_needed()
    pair.wait_for_function("document.querySelector('#morph [role=status]').textContent.startsWith('The server')")
    assert pair.locator("#morph [data-do=play]").is_disabled() and between(pair).max() == 0
    hand.reconnect(pair)
    complaints.clear()
    file = {"name": "junk.png", "mimeType": "image/png", "buffer": b"junk"}
    pair.set_input_files("#pad input[type=file]", file)
    pair.locator("#morph .way").scroll_into_view_if_needed()
    pair.wait_for_function("document.querySelector('#morph [role=status]').textContent.startsWith('B: This file')")
    assert between(pair).max() == 0


def test_on_a_phone_it_fits_and_answers_a_finger(phone):
    hand.draw(phone, SLANTED)
    hand.wait_for_verdict(phone, " 4.")
    four = hand.bent(phone).astype(int)
    keep(phone)
    draw_anew(phone, DIGITS[7], 7)
    for part in (".a", ".between", ".way .b", "[type=range]", "[data-do=film]", ".style figure:nth-child(2)"):
        box = phone.locator(f"#morph {part}").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= phone.viewport_size["width"]
    for part in ("keep", "play", "film", "bend"):
        assert phone.locator(f"#morph [data-do={part}]").bounding_box()["height"] >= 44
    box = phone.locator("#morph [type=range]").bounding_box()
    phone.touchscreen.tap(box["x"] + 8, box["y"] + box["height"] / 2)
    assert np.abs(between(phone) - four).max() <= 2
