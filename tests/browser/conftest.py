"""The real app.py, once, and browsers that complain of console errors and of requests elsewhere."""

from urllib.parse import urlparse

import pytest

pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")

import hand
from playwright.sync_api import sync_playwright


@pytest.fixture(scope="session")
def url():
    process, address = hand.start_app()
    yield address
    process.terminate()
    process.wait(20)


@pytest.fixture(scope="session")
def playwright():
    with sync_playwright() as instance:
        yield instance


@pytest.fixture(scope="session")
def browser(playwright):
    instance = hand.open_browser(playwright)
    yield instance
    instance.close()


@pytest.fixture
def complaints():
    """What the browser complained of; a test that means to provoke it looks at it and clears it."""
    heard = []
    yield heard
    assert heard == []


@pytest.fixture
def new_context(browser, complaints):
    """Contexts whose pages are watched; what they complained about fails the test at its end."""
    contexts = []

    def watch(page):
        page.on("pageerror", lambda error: complaints.append(f"error in the page: {error}"))
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("request", lambda request: check(request.url))

    def check(address):
        if urlparse(address).hostname not in ("127.0.0.1", "localhost", None):
            complaints.append(f"request to {address}")

    def make(**options):
        context = browser.new_context(**options)
        context.set_default_timeout(hand.PATIENCE)
        context.on("page", watch)
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_context, url):
    """A desktop visitor on a fresh page."""
    return hand.visit(new_context(viewport=hand.DESKTOP), url)


@pytest.fixture
def phone(new_context, playwright, url):
    """A visitor with a Pixel 5."""
    return hand.visit(new_context(**playwright.devices["Pixel 5"]), url)


@pytest.fixture(scope="session")
def expected():
    """(digit, pose) → the bytes that the decoder draws, worked out here and not by the server."""
    import torch

    import capsnet

    model = capsnet.load_model("capsnet")

    def decode(digit, numbers):
        poses = torch.zeros(1, 10, 16)
        poses[0, digit] = torch.tensor(numbers)
        with torch.no_grad():
            return model.decode(poses, torch.tensor([digit]))[0, 0].mul(255).round().int().numpy()

    return decode
