"""The strip of last drawings, links, and files."""

import base64
import io
import json

import hand
import numpy as np
import pytest
from hand import DIGITS
from PIL import Image


def draw(page, digit):
    hand.draw(page, DIGITS[digit])
    hand.wait_for_verdict(page, f" {digit}.")


def clear(page):
    page.click("[data-do=clear]")
    hand.wait_for_verdict(page, "empty")


def bend(page, number, value):
    """Type a pose number, and wait for its picture."""
    before = hand.bent(page)
    hand.field(page, number).fill(str(value))
    hand.field(page, number).press("Enter")
    page.wait_for_function("document.querySelector('#tweak [data-do=reset]').disabled === false")
    hand.settle(page)
    assert (hand.bent(page) != before).any()


def strip(page):
    return [button.get_attribute("aria-label")[-1] for button in page.locator("#keep li button").all()]


def said(page, part):
    page.wait_for_function("part => document.querySelector('#keep [role=status]').innerText.includes(part)", arg=part)


def link_to(**drawing):
    text = base64.urlsafe_b64encode(json.dumps(drawing).encode()).decode().rstrip("=")
    return f"#drawing={text}"


def test_drawings_that_were_cleared_come_back_with_their_sliders(page):
    draw(page, 7)
    bend(page, 4, 0.3)
    pose, seen, ink = hand.pose(page), hand.picture(page, "#seen .screen"), hand.ink_on_pad(page)
    assert strip(page) == []
    clear(page)
    assert strip(page) == ["7"] and (hand.picture(page, "#keep li:first-child canvas") == seen).all()
    assert page.locator("#keep [data-do=link]").is_disabled()
    draw(page, 3)
    page.locator("#lengths select").select_option("uniform-capsnet")  # the drawing stays
    hand.wait_for_verdict(page, " 3.")
    page.click("[data-do=sample]")
    page.wait_for_selector("#pad .caption:not(:empty)")
    hand.settle(page)
    assert strip(page) == ["3", "7"]
    page.click("#keep li:nth-child(2) button")
    hand.wait_for_verdict(page, " 7.")
    page.wait_for_function("document.querySelector('#tweak [data-do=reset]').disabled === false")
    hand.settle(page)
    assert hand.pose(page) == pose and hand.ink_on_pad(page) == ink
    assert page.locator("#lengths select").input_value() == "capsnet"  # the network that it was bent in
    assert len(strip(page)) == 3  # the sample waits, too


def test_undo_and_more_strokes_are_the_same_drawing(page):
    draw(page, 4)
    page.click("[data-do=undo]")
    hand.settle(page)
    hand.draw(page, DIGITS[4][1:])
    hand.wait_for_verdict(page, " 4.")
    assert strip(page) == []
    clear(page)
    page.click("[data-do=undo]")
    hand.wait_for_verdict(page, " 4.")
    clear(page)
    assert strip(page) == ["4"]


def test_the_strip_holds_eight(page):
    for _ in range(10):
        before = hand.picture(page, "#seen .screen")
        page.click("[data-do=sample]")
        page.wait_for_function("document.querySelector('#pad .caption').innerText")
        hand.settle(page)
        assert (hand.picture(page, "#seen .screen") != before).any()
    assert len(strip(page)) == 8


def test_a_link_brings_strokes_network_and_pose(new_context, url):
    context = new_context(viewport=hand.DESKTOP)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = hand.visit(context, url)
    page.locator("#lengths select").select_option("uniform-capsnet")
    draw(page, 2)
    bend(page, 2, 0.25)
    page.click("#keep [data-do=link]")
    said(page, "copied")
    link = page.evaluate("navigator.clipboard.readText()")
    assert page.url == link and len(link) < 4000
    other = new_context(viewport=hand.DESKTOP).new_page()
    other.goto(link)
    other.wait_for_selector("#tweak [data-do=reset]:not(:disabled)")
    hand.wait_for_verdict(other, " 2.")
    assert hand.pose(other) == hand.pose(page)
    assert other.locator("#lengths select").input_value() == "uniform-capsnet"
    assert np.abs(hand.bent(other).astype(int) - hand.bent(page)).max() <= 1


def test_without_the_clipboard_the_link_is_shown(page):
    page.evaluate("navigator.clipboard.writeText = () => Promise.reject(); 0")
    draw(page, 7)
    page.click("#keep [data-do=link]")
    said(page, "copy it from here")
    assert page.locator("#keep .link").input_value() == page.url


def test_a_scribble_without_end_still_fits_into_a_link(page):
    hand.draw(page, [[(0.5 + 0.3 * np.cos(i), 0.5 + 0.4 * np.sin(1.7 * i)) for i in range(300)]])
    hand.settle(page)
    page.click("#keep [data-do=link]")
    page.wait_for_function("location.hash")
    assert len(page.url) < 6200


