"""Bars as buttons, sliders, numbers and resets; the picture always shows the pose on the sliders."""

import hand
import numpy as np
import pytest
from hand import DIGITS

import capsnet
from capsnet.demo import words


@pytest.fixture
def seven(page):
    """A page with a drawn 7."""
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    return page


def assert_picture_matches(page, digit, expected):
    hand.settle(page)
    assert np.abs(hand.bent(page).astype(int) - expected(digit, hand.pose(page))).max() <= 1


def drag(page, number, share):
    """The slider's thumb to a share of its range, with the mouse."""
    box = hand.slider(page, number).bounding_box()
    y = box["y"] + box["height"] / 2
    now = hand.slider(page, number).evaluate("s => (s.value - s.min) / (s.max - s.min)")
    page.mouse.move(box["x"] + 8 + now * (box["width"] - 16), y)
    page.mouse.down()
    page.mouse.move(box["x"] + 8 + share * (box["width"] - 16), y, steps=12)


def test_sliders_start_at_the_drawings_pose(seven, expected):
    assert_picture_matches(seven, 7, expected)
    assert (hand.picture(seven, "#tweak .own canvas") == hand.bent(seven)).all()
    small = hand.picture(seven, "#lengths .bar >> nth=7 >> canvas")
    assert (small == hand.bent(seven)).all()
    for number in range(1, 17):
        low, value, high = hand.slider(seven, number).evaluate("s => [s.min, s.value, s.max].map(Number)")
        assert low <= value <= high and low < high
    assert seven.locator("[data-do=reset]").is_disabled()


def test_dragging_redraws_live(seven, expected):
    start, before = hand.bent(seven), hand.pose(seven)
    now = hand.slider(seven, 3).evaluate("s => (s.value - s.min) / (s.max - s.min)")
    drag(seven, 3, 0.02 if now > 0.5 else 0.98)
    seven.wait_for_function("() => document.querySelectorAll('#tweak .slider .back')[2].textContent !== ''")
    assert_picture_matches(seven, 7, expected)  # the button is still down
    seven.mouse.up()
    assert_picture_matches(seven, 7, expected)
    assert (hand.bent(seven) != start).any()
    assert (hand.picture(seven, "#tweak .own canvas") == start).all()
    bend = hand.pose(seven)[2] - before[2]
    assert seven.locator("#tweak .slider .back").nth(2).inner_text() == f"{bend:+.3f}"
    assert hand.pose(seven)[:2] + hand.pose(seven)[3:] == before[:2] + before[3:]


def test_arrow_keys(seven, expected):
    ranges = seven.locator("#tweak .slider [type=range]").evaluate_all("all => all.map(s => s.max - s.min)")
    number = int(np.argmax(ranges)) + 1
    before = hand.pose(seven)[number - 1]
    low, high = hand.slider(seven, number).evaluate("s => [s.min, s.max].map(Number)")
    middle = round((low + high) / 2, 3)
    hand.field(seven, number).fill(str(middle))
    hand.field(seven, number).press("Enter")
    hand.slider(seven, number).focus()
    for key, step in [("ArrowRight", 0.01), ("ArrowUp", 0.01), ("ArrowLeft", -0.01), ("ArrowDown", -0.01)]:
        now = hand.pose(seven)[number - 1]
        seven.keyboard.press(key)
        assert hand.pose(seven)[number - 1] == pytest.approx(now + step)
        if key == "ArrowUp":
            assert_picture_matches(seven, 7, expected)
    hand.slider(seven, number).press("End")
    assert hand.pose(seven)[number - 1] == high
    seven.locator("#tweak .slider .back").nth(number - 1).click()
    assert hand.pose(seven)[number - 1] == before


def test_number_entry(seven, expected):
    before = hand.pose(seven)
    remark = seven.locator("#tweak .slider output").nth(7)
    for typed, shown, said in [
        ("0.123", 0.123, ""),
        ("-0.9", -0.9, ""),
        ("7", 1.0, "A pose number is at most 1."),
        ("0.5", 0.5, ""),
        ("-1e9", -1.0, "A pose number is at least -1."),
    ]:
        hand.field(seven, 8).fill(typed)
        hand.field(seven, 8).press("Enter")
        assert hand.pose(seven)[7] == shown
        assert hand.slider(seven, 8).evaluate("s => Number(s.value)") == shown
        assert remark.inner_text() == said
        assert_picture_matches(seven, 7, expected)
    for keys in ("", "-e"):
        hand.field(seven, 8).fill("")
        hand.field(seven, 8).press_sequentially(keys)
        hand.field(seven, 8).press("Tab")
        assert hand.pose(seven)[7] == -1.0
        assert remark.inner_text() == "That is no number: it stays -1.000."
    seven.click("[data-do=reset]")
    assert hand.pose(seven) == before and remark.inner_text() == ""
    assert seven.evaluate("document.activeElement.id") == "pose-0"
    assert_picture_matches(seven, 7, expected)


