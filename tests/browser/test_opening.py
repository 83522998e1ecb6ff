"""The opening: an example is written and explained until the first touch, and then the page is the visitor's."""

import json
import math

import hand
import pytest
from hand import DIGITS

from capsnet.demo import pixels

STROKES = json.loads(pixels.read("opening.json"))["strokes"]


def step(page, name):
    """Wait until this step is told; it is the only one."""
    page.wait_for_selector(f"#top .told[data-step={name}]")
    assert page.locator("#top .told").count() == 1


def told(page) -> str:
    return page.locator("#top .told").get_attribute("data-step")


@pytest.fixture
def opened(new_context, url):
    return hand.open_page(new_context(viewport=hand.DESKTOP), url)


def test_the_stored_drawing_is_a_hand_in_time():
    times = [at for points in STROKES for _, _, at in points]
    assert times == sorted(times) and times[0] == 0 and 1000 < times[-1] < 3000
    for points in STROKES:
        assert all(0 <= v <= 280 for x, y, _ in points for v in (x, y))
        paces = [math.dist(a[:2], b[:2]) / (b[2] - a[2]) for a, b in zip(points, points[1:], strict=False)]
        assert max(paces) > 1.8 * min(paces)  # no machine's even pace


def test_it_is_written_explained_and_bent_by_itself(opened):
    step(opened, "write")
    opened.wait_for_function("Number(document.querySelector('#pad .nib')?.style.opacity) === 1")
    step(opened, "see")
    assert (
        hand.verdict(opened).startswith("This is a 5.")
        and opened.locator("#pad .nib").evaluate("n => n.style.opacity") == "0"
    )
    assert opened.locator("#seen .told-of").count() == opened.locator(".told-of").count() == 1
    step(opened, "answer")
    own = hand.pose(opened)
    step(opened, "bend")
    opened.wait_for_selector("#tweak [data-do=reset]:enabled")
    opened.wait_for_selector("#tweak [data-do=reset]:disabled")
    assert hand.pose(opened) == own
    step(opened, "yours")
    assert opened.locator("#pad [data-do=undo]").is_disabled()


def test_the_pen_makes_room_for_the_first_stroke(opened):
    step(opened, "write")
    opened.wait_for_timeout(1200)
    hand.draw(opened, DIGITS[7])
    hand.wait_for_verdict(opened, " 7.")
    assert told(opened) == "none" and opened.locator(".told-of, .nib").count() == 0
    opened.click("[data-do=undo]")
    hand.wait_for_verdict(opened, "empty")
    assert opened.locator("#keep li").count() <= 1 and "5" not in str(
        [button.get_attribute("aria-label") for button in opened.locator("#keep li button").all()]
    )


def test_a_touch_elsewhere_completes_it_and_the_next_stroke_replaces_it(opened):
    step(opened, "write")
    opened.wait_for_timeout(1100)
    opened.locator("#lengths h2").click()
    hand.wait_for_verdict(opened, "This is a 5.")
    assert told(opened) == "none"
    hand.field(opened, 1).fill("0.3")
    hand.field(opened, 1).press("Enter")
    hand.draw(opened, DIGITS[1])
    hand.wait_for_verdict(opened, "This is a 1.")


def test_nothing_moves_when_it_ends(opened):
    step(opened, "write")
    before = opened.locator("#pad canvas").bounding_box()
    opened.keyboard.press("Escape")
    hand.wait_for_verdict(opened, "empty")
    assert told(opened) == "none" and opened.locator("#pad canvas").bounding_box() == before
    assert hand.ink_on_pad(opened) == 0 and opened.locator("#keep li").count() == 0


def test_looking_around_and_another_language_do_not_end_it(opened):
    step(opened, "write")
    opened.keyboard.press("Tab")
    opened.click("#top .language")
    opened.mouse.wheel(0, 300)
    step(opened, "see")
    assert "28" in opened.locator("#top .told").inner_text() and "5。" in hand.verdict(opened)