def test_a_link_to_a_sample(page, new_context, url):
    other = new_context(viewport=hand.DESKTOP).new_page()
    other.goto(f"{url}/{link_to(network='capsnet', digit=1, pose=[0.01 * i for i in range(16)], index=0)}")
    other.wait_for_selector("#tweak [data-do=reset]:not(:disabled)")
    assert other.locator("#tweak h2").inner_text() == "Bend the pose of the 1"  # the capsule that was bent
    assert "Right answer: 7" in other.locator("#pad .caption").inner_text()
    assert hand.pose(other) == pytest.approx([0.01 * i for i in range(16)])


GOOD = {"network": "capsnet", "digit": 7, "pose": [0.0] * 16, "strokes": [[[60, 50], [210, 50], [125, 240]]]}


def test_links_that_hold_no_drawing_say_so(page):
    wrong = [
        "#drawing=",
        "#drawing=%%%",
        "#drawing=bm90IEpTT04",
        link_to(),
        link_to(**{**GOOD, "network": "nobody"}),
        link_to(**{**GOOD, "digit": 10}),
        link_to(**{**GOOD, "digit": "length"}),
        link_to(**{**GOOD, "pose": [0.0] * 15}),
        link_to(**{**GOOD, "pose": ["0"] * 16}),
        link_to(**{**GOOD, "strokes": []}),
        link_to(**{**GOOD, "strokes": [[]]}),
        link_to(**{**GOOD, "strokes": [[[1, 2, 3]]]}),
        link_to(**{**GOOD, "strokes": {"length": 1}}),
        link_to(**{**{k: v for k, v in GOOD.items() if k != "strokes"}, "index": 300}),
    ]
    for hash in wrong:
        page.evaluate("hash => { location.hash = hash }", hash)
        page.wait_for_function("document.querySelector('#pad .caption').innerText.includes('holds no drawing')")
        assert "empty" in hand.verdict(page)
        page.evaluate("document.dispatchEvent(new CustomEvent('notice'))")
    page.evaluate("hash => { location.hash = hash }", link_to(**GOOD))
    hand.wait_for_verdict(page, " 7.")


def test_a_broken_link_is_told_of_where_one_begins(new_context, url):
    page = new_context(viewport=hand.DESKTOP).new_page()
    page.goto(f"{url}/#drawing=broken")
    page.wait_for_selector("#tweak .note:not(:empty)")
    page.wait_for_function("document.querySelector('#pad .caption').innerText.includes('draw one of your own')")
    assert page.locator("#top .told").get_attribute("data-step") == "none"  # no example writes over it
    draw(page, 7)
    assert page.locator("#pad .caption").inner_text() == ""


def test_a_reload_does_not_bring_an_old_link_back(new_context, url):
    context = new_context(viewport=hand.DESKTOP)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{url}/{link_to(**GOOD)}")
    page.wait_for_selector("#lengths .verdict p")
    hand.wait_for_verdict(page, " 7.")
    assert "#drawing" in page.url
    hand.draw(page, [[(0.4, 0.5), (0.6, 0.5)]])  # the same drawing, going on
    hand.settle(page)
    assert "#drawing" in page.url
    clear(page)
    assert "#" not in page.url
    draw(page, 3)
    page.click("#keep [data-do=link]")
    said(page, "copied")
    page.reload()
    page.wait_for_selector("#lengths .verdict p")
    hand.wait_for_verdict(page, " 3.")
    page.click("[data-do=sample]")
    page.wait_for_function("!location.hash")


def test_picture_and_pose_as_files(page):
    draw(page, 3)
    bend(page, 1, 0.2)
    with page.expect_download() as download:
        page.click("#keep [data-do=picture]")
    assert download.value.suggested_filename == "digit-3.png"
    image = Image.open(io.BytesIO(download.value.path().read_bytes()))
    assert image.size == (280, 280)
    pixels = np.asarray(image.convert("L")).reshape(28, 10, 28, 10).astype(int)
    assert np.abs(pixels - hand.bent(page)[:, None, :, None]).max() <= 2
    with page.expect_download() as download:
        page.click("#keep [data-do=pose]")
    assert download.value.suggested_filename == "digit-3.json"
    told = json.loads(download.value.path().read_text())
    assert told["network"] == "capsnet" and told["digit"] == "3" and told["pose"] == hand.pose(page)
    assert len(told["strokes"]) == len(DIGITS[3])


def test_on_a_phone_the_strip_is_below_and_works(phone):
    draw(phone, 7)
    clear(phone)
    box = phone.locator("#keep .panel").bounding_box()
    assert box["width"] <= phone.viewport_size["width"]
    phone.locator("#keep li button").tap()
    hand.wait_for_verdict(phone, " 7.")
