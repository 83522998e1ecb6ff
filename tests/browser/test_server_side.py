"""The page as a Space serves it: rendered on the server by Node, which passes everything else on."""

import hand
import numpy as np
import pytest
from hand import DIGITS
from server_side import rendering


@pytest.fixture(scope="module")
def rendered():
    process, address = hand.start_app(**rendering(True))
    yield address
    process.terminate()
    process.wait(60)


def test_a_digit_is_read_and_bent(new_context, rendered, expected):
    context = new_context(viewport=hand.DESKTOP)
    assert "x-sveltekit-page" in context.request.get(rendered).headers
    page = hand.visit(context, rendered)
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    before = hand.bent(page)
    hand.field(page, 3).fill("0.4")
    hand.field(page, 3).press("Enter")
    hand.settle(page)
    assert (hand.bent(page) != before).any()
    assert np.abs(hand.bent(page).astype(int) - expected(7, hand.pose(page))).max() <= 1
