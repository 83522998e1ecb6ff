"""The drawing pad: mouse, finger, undo, clear, samples, and a server that is away."""

import base64

import hand
import numpy as np
import pytest
from hand import DIGITS


def test_every_digit_is_read_and_cleared_away(page):
    assert "empty" in hand.verdict(page)
    for digit, strokes in DIGITS.items():
        assert hand.lengths(page) == [0.0] * 10
        hand.draw(page, strokes)
        hand.wait_for_verdict(page, f" {digit}.")
        assert int(np.argmax(hand.lengths(page))) == digit
        assert page.locator("#lengths .bar.winner").get_attribute("data-capsule") == str(digit)
        assert hand.picture(page, "#seen .screen").max() > 200
        assert hand.bent(page).max() > 100
        page.click("[data-do=clear]")
        hand.wait_for_verdict(page, "empty")
        assert hand.ink_on_pad(page) == 0
        assert not hand.picture(page, "#seen .screen").any() and not hand.bent(page).any()
        assert hand.slider(page, 1).is_disabled()


def test_a_scribble_is_no_digit_and_its_pictures_stay(page):
    hand.draw(page, [[(0.15, 0.15), (0.85, 0.22), (0.18, 0.33), (0.82, 0.43), (0.2, 0.54), (0.85, 0.65), (0.15, 0.82)]])
    hand.wait_for_verdict(page, "does not look like a digit")
    assert page.locator("#lengths .marks").inner_text() == "?"
    pictures = page.locator("#lengths .bar canvas").count()
    assert pictures == 10 and hand.picture(page, "#lengths .bar.winner canvas").max() > 100
    assert "is not what you drew" in hand.verdict(page)
    page.click("[data-do=clear]")
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")


def test_bars_move_during_the_stroke(page):
    hand.draw(page, DIGITS[7], lift=False)
    hand.wait_for_verdict(page, " 7.")
    before = hand.lengths(page)
    for point in [(0.2, 0.85), (0.2, 0.5), (0.8, 0.5), (0.8, 0.85)]:
        page.mouse.move(*hand.on_pad(page, point), steps=3)
    page.wait_for_function(
        """old => [...document.querySelectorAll("#lengths .value")]
             .some((value, k) => Number(value.textContent) !== old[k])""",
        arg=before,
    )
    page.mouse.up()


def test_undo_takes_back_strokes_and_clear(page):
    hand.draw(page, DIGITS[1])
    hand.wait_for_verdict(page, " 1.")
    alone, ink = hand.lengths(page), hand.ink_on_pad(page)
    hand.draw(page, [[(0.2, 0.3), (0.8, 0.7)]])
    page.wait_for_function(
        "old => document.querySelectorAll('#lengths .value')[1].textContent !== old", arg=f"{alone[1]:.2f}"
    )
    page.click("[data-do=undo]")
    page.wait_for_function(
        "old => document.querySelectorAll('#lengths .value')[1].textContent === old", arg=f"{alone[1]:.2f}"
    )
    assert hand.lengths(page) == alone and hand.ink_on_pad(page) == ink
    page.click("[data-do=clear]")
    hand.wait_for_verdict(page, "empty")
    page.click("[data-do=undo]")
    hand.wait_for_verdict(page, " 1.")
    page.click("[data-do=undo]")
    hand.wait_for_verdict(page, "empty")
    assert page.locator("[data-do=undo]").is_disabled()


def test_size_and_place_do_not_matter(page):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    large = hand.picture(page, "#seen .screen").astype(int)
    page.click("[data-do=clear]")
    hand.wait_for_verdict(page, "empty")
    hand.draw(page, [[(0.6 + 0.35 * x, 0.02 + 0.35 * y) for x, y in stroke] for stroke in DIGITS[7]])
    hand.wait_for_verdict(page, " 7.")
    assert np.abs(hand.picture(page, "#seen .screen").astype(int) - large).mean() < 8


def test_a_sample_goes_to_the_network_as_it_is(page):
    from capsnet.demo import examples

    seen = set()
    for _ in range(3):
        page.click("[data-do=sample]")
        page.wait_for_function(
            "old => !old.includes(document.querySelector('#pad .caption').textContent)", arg=[*seen, ""]
        )
        caption = page.locator("#pad .caption").inner_text()
        seen.add(caption)
        every = examples.digits()
        place = list(every["numbers"]).index(int(caption.split()[3].rstrip(".")))
        assert caption.endswith(f"Right answer: {every['labels'][place]}.")
        wanted = base64.b64encode(every["images"][place].tobytes()).decode()
        page.wait_for_function(
            """wanted => {
              const brush = document.querySelector("#seen .screen").getContext("2d");
              const pixels = brush.getImageData(0, 0, 28, 28).data;
              return btoa(String.fromCharCode(...pixels.filter((_, i) => i % 4 === 3))) === wanted;
            }""",
            arg=wanted,
        )
        assert hand.ink_on_pad(page) > 0
    hand.draw(page, DIGITS[1])  # drawing starts a sheet of its own
    hand.wait_for_verdict(page, " 1.")


