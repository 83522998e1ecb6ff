"""Pictures from a file: chosen or dropped, read, refused, slow, lost on the way."""

import base64
import io

import hand
from hand import DIGITS
from PIL import Image, ImageDraw


def png(image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def seven() -> bytes:
    image = Image.new("RGB", (400, 300), "white")
    ImageDraw.Draw(image).line([(120, 60), (260, 60), (200, 240)], fill="black", width=24, joint="curve")
    return png(image)


def upload(page, name, content):
    page.locator("#pad input[type=file]").set_input_files({"name": name, "mimeType": "image/png", "buffer": content})


def test_upload_of_a_picture(page):
    upload(page, "seven.png", seven())
    hand.wait_for_verdict(page, " 7.")
    assert page.locator("#pad .caption").inner_text() == "seven.png"
    page.click("[data-do=undo]")
    hand.wait_for_verdict(page, "empty")


def test_an_unusable_upload_gives_a_sentence(page):
    files = {"junk.png": b"no picture", "nothing.png": b"", "white.png": png(Image.new("L", (50, 50), 255))}
    for name, content in files.items():
        before = hand.verdict(page)
        upload(page, name, content)
        page.wait_for_function(
            "old => document.querySelector('#lengths .verdict p').innerText !== old && document"
            ".querySelector('#lengths .verdict').classList.contains('error')",
            arg=before,
        )
        sentence = hand.verdict(page).strip()
        assert sentence.endswith(".") and len(sentence) < 160
        assert "Error" not in sentence and "Traceback" not in sentence
        assert hand.lengths(page) == [0.0] * 10
        page.click("[data-do=clear]")
        hand.wait_for_verdict(page, "The sheet is empty")
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")


def test_reading_a_file_is_said_until_it_is_read(page, complaints):
    caption = page.locator("#pad .caption")
    release = hand.hold_back(page)
    upload(page, "seven.png", seven())
    page.wait_for_function("document.querySelector('#pad .caption').textContent === 'Reading seven.png…'")
    release()
    hand.wait_for_verdict(page, " 7.")
    assert caption.inner_text() == "seven.png"
    hand.cut_off(page)
    upload(page, "other.png", seven())
    hand.wait_for_verdict(page, "The server cannot be reached.")
    assert caption.inner_text() == "other.png is not read yet."
    hand.reconnect(page)
    hand.wait_for_verdict(page, " 7.")
    assert caption.inner_text() == "other.png"
    complaints.clear()


def test_a_stroke_does_not_wait_for_a_slow_file(page):
    release = hand.hold_back(page, '"file"')
    with page.expect_request(hand.QUESTIONS):
        upload(page, "seven.png", seven())
    hand.draw(page, DIGITS[1])
    hand.wait_for_verdict(page, " 1.")
    release()
    hand.settle(page)
    assert " 1." in hand.verdict(page)


def test_a_file_that_opens_late_does_not_swallow_a_stroke(page):
    page.evaluate("() => { File.prototype.arrayBuffer = () => new Promise((done) => { window.arrive = done; }); }")
    upload(page, "seven.png", seven())
    hand.draw(page, DIGITS[1])
    page.evaluate("window.arrive(new ArrayBuffer(4))")
    hand.wait_for_verdict(page, " 1.")
    assert page.locator("#pad .caption").inner_text() == ""


def test_a_picture_dropped_on_the_pad_is_an_upload(page):
    carried = page.evaluate_handle(
        """data => {
          const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)), carried = new DataTransfer();
          carried.items.add(new File([bytes], "seven.png", { type: "image/png" }));
          return carried;
        }""",
        base64.b64encode(seven()).decode(),
    )
    drop = """(place, [kind, carried]) =>
      place.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: carried }))"""
    for place in ("#tweak", "#pad canvas"):  # what is not cancelled makes the browser open the file
        for kind in ("dragover", "drop"):
            assert not page.locator(place).evaluate(drop, [kind, carried])
        if place == "#tweak":
            hand.settle(page)
            assert "empty" in hand.verdict(page)
    hand.wait_for_verdict(page, " 7.")
    assert page.locator("#pad .caption").inner_text() == "seven.png"