def test_a_decimal_comma_is_a_point(seven):
    hand.field(seven, 8).fill("")
    hand.field(seven, 8).press_sequentially("-0,25")
    hand.field(seven, 8).press("Enter")
    assert hand.pose(seven)[7] == -0.25 and seven.locator("#tweak .slider output").nth(7).inner_text() == ""


def test_arrow_keys_go_on_from_what_was_typed(seven, expected):
    for typed, key, shown in [("0.5", "ArrowUp", 0.51), ("-0.7", "ArrowDown", -0.71), ("1", "ArrowUp", 1.0)]:
        hand.field(seven, 8).fill(typed)
        hand.field(seven, 8).press(key)
        assert hand.pose(seven)[7] == shown
        assert_picture_matches(seven, 7, expected)
    hand.field(seven, 8).fill("")
    hand.field(seven, 8).press("ArrowDown")  # nothing typed: from where it stood
    assert hand.pose(seven)[7] == 0.99


def test_reset_of_one_and_of_all(seven, expected):
    start, before = hand.bent(seven), hand.pose(seven)
    for number in (2, 9):
        hand.field(seven, number).fill("0.2")
        hand.field(seven, number).press("Enter")
    seven.locator("#tweak .slider .back").nth(1).click()
    assert hand.pose(seven)[1] == before[1] and hand.pose(seven)[8] == 0.2
    assert_picture_matches(seven, 7, expected)
    seven.click("[data-do=reset]")
    hand.settle(seven)
    assert hand.pose(seven) == before and (hand.bent(seven) == start).all()


def test_the_last_of_many_positions_wins(seven, expected):
    seven.evaluate(
        """async () => {
          const slider = document.querySelectorAll("#tweak .slider [type=range]")[6];
          for (let i = 0; i <= 90; i++) {
            slider.value = Number(slider.min) + (slider.max - slider.min) * Math.abs(Math.sin(i));
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            if (i % 3 === 0) await new Promise((done) => setTimeout(done, 4));
          }
        }"""
    )
    assert_picture_matches(seven, 7, expected)


