"""Two digits at once: a drawing is taken apart, a pair from MNIST too, and everything follows the pad."""

import hand
import numpy as np
import pytest
from hand import DIGITS


def canvas(page, name: str) -> np.ndarray:
    """The RGBA of a canvas, (36, 36, 4)."""
    script = "c => Array.from(c.getContext('2d').getImageData(0, 0, 36, 36).data)"
    return np.array(page.locator(f"#overlap {name}").first.evaluate(script), np.uint8).reshape(36, 36, 4)


def finding(page) -> str:
    return page.locator("#overlap .finding").inner_text()


def look(page):
    page.locator("#overlap").scroll_into_view_if_needed()
    page.wait_for_function(
        "!document.querySelector('#overlap .stale') && !document.querySelector('#overlap .seen[aria-label*=yet]')"
    )


def test_nothing_before_something_is_drawn(page):
    page.locator("#overlap").scroll_into_view_if_needed()
    assert finding(page).startswith("There is nothing to take apart yet")
    assert page.locator("#overlap [data-do=own]").is_disabled() and canvas(page, ".seen")[..., 3].sum() == 0


@pytest.mark.parametrize("device", ["page", "phone"])
def test_two_drawn_digits_are_taken_apart(request, device):
    page = request.getfixturevalue(device)
    hand.draw(page, hand.OVERLAP)
    hand.settle(page)
    look(page)
    assert finding(page) == "Two digits: a 0 and a 7."
    alone = page.locator("#overlap .alone:not([hidden])")
    captions = sorted(alone.locator("figcaption").all_inner_texts())
    assert [caption.split(",")[0] for caption in captions] == ["the 0 alone", "the 7 alone"]
    seen, both = canvas(page, ".seen")[..., 3], canvas(page, ".both")
    digits = [canvas(page, f".alone:nth-of-type({n}) canvas") for n in (3, 4)]
    ink = [one[..., 3] for one in digits]
    assert ((both[..., 3] > 128) >= ((ink[0] > 128) | (ink[1] > 128))).all()  # both are in it
    together = np.maximum(*ink) > 100
    assert (together & (seen > 100)).sum() > 0.6 * (seen > 100).sum()  # and make up what was drawn
    colours = [one[one[..., 3] > 200][0, :3] for one in digits]
    assert np.abs(colours[0].astype(int) - colours[1]).max() > 20  # each in its own colour


def test_a_pair_from_mnist_and_back_to_the_drawing(page):
    hand.draw(page, DIGITS[7])
    hand.settle(page)
    look(page)
    assert finding(page).startswith("One digit only, a 7.")
    own = page.locator("#overlap [data-do=own]")
    assert own.is_disabled()  # it is what is shown
    page.click("#overlap [data-do=pair]")
    page.wait_for_selector("#overlap .answer:not(:empty)")
    look(page)
    first = canvas(page, ".seen")
    assert page.locator("#overlap .answer").inner_text().startswith("A pair of MNIST test digits. Right answer: ")
    page.click("#overlap [data-do=pair]")
    page.wait_for_function("document.querySelector('#overlap .stale')")
    look(page)
    assert not np.array_equal(canvas(page, ".seen"), first)
    own.click()
    page.wait_for_selector("#overlap .answer:empty", state="attached")
    assert finding(page).startswith("One digit only, a 7.") and own.is_disabled()
    page.locator("#pad canvas").scroll_into_view_if_needed()
    page.get_by_role("button", name="Clear", exact=True).click()
    page.wait_for_function("document.querySelector('#overlap .finding').innerText.startsWith('There is nothing')")
