"""English and Chinese: the browser's language chooses, a switch changes it, nothing is said outside the table."""

import re

import hand
import pytest
from hand import DIGITS

# What can be read or heard of the page, other than Gradio's own footer: texts and the attributes that are spoken.
SPOKEN = """() => {
  const said = [];
  for (const element of document.querySelectorAll("#top *, #bottom *, .panel, .panel *")) {
    for (const node of element.childNodes) if (node.nodeType === Node.TEXT_NODE) said.push(node.nodeValue);
    for (const name of ["aria-label", "aria-valuetext", "title", "label", "alt", "placeholder"])
      said.push(element.getAttribute(name) ?? "");
  }
  return [document.title, ...said].filter((text) => text.trim());
}"""
# Every text becomes its gaps between brackets, with no word left.
BRACKETS = """() => {
  for (const texts of Object.values(words.table)) {
    for (const language of Object.keys(texts)) {
      texts[language] = `⟦${texts[language].match(/\\{[^}]*\\}/g)?.join("") ?? ""}⟧`;
    }
  }
  words.speak("en");
}"""


def visit(new_context, url, locale):
    return hand.visit(new_context(viewport=hand.DESKTOP, locale=locale), url)


@pytest.mark.parametrize(
    "locale, title, tag",
    [("de-DE", "Draw a digit", "en"), ("zh-CN", "写一个数字", "zh-Hans"), ("zh-TW", "写一个数字", "zh-Hans")],
)
def test_the_browsers_language_chooses(new_context, url, locale, title, tag):
    page = visit(new_context, url, locale)
    assert page.locator("#pad h2").inner_text() == title
    assert page.locator("html").get_attribute("lang") == tag and page.title() == page.locator("h1").inner_text()


def test_a_switch_changes_it_and_keeps_everything_else(new_context, url):
    page = visit(new_context, url, "en-GB")
    hand.draw(page, DIGITS[7])
    hand.wait_for_verdict(page, "This is a 7.")
    hand.field(page, 3).fill("0.2")
    hand.field(page, 3).press("Enter")
    hand.settle(page)
    pose, ink, bent = hand.pose(page), hand.ink_on_pad(page), hand.bent(page)
    page.click("#top .language")
    assert "这是 7。" in hand.verdict(page) and page.locator("#tweak h2").inner_text() == "改变 7 的姿态"
    assert (
        page.locator("#tweak .does").first.inner_text() and page.locator("label[for=move-slant]").inner_text() == "倾斜"
    )
    assert (hand.pose(page), hand.ink_on_pad(page)) == (pose, ink) and (hand.bent(page) == bent).all()
    assert page.locator("#top .language").inner_text() == "English"
    page.reload()  # the choice stays
    page.wait_for_selector("#tweak .note:not(:empty)")
    assert page.locator("#pad h2").inner_text() == "写一个数字"
    page.click("#top .language")
    assert page.locator("#pad h2").inner_text() == "Draw a digit"


def unsaid(page) -> list[str]:
    """What is said with letters that did not come out of the table."""
    names = r"⟦[^⟦⟧]*⟧|\bseven\.png\b|\b[AB]\b|\bms\b|[\d.,:+−/ ×-]+"
    found = []
    for text in page.evaluate(SPOKEN):
        while text != (inner := re.sub(names, "", text)):
            text = inner
        if re.search(r"\w", text):
            found.append(text)
    return found


def test_nothing_is_said_outside_the_table(page):
    page.evaluate(BRACKETS)
    assert unsaid(page) == []
    hand.draw(page, DIGITS[7])
    page.wait_for_selector("#lengths .bar.winner")
    hand.field(page, 3).fill("7")
    hand.field(page, 3).press("Enter")
    hand.settle(page)
    assert unsaid(page) == []
    page.locator("#morph .way").scroll_into_view_if_needed()
    page.click("#morph [data-do=keep]")
    page.locator("#pad canvas").scroll_into_view_if_needed()
    page.click("[data-do=clear]")
    hand.draw(page, DIGITS[2])
    for panel in ("morph .way", "votes canvas", "perturbations canvas", "compare tbody"):
        page.locator(f"#{panel}").scroll_into_view_if_needed()
        page.wait_for_function(
            "panel => !document.querySelector(`#${panel}`).closest('.panel').querySelector('.stale')", arg=panel
        )
        hand.settle(page)
    page.click("#morph [data-do=bend]")
    page.locator("#votes canvas").hover()
    page.locator("#perturbations canvas").focus()
    page.keyboard.press("ArrowRight")
    assert unsaid(page) == []
    page.click("[data-do=sample]")
    page.wait_for_selector("#pad .caption:not(:empty)")
    hand.settle(page)
    assert unsaid(page) == []
    file = {"name": "seven.png", "mimeType": "image/png", "buffer": b"junk"}
    page.set_input_files("#pad input[type=file]", file)
    page.wait_for_selector("#lengths .verdict.error")
    assert unsaid(page) == []


def test_both_languages_fit(new_context, url):
    for locale in ("en-GB", "zh-CN"):
        page = visit(new_context, url, locale)
        hand.draw(page, DIGITS[7])
        hand.settle(page)
        for width in (320, 390, 1024, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            cut = page.locator("#top button, .panel :is(button, h2, label, figcaption)").evaluate_all(
                "all => all.filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth).map((e) => e.outerHTML)"
            )
            assert cut == [], (locale, width)