def bend_without_waiting(page):
    page.evaluate(
        """() => {
          const slider = document.querySelectorAll("#tweak .slider [type=range]")[0];
          slider.value = slider.max === slider.value ? slider.min : slider.max;
          slider.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )


@pytest.mark.parametrize("action", ["reset", "bar", "clear"])
def test_a_late_picture_is_not_painted(seven, expected, action):
    start = hand.bent(seven)
    release = hand.hold_back(seven)
    bend_without_waiting(seven)
    if action == "reset":
        seven.click("[data-do=reset]")
    elif action == "bar":
        seven.click("#lengths .bar >> nth=9")
    else:
        seven.click("[data-do=clear]")
    release()
    hand.settle(seven)
    if action == "reset":
        assert (hand.bent(seven) == start).all()
    elif action == "bar":
        assert_picture_matches(seven, 9, expected)
    else:
        assert not hand.bent(seven).any()


def test_a_picture_that_does_not_come_is_not_shown(seven, expected, complaints):
    words = seven.locator("#tweak .bent figcaption")
    hand.cut_off(seven)
    hand.field(seven, 1).fill("0.3")
    hand.field(seven, 1).press("Enter")
    hand.settle(seven)
    assert words.inner_text() == "no answer from the server" and not hand.bent(seven).any()
    hand.reconnect(seven)
    hand.slider(seven, 2).press("ArrowRight")
    assert_picture_matches(seven, 7, expected)
    assert words.inner_text() == "the decoder's picture"
    assert complaints and all("ERR_FAILED" in complaint for complaint in complaints)
    complaints.clear()


def test_a_bar_chooses_the_capsule(seven, expected):
    seven.click("#lengths .bar >> nth=9")
    assert seven.locator("#tweak h2").inner_text() == "Bend the pose of the 9"
    assert seven.locator("#lengths .bar[aria-pressed=true]").get_attribute("data-capsule") == "9"
    assert seven.locator("#lengths .bar.winner").get_attribute("data-capsule") == "7"
    assert_picture_matches(seven, 9, expected)
    hand.field(seven, 1).fill("0.3")
    hand.field(seven, 1).press("Enter")
    assert_picture_matches(seven, 9, expected)
    seven.locator("#lengths .bar").nth(4).focus()
    seven.keyboard.press("Enter")
    assert seven.locator("#tweak h2").inner_text() == "Bend the pose of the 4"
    assert_picture_matches(seven, 4, expected)
    hand.draw(seven, [[(0.3, 0.52), (0.7, 0.52)]])  # a new drawing: its winner, its pose
    seven.wait_for_function("() => document.querySelector('#tweak h2').textContent === 'Bend the pose of the 7'")
    assert_picture_matches(seven, 7, expected)


def test_sliders_say_what_they_do_to_the_digit_that_is_bent(seven):
    effects = capsnet.load_model("capsnet").pose_effects

    def said():
        return seven.locator("#tweak .does").all_text_contents()

    assert said() == [words.say(words.move(effect)) for effect in effects["7"]]
    seven.click("#lengths .bar >> nth=0")
    assert said() == [words.say(words.move(effect)) for effect in effects["0"]] and any(said())
    seven.click("[data-do=clear]")
    hand.wait_for_verdict(seven, "empty")
    assert said() == [""] * 16


def test_two_visitors_do_not_meet(new_context, url, expected):
    one, other = (hand.visit(new_context(viewport=hand.DESKTOP), url) for _ in range(2))
    hand.draw(one, DIGITS[7])
    hand.wait_for_verdict(one, " 7.")
    assert "empty" in hand.verdict(other) and hand.lengths(other) == [0.0] * 10
    hand.draw(other, DIGITS[0])
    hand.wait_for_verdict(other, " 0.")
    for page in (one, other):
        hand.field(page, 1).fill("0.25")
        hand.field(page, 1).press("Enter")
    assert_picture_matches(one, 7, expected)
    assert_picture_matches(other, 0, expected)
    assert "7." in hand.verdict(one)


def test_a_finger_moves_a_slider(phone, expected):
    phone.locator("[data-do=sample]").tap()
    phone.wait_for_function("() => document.querySelector('#tweak h2').textContent !== 'Bend the pose'")
    before = hand.pose(phone)
    hand.slider(phone, 12).scroll_into_view_if_needed()
    box = hand.slider(phone, 12).bounding_box()
    now = hand.slider(phone, 12).evaluate("s => (s.value - s.min) / (s.max - s.min)")
    y, x = box["y"] + box["height"] / 2, box["x"] + 8 + now * (box["width"] - 16)
    goal = box["x"] + (8 if now > 0.5 else box["width"] - 8)
    hand.touch(phone, [(x + (goal - x) * i / 8, y) for i in range(9)])
    assert hand.pose(phone)[11] != before[11]
    digit = int(phone.locator("#tweak h2").inner_text()[-1])
    assert_picture_matches(phone, digit, expected)
    sight = phone.locator("#tweak .bent canvas").bounding_box()  # still in view above the sliders
    assert 0 <= sight["y"] < phone.viewport_size["height"] - sight["height"]


def moving(page, name):
    """The slider that moves this property alone."""
    return page.locator(f"#move-{name}")


def slant_of(pixels) -> float:
    y, x = np.nonzero(pixels > 127)
    return -((x - x.mean()) * (y - y.mean())).mean() / ((y - y.mean()) ** 2).mean()


def test_one_property_moves_through_many_numbers(seven, expected):
    start, upright = hand.pose(seven), slant_of(hand.bent(seven))
    moving(seven, "slant").focus()
    for key, times in (("ArrowRight", 12), ("ArrowLeft", 4)):
        for _ in range(times):
            seven.keyboard.press(key)
    hand.settle(seven)
    assert_picture_matches(seven, 7, expected)
    bent = hand.pose(seven)
    assert sum(abs(a - b) > 0.002 for a, b in zip(start, bent, strict=True)) >= 8
    assert slant_of(hand.bent(seven)) > upright + 0.05
    # Many small moves are one large one, and back they leave nothing behind.
    for _ in range(8):
        seven.keyboard.press("ArrowLeft")
    assert hand.pose(seven) == pytest.approx(start, abs=0.0011)
    seven.keyboard.press("ArrowRight")
    seven.locator(".move", has=moving(seven, "slant")).locator(".back").click()
    hand.settle(seven)
    assert hand.pose(seven) == start
    assert_picture_matches(seven, 7, expected)


def test_properties_follow_the_numbers(seven):
    def values():
        return [float(moving(seven, name).input_value()) for name in ("thickness", "slant", "width")]

    before = values()
    hand.field(seven, 1).fill("0.3")
    hand.field(seven, 1).press("Enter")
    assert values() != before
    seven.click("[data-do=reset]")
    assert values() == before


def test_a_digit_without_a_loop_has_no_slider_for_it(seven):
    assert moving(seven, "loop").is_disabled() and moving(seven, "thickness").is_enabled()
    seven.locator("#lengths .bar").nth(0).click()
    assert moving(seven, "loop").is_enabled()


def test_a_finger_that_scrolls_bends_nothing(phone):
    phone.locator("[data-do=sample]").tap()
    phone.wait_for_function("() => document.querySelector('#tweak h2').textContent !== 'Bend the pose'")
    before, scrolled = hand.pose(phone), phone.evaluate("scrollY")
    for range in (hand.slider(phone, 5), phone.locator("#move-thickness")):
        range.evaluate("range => range.scrollIntoView({ block: 'center' })")
        box, start = range.bounding_box(), phone.evaluate("scrollY")
        x, y = box["x"] + 0.95 * box["width"], box["y"] + box["height"] / 2
        hand.touch(phone, [(x, y - 12 * i) for i in np.arange(16)])
        phone.wait_for_function("start => scrollY > start + 50", arg=start)
        assert hand.pose(phone) == before
    assert phone.locator("[data-do=reset]").is_disabled() and phone.evaluate("scrollY") != scrolled
