"""Another network for the same drawing, and all of them side by side."""

import hand
import numpy as np
import pytest
import torch
from hand import DIGITS

import capsnet

FIRST, SECOND = "capsnet", "efficient-capsnet"
CHOICE = "#lengths select"


@pytest.fixture(scope="module")
def networks():
    return {name: capsnet.load_model(name) for name in capsnet.available_models()}


@pytest.fixture
def questions(page):
    """The names of the functions that the page asks of the server, as they go out."""
    names = []

    def note(request):
        if "component_server" in request.url:
            names.append(request.post_data_json["fn_name"])

    page.on("request", note)
    return names


def drawn_by(network, digit, pose):
    """The bytes that the network's decoder draws."""
    poses = torch.zeros(1, 10, 16)
    poses[0, digit] = torch.tensor(pose)
    with torch.no_grad():
        return network.decode(poses, torch.tensor([digit]))[0, 0].mul(255).round().int().numpy()


def look_at_table(page):
    page.locator("#compare tbody").scroll_into_view_if_needed()
    page.wait_for_function("[...document.querySelectorAll('#compare .says')].every((cell) => cell.textContent)")


def row(page, name):
    return page.locator(f"#compare tr[data-network={name}]")


def test_another_network_reads_the_same_drawing(page, networks):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    ink, before = hand.ink_on_pad(page), (hand.lengths(page), hand.pose(page))
    about = page.locator("#lengths .about-network").inner_text()
    page.select_option(CHOICE, SECOND)
    hand.wait_for_verdict(page, " 7.")
    assert hand.ink_on_pad(page) == ink
    assert hand.lengths(page) != before[0] and hand.pose(page) != before[1]
    assert page.locator("#lengths .about-network").inner_text() != about
    lows = page.locator("#tweak .slider [type=range]").evaluate_all("inputs => inputs.map(i => Number(i.min))")
    ranges = networks[SECOND].pose_range[0, 7].tolist()
    assert np.allclose(lows, np.minimum(ranges, hand.pose(page)), atol=0.0006)
    hand.field(page, 1).fill("0.25")
    hand.field(page, 1).press("Enter")
    hand.settle(page)
    expected = drawn_by(networks[SECOND], 7, hand.pose(page))
    assert np.abs(hand.bent(page).astype(int) - expected).max() <= 1
    page.select_option(CHOICE, FIRST)
    hand.wait_for_verdict(page, " 7.")
    assert (hand.lengths(page), hand.pose(page)) == before


def test_the_next_stroke_goes_to_the_chosen_network(page):
    page.select_option(CHOICE, SECOND)
    hand.wait_for_verdict(page, "empty")
    hand.draw(page, DIGITS[4][:1])
    hand.settle(page)
    with page.expect_request(lambda r: "component_server" in r.url and SECOND in r.post_data):
        hand.draw(page, DIGITS[4][1:])
    hand.wait_for_verdict(page, " 4.")
    page.click("[data-do=clear]")
    hand.wait_for_verdict(page, "empty")
    page.click("[data-do=undo]")
    hand.wait_for_verdict(page, " 4.")
    assert page.locator(CHOICE).input_value() == SECOND


def test_the_table_shows_what_every_network_says(page, networks):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    shown = hand.lengths(page)
    look_at_table(page)
    bars = "spans => [...spans.children].map((bar) => Number(bar.style.getPropertyValue('--length')))"
    assert len(networks) == page.locator("#compare tbody tr").count() >= 2
    for name in networks:
        lengths = row(page, name).locator(".spectrum").evaluate(bars)
        if name == FIRST:
            assert np.allclose(lengths, shown, atol=0.006)
        assert row(page, name).locator(".says").inner_text().endswith(" 7.") and int(np.argmax(lengths)) == 7
        assert hand.picture(page, f"#compare tr[data-network={name}] canvas").max() > 128
        assert row(page, name).locator(".took").inner_text().endswith(" ms")
        assert f"7 {max(lengths):.2f}" in row(page, name).locator(".spectrum").get_attribute("aria-label")
    pressed = "[aria-pressed=true]"
    assert row(page, FIRST).locator(pressed).count() == page.locator(f"#compare {pressed}").count() == 1
    row(page, SECOND).locator("button").click()
    hand.wait_for_verdict(page, " 7.")
    assert page.locator(CHOICE).input_value() == SECOND
    assert row(page, SECOND).locator(pressed).count() == page.locator(f"#compare {pressed}").count() == 1
    page.click("[data-do=clear]")
    page.locator("#compare tbody").scroll_into_view_if_needed()
    page.wait_for_function("[...document.querySelectorAll('#compare .says')].every((cell) => !cell.textContent)")


def test_nothing_is_compared_unseen_or_during_a_stroke(page, questions):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    page.wait_for_timeout(600)  # longer than a drawing rests before it is asked about
    assert "compare" not in questions and "answer" in questions
    page.set_viewport_size({"width": 1280, "height": 5200})  # all in view
    look_at_table(page)
    assert questions.count("compare") == 1
    page.select_option(CHOICE, SECOND)  # another network, the same drawing
    hand.draw(page, [[(0.3, 0.9), (0.5, 0.9)]], lift=False)
    page.wait_for_timeout(600)
    assert questions.count("compare") == 1
    page.mouse.up()
    hand.draw(page, [[(0.6, 0.9), (0.7, 0.9)]], lift=False)  # at once, before the last one has rested
    page.wait_for_timeout(600)
    assert questions.count("compare") == 1
    with page.expect_request(lambda r: "component_server" in r.url and r.post_data_json["fn_name"] == "compare"):
        page.mouse.up()


def test_a_lost_server_is_said_below_too(page, complaints):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    look_at_table(page)
    hand.cut_off(page)
    page.click("[data-do=sample]", force=True)
    page.click("[data-do=undo]")
    page.locator("#compare tbody").scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('#compare [role=status]').textContent.includes('server')")
    hand.reconnect(page)
    hand.settle(page)  # a question that was cut off may be complained of late
    complaints.clear()


def test_a_picture_is_compared_too(page):
    page.click("[data-do=sample]")
    page.wait_for_function("document.querySelector('#pad .caption').textContent.includes('MNIST')")
    hand.settle(page)
    look_at_table(page)
    shown = page.locator(f"#compare tr[data-network={FIRST}] .says").inner_text()
    assert hand.verdict(page).startswith(shown)


def test_the_chosen_network_again_changes_nothing(page):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    hand.field(page, 1).fill("0.25")
    hand.field(page, 1).press("Enter")
    hand.settle(page)
    bent = hand.pose(page)
    row(page, FIRST).locator("button").click()
    hand.settle(page)
    assert hand.pose(page) == bent


def test_a_phone_shows_the_table_without_scrolling_sideways(phone):
    hand.draw(phone, DIGITS[7])
    hand.wait_for_verdict(phone, " 7.")
    look_at_table(phone)
    width = phone.viewport_size["width"]
    assert phone.evaluate("document.documentElement.scrollWidth") <= width
    for cell in phone.locator("#compare :is(th, td):visible").all():
        box = cell.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
    phone.tap(f"#compare tr[data-network={SECOND}] button")
    hand.wait_for_verdict(phone, " 7.")
    assert phone.locator(CHOICE).input_value() == SECOND
