"""Light and dark, desktop and phone: contrast, no sideways scrolling, everything in view, words in place."""

import hand
import pytest
from hand import DIGITS

# The contrast (WCAG 2) of texts with what lies behind them, as the browser paints the colours.
CONTRAST = """elements => elements.map((element) => {
  const paint = (colours) => {
    const brush = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
    for (const colour of colours) { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...brush.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.unshift(getComputedStyle(e).backgroundColor);
  const text = [...layers, getComputedStyle(element).color];
  const [low, high] = [paint(layers), paint(text)].sort((a, b) => a - b);
  return [(high + 0.05) / (low + 0.05), element.outerHTML];
})"""
TEXTS = (
    ".top h1, .top .told, .top button, .bottom p, .bottom a, .panel h2, .panel p:not([hidden]), .panel strong, "
    ".panel button:enabled, .bar .name, .bar .value, .marks span, .axis span, "
    ".slider label, .move:not(.missing) label, .slider [type=number], .slider .back:enabled, .pictures figcaption, "
    ".panel select, #compare th, #compare th span, #compare td"
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(new_context, url, theme):
    page = hand.visit(new_context(viewport=hand.DESKTOP), url, theme)
    assert page.evaluate("document.body.classList.contains('dark')") == (theme == "dark")
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    for digit in range(10):  # every digit's colour once as the one being bent
        page.locator("#lengths .bar").nth(digit).click()
        hand.field(page, 1).fill("0.2")
        hand.field(page, 1).press("Enter")
        contrast, text = min(page.locator(TEXTS).evaluate_all(CONTRAST))
        assert contrast >= 4.5, text


# For every digit, the contrast of what its colour is used for, worked out from what the browser paints.
COLOURS = """() => {
  const panel = document.querySelector("#lengths .panel"), styles = getComputedStyle(panel);
  const dot = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const brush = dot.getContext("2d", { willReadFrequently: true });
  const paint = (layers) => {
    for (const [colour, alpha] of layers) {
      Object.assign(brush, { fillStyle: colour, globalAlpha: alpha ?? 1 });
      brush.fillRect(0, 0, 1, 1);
    }
    const [r, g, b] = [...brush.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [paint(one), paint(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  return Array.from({ length: 10 }, (_, k) => {
    const probe = panel.appendChild(Object.assign(document.createElement("i"), { className: `digit digit-${k}` }));
    const value = (name) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    const [ink, glow, screen, card] = ["--ink", "--glow", "--screen", "--card"].map(value);
    probe.remove();
    const track = [[card], [getComputedStyle(document.querySelector(".bar .track")).backgroundColor]];
    const pale = Number(getComputedStyle(document.querySelector(".bar:not(.winner) .fill")).opacity);
    const rail = [[card], [styles.getPropertyValue("--quiet"), 0.28]];
    return {
      text: contrast([[card]], [[card], [ink]]),
      mark: contrast([[ink]], [[ink], [card]]),
      chosen: contrast([[card], [ink, 0.07]], [[card], [ink, 0.07], [ink]]),
      picture: contrast([[screen]], [[screen], [glow]]),
      bar: contrast(track, [...track, [ink]]),
      other: contrast(track, [...track, [ink, pale]]),
      slider: contrast(rail, [...rail, [ink]]),
    };
  });
}"""
TEXT, GRAPHIC = 4.5, 3  # what WCAG 2 AA asks for
NEEDED = {
    "text": TEXT,
    "mark": TEXT,
    "chosen": TEXT,
    "picture": TEXT,
    "bar": GRAPHIC,
    "other": GRAPHIC,
    "slider": GRAPHIC,
}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_digits_colour_is_seen_wherever_it_stands(new_context, url, theme):
    page = hand.visit(new_context(viewport=hand.DESKTOP), url, theme)
    found = page.evaluate(COLOURS)
    assert len(found) == 10
    weak = [(k, use, one[use]) for k, one in enumerate(found) for use in NEEDED if one[use] < NEEDED[use]]
    assert weak == []


def test_no_sideways_scrolling(page):
    page.click("[data-do=sample]")
    page.wait_for_function("() => document.querySelector('#tweak h2').textContent !== 'Bend the pose'")
    for width in (320, 393, 768, 1024, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for panel in page.locator(".panel").all():
            box = panel.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width


@pytest.mark.parametrize("width", [320, 360, 390])
def test_sliders_are_long_enough_for_a_finger(page, width):
    page.set_viewport_size({"width": width, "height": 700})
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    hand.field(page, 1).fill("-0.9")
    hand.field(page, 1).press("Enter")
    row = page.locator("#tweak .slider").first
    track, number, back = (row.locator(part).bounding_box() for part in ("[type=range]", "[type=number]", ".back"))
    assert track["width"] - 16 >= 130 and track["height"] >= 44  # the thumb's middle stays 8 pixels from either end
    assert min(number["height"], back["height"]) >= 24 and min(number["width"], back["width"]) >= 44
    assert number["x"] + number["width"] <= width
    fits = "input => input.scrollWidth <= input.clientWidth"
    assert row.locator("[type=number]").evaluate(fits)
    for name in ("undo", "clear", "sample", "upload", "reset"):
        assert page.locator(f"[data-do={name}]").bounding_box()["height"] >= 44


def test_desktop_shows_everything_at_once(page):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    for selector in (
        "#pad canvas",
        "#seen .screen",
        "#lengths .bar >> nth=9",
        "#tweak .bent canvas",
        "#tweak .slider >> nth=15",
    ):
        box = page.locator(selector).bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= hand.DESKTOP["height"], selector


def test_a_caption_moves_nothing(page):
    before = page.locator("#seen").bounding_box()
    page.click("[data-do=sample]")
    page.wait_for_function("document.querySelector('#pad .caption').textContent.includes('MNIST')")
    assert page.locator("#seen").bounding_box() == before


def test_verdict_is_in_view_while_drawing_on_a_phone(phone):
    box = phone.locator("#lengths .verdict").bounding_box()
    assert box["y"] + box["height"] <= phone.viewport_size["height"]


def test_words_stand_beside_the_things(page):
    assert "A capsule is" in page.locator("#lengths").inner_text()
    assert "The length of the vector" in page.locator("#lengths").inner_text()
    assert "The pose is" in page.locator("#tweak").inner_text()
    assert "CC BY-SA 3.0" in page.locator("#bottom").inner_text()


def test_every_control_has_a_name_and_shows_its_focus(page):
    page.click("[data-do=sample]")
    page.wait_for_function("() => document.querySelector('#tweak h2').textContent !== 'Bend the pose'")
    page.locator("[data-do=undo]").focus()
    names = []
    while page.evaluate("document.activeElement.closest('.panel') !== null"):
        name, outline = page.evaluate(
            """() => {
              const e = document.activeElement;
              const name = e.ariaLabel || e.labels?.[0]?.innerText || e.innerText;
              return [name, getComputedStyle(e).outlineStyle];
            }"""
        )
        assert outline == "solid" or not names  # the first got its focus from the test, not from the keyboard
        names.append(name.strip())
        page.keyboard.press("Tab")
    rows = page.locator("#compare tbody tr").count()
    moves = page.locator("#tweak .move input:enabled").count()
    # Buttons, what shares a drawing, the choice of the network, bars, sliders, sliders with number fields, what keeps a
    # drawing, a random pair, the perturbations, networks, the laboratory's seven kinds of change (and, once it was
    # asked, its slider).
    asked = names.count("By how much")
    assert len(names) == 4 + 3 + 1 + 10 + moves + 16 * 2 + 1 + 1 + 1 + rows + 7 + asked and all(names) and moves >= 2


def test_nothing_is_remembered(page):
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, " 7.")
    hand.field(page, 1).fill("0.2")
    hand.field(page, 1).press("Enter")
    hand.settle(page)
    assert page.evaluate("Object.keys(localStorage).filter((key) => /run|history/i.test(key))") == []
    assert page.context.cookies() == []
    page.reload()
    page.wait_for_selector("#tweak .slider")
    hand.wait_for_verdict(page, "empty")
    assert hand.ink_on_pad(page) == 0
