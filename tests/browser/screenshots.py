"""Make the README's pictures: `python tests/browser/screenshots.py [FOLDER]` (default .github/screenshots)."""

import io
import sys
from pathlib import Path

import hand
from PIL import Image
from playwright.sync_api import sync_playwright

BENDS = {2: -0.12, 5: 0.1, 11: 0.08}  # slider number → how far it is moved


def save(shown, path: Path) -> None:
    """What the window, or an element of the page, shows, as a small PNG."""
    Image.open(io.BytesIO(shown.screenshot())).convert("RGB").save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1000} kB")


def bend(page) -> None:
    """Move a few sliders from where the drawing put them."""
    start = hand.pose(page)
    for number, way in BENDS.items():
        hand.field(page, number).fill(f"{start[number - 1] + way:.3f}")
        hand.field(page, number).press("Enter")
    hand.settle(page)
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(0, 0)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else hand.ROOT / ".github" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    process, url = hand.start_app()
    with sync_playwright() as playwright:
        browser = hand.open_browser(playwright)
        for theme, digit in (("light", 2), ("dark", 3)):
            page = hand.visit(browser.new_context(viewport=hand.DESKTOP), url, theme)
            hand.draw(page, hand.DIGITS[digit])
            hand.settle(page)
            bend(page)
            save(page, folder / f"desktop-{theme}.png")
            if theme == "light":
                page.locator("#votes canvas").scroll_into_view_if_needed()
                page.wait_for_function("!document.querySelector('#votes :is(.stale, canvas[aria-label*=yet])')")
                save(page.locator("#votes"), folder / "votes.png")
                page.click("#morph [data-do=keep]")
                page.wait_for_selector("#morph .a.digit-2")
                page.locator("#pad canvas").scroll_into_view_if_needed()
                page.click("[data-do=clear]")
                hand.draw(page, hand.DIGITS[3])
                page.locator("#morph").scroll_into_view_if_needed()
                page.wait_for_selector("#morph [data-do=play]:enabled")
                save(page.locator("#morph"), folder / "morph.png")
                page.locator("#laboratory").scroll_into_view_if_needed()
                page.wait_for_selector("#laboratory input:enabled")
                page.locator("#laboratory input").evaluate(
                    "e => { e.value = 18; e.dispatchEvent(new Event('input', {bubbles: true})) }"
                )
                page.mouse.move(0, 0)
                save(page.locator("#laboratory"), folder / "laboratory.png")
                page.locator("#pad canvas").scroll_into_view_if_needed()
                page.click("[data-do=clear]")
                hand.draw(page, hand.OVERLAP)
                page.locator("#overlap").scroll_into_view_if_needed()
                page.wait_for_function("!document.querySelector('#overlap :is(.stale, .seen[aria-label*=yet])')")
                save(page.locator("#overlap"), folder / "overlap.png")
        phone = {**playwright.devices["Pixel 5"], "device_scale_factor": 2}
        page = hand.visit(browser.new_context(**phone), url)
        hand.draw(page, hand.DIGITS[4])
        hand.settle(page)
        save(page, folder / "phone.png")
        browser.close()
    process.terminate()
    process.wait(20)


if __name__ == "__main__":
    main()