def test_a_late_sample_does_not_swallow_a_stroke(page):
    release = hand.hold_back(page, '"sample"')
    with page.expect_request(hand.QUESTIONS):
        page.click("[data-do=sample]")
    hand.draw(page, DIGITS[7], lift=False)
    release()
    hand.settle(page)
    page.mouse.move(*hand.on_pad(page, (0.44, 0.88)))  # the stroke goes on
    page.mouse.up()
    hand.wait_for_verdict(page, " 7.")
    assert page.locator("#pad .caption").inner_text() == ""
    page.click("[data-do=undo]")
    hand.wait_for_verdict(page, "empty")


@pytest.mark.parametrize("button", ["clear", "undo"])
def test_a_button_by_keyboard_ends_the_stroke(page, button):
    hand.draw(page, DIGITS[7], lift=False)
    page.locator(f"[data-do={button}]").focus()
    page.keyboard.press("Enter")
    page.mouse.move(*hand.on_pad(page, (0.2, 0.2)), steps=3)
    page.mouse.up()
    hand.wait_for_verdict(page, "empty")
    assert hand.ink_on_pad(page) == 0


def test_a_lost_server_is_said_and_found_again(page, complaints):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    ink = hand.ink_on_pad(page)
    hand.cut_off(page)
    hand.draw(page, [[(0.3, 0.52), (0.4, 0.52)]])
    hand.wait_for_verdict(page, "The server cannot be reached.")
    assert hand.lengths(page) == [0.0] * 10 and not hand.bent(page).any()
    assert not hand.picture(page, "#seen .screen").any() and hand.slider(page, 1).is_disabled()
    page.click("[data-do=sample]")
    hand.settle(page)
    assert "cannot be reached" in page.locator("#pad .caption").inner_text()
    assert hand.ink_on_pad(page) > ink
    hand.reconnect(page)  # and no stroke: the page asks by itself
    hand.wait_for_verdict(page, " 7.")
    assert hand.bent(page).any() and page.locator("#pad .caption").inner_text() == ""
    assert complaints and all("ERR_FAILED" in complaint for complaint in complaints)
    complaints.clear()


def test_a_silent_server_is_said_and_its_late_answer_counts(page):
    release = hand.hold_back(page)
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, "The server cannot be reached.")
    release()
    hand.wait_for_verdict(page, " 7.")


def test_the_focus_stays_on_a_button_that_works(page):
    def focused():
        return page.evaluate("document.activeElement.dataset.do")

    hand.draw(page, DIGITS[1])
    page.locator("[data-do=clear]").focus()
    page.keyboard.press("Enter")
    assert focused() == "undo"
    page.keyboard.press("Enter")
    hand.wait_for_verdict(page, " 1.")
    page.keyboard.press("Enter")
    hand.wait_for_verdict(page, "empty")
    assert focused() == "sample"
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('#pad .caption').textContent.includes('MNIST')")


def test_a_busy_server_is_told_of(page):
    release = hand.hold_back(page)
    hand.draw(page, DIGITS[7])
    page.wait_for_function("document.querySelector('#pad .caption').innerText.startsWith('Many people are drawing')")
    release()
    hand.wait_for_verdict(page, " 7.")
    assert page.locator("#pad .caption").inner_text() == ""


def test_a_scribble_without_end_is_kept_small(page):
    sent = []
    page.on(
        "request",
        lambda request: sent.append(len(request.post_data or "")) if request.method == "POST" else None,
    )
    page.evaluate(
        """async () => {
          const canvas = document.querySelector("#pad canvas"), box = canvas.getBoundingClientRect();
          canvas.setPointerCapture = () => {};
          const fire = (type, t) => canvas.dispatchEvent(new PointerEvent(type, {
            bubbles: true, cancelable: true, isPrimary: true, pointerId: 1, button: 0,
            clientX: box.x + 140 + 120 * Math.cos(t * 1.7), clientY: box.y + 140 + 120 * Math.sin(t) }));
          fire("pointerdown", 0);
          for (let i = 1; i < 6000; i++) {
            fire("pointermove", i / 10);
            if (i % 500 === 0) await new Promise(requestAnimationFrame);
          }
          fire("pointerup", 600);
        }"""
    )
    page.wait_for_function("!document.querySelector('#lengths .verdict p').innerText.includes('The sheet is empty')")
    assert 0 < max(sent) < 70_000
    page.click("[data-do=clear]")
    hand.wait_for_verdict(page, "empty")


def test_one_finger_draws_without_scrolling(phone):
    for digit in (7, 0):
        phone.evaluate("scrollTo(0, 40)")
        hand.touch(phone, [hand.on_pad(phone, point) for point in DIGITS[digit][0]])
        hand.wait_for_verdict(phone, f" {digit}.")
        assert phone.evaluate("scrollY") == 40
        phone.locator("[data-do=clear]").tap()
        hand.wait_for_verdict(phone, "empty")


def test_ink_is_crisp_on_a_dense_screen(phone):
    ratio = phone.evaluate("devicePixelRatio")
    size = phone.locator("#pad canvas").evaluate("canvas => [canvas.width, canvas.clientWidth]")
    assert ratio > 2 and abs(size[0] - size[1] * ratio) < 1