def test_who_wants_no_motion_sees_it_at_once(new_context, url):
    page = hand.open_page(new_context(viewport=hand.DESKTOP, reduced_motion="reduce"), url)
    hand.wait_for_verdict(page, "This is a 5.")
    step(page, "see")
    assert not page.locator("#seen .motion").is_visible()
    step(page, "bend")
    page.wait_for_timeout(500)
    assert page.locator("#tweak [data-do=reset]").is_disabled()


# ---- how a drawing gets into the frame


def test_the_drawing_moves_into_the_frame_once(page):
    hand.draw(page, [[(0.05 + x * 0.3, 0.05 + y * 0.3) for x, y in stroke] for stroke in DIGITS[7]])
    page.wait_for_selector("#seen .motion:visible")
    page.wait_for_selector("#seen .motion", state="hidden")
    hand.draw(page, [[(0.1, 0.2), (0.2, 0.2)]])
    hand.settle(page)
    assert not page.locator("#seen .motion").is_visible()
    page.click("#seen .again")
    assert page.locator("#seen .motion").is_visible()
    hand.draw(page, [[(0.1, 0.25), (0.2, 0.25)]], lift=False)
    assert not page.locator("#seen .motion").is_visible()
    page.mouse.up()


# Plays it, and resolves to where the drawing's ink began and ended, in pixels of the 28, while it could still be seen.
LAST_FRAME = """() => new Promise((done) => {
  const canvas = document.querySelector("#seen .motion");
  let found = null;
  document.querySelector("#seen .again").click();
  const look = () => {
    if (canvas.hidden) return done(found);
    const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const ink = [...Array(width * width).keys()].filter((i) => data[4 * i] > 220);
    const places = [ink.map((i) => i % width), ink.map((i) => Math.floor(i / width))];
    const ends = places.map((all) => [Math.min(...all), Math.max(...all) + 1].map((v) => (v * 28) / width));
    if (data[3] === 255) found = ends; // not yet fading
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


def test_it_ends_where_the_pixels_are(page):
    hand.draw(page, [[(0.5 + x * 0.4, 0.5 + y * 0.4) for x, y in stroke] for stroke in DIGITS[4]])
    hand.settle(page)
    page.wait_for_selector("#seen .motion", state="hidden")
    drawn = page.evaluate(LAST_FRAME)
    assert drawn
    seen = hand.picture(page, "#seen .screen")
    for (low, high), pixel in zip(drawn, reversed((seen > 127).nonzero()), strict=True):
        assert abs(low - min(pixel)) < 1.2 and abs(high - max(pixel) - 1) < 1.2


def test_a_picture_has_no_way_into_the_frame(page):
    page.click("[data-do=sample]")
    page.wait_for_selector("#pad .caption:not(:empty)")
    hand.settle(page)
    assert not page.locator("#seen .again").is_visible() and not page.locator("#seen .motion").is_visible()


# ---- without a pointer, without eyes


def test_a_digit_key_on_the_pad_brings_a_digit(page):
    page.keyboard.press("Tab")
    for _ in range(20):
        if page.evaluate("document.activeElement.matches('#pad canvas')"):
            break
        page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert page.evaluate("document.activeElement.matches('#pad canvas')") and outline == "solid"
    for digit in "36":
        page.keyboard.press(digit)
        page.wait_for_function(
            "end => document.querySelector('#pad .caption').textContent.endsWith(end)", arg=f"answer: {digit}."
        )
    assert "0 to 9" in page.locator("#pad canvas").get_attribute("aria-label")


def test_the_verdict_is_heard_once_it_has_settled(page):
    page.evaluate(
        """() => {
          window.heard = [];
          const place = document.querySelector("#lengths [role=status]");
          new MutationObserver(() => window.heard.push(place.textContent)).observe(place, { childList: true });
        }"""
    )
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    page.wait_for_function("window.heard.length")
    page.wait_for_timeout(300)
    (heard,) = page.evaluate("window.heard")
    assert heard.startswith("This is a 7. Its capsule is")
    names = [bar.get_attribute("aria-label") for bar in page.locator("#lengths .bar").all()]
    figures = page.locator("#lengths .value").all_inner_texts()
    assert [name.split("length ")[1][:4] for name in names] == figures
    assert page.locator("#lengths .verdict[role]").count() == 0
