"""A hand for the browser: digits as strokes, drawn with mouse or finger, and eyes for what the page shows."""

import base64
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1280, "height": 800}
PATIENCE = 120_000  # milliseconds: only what is broken takes so long, however busy the machine


def arc(cx, cy, rx, ry, start, end, steps=10):
    """Points on an ellipse, angles in degrees, 0 to the right, clockwise on the screen."""
    turns = [math.radians(start + (end - start) * i / steps) for i in range(steps + 1)]
    return [(cx + rx * math.cos(t), cy + ry * math.sin(t)) for t in turns]


DIGITS = {  # strokes in shares of the pad, x right, y down
    0: [arc(0.5, 0.5, 0.2, 0.32, -90, 270)],
    1: [[(0.5, 0.18), (0.5, 0.84)]],
    2: [arc(0.5, 0.35, 0.19, 0.17, -170, 40) + [(0.3, 0.82), (0.74, 0.82)]],
    3: [arc(0.48, 0.34, 0.18, 0.16, -150, 90) + arc(0.48, 0.67, 0.2, 0.17, -90, 150)],
    4: [[(0.36, 0.18), (0.26, 0.55), (0.74, 0.55)], [(0.62, 0.2), (0.6, 0.86)]],
    7: [[(0.27, 0.2), (0.74, 0.2), (0.58, 0.52), (0.45, 0.85)]],
}

# A 7 with a 0 over it
OVERLAP = [*DIGITS[7], arc(0.56, 0.54, 0.22, 0.3, -90, 270)]


# ---- the app and the browser


def start_app(*options: str, **settings: str) -> tuple[subprocess.Popen, str]:
    """app.py on a free port, answering already: the process and its address. settings: environment variables."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "NO_PROXY": "localhost,127.0.0.1", "no_proxy": "localhost,127.0.0.1", **settings}
    process = subprocess.Popen(
        [sys.executable, "app.py", "--port", str(port), *options],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(2400):
        if process.poll() is not None:
            raise RuntimeError(f"app.py ended with status {process.returncode}.")
        try:
            direct.open(url, timeout=2).close()
            return process, url
        except OSError:
            time.sleep(0.25)
    process.kill()
    raise RuntimeError("app.py did not answer within ten minutes.")


def open_browser(playwright):
    """Chromium: $CHROMIUM, else one that is installed, else Playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next((p for p in map(shutil.which, names) if p), None)
    return playwright.chromium.launch(executable_path=path, args=FLAGS)


def settle(page) -> None:
    """Until the last question has gone out (a stroke's next frame asks it) and the page has shown its answer."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function("!document.querySelector('.panel [aria-busy=true]')")


def visit(context, url: str, theme: str = "light"):
    """A new page that is ready to be drawn on: the opening is over, and its example wiped away."""
    page = open_page(context, url, theme)
    page.keyboard.press("Escape")
    return page


def open_page(context, url: str, theme: str = "light"):
    """A new page as a visitor finds it."""
    page = context.new_page()
    page.goto(f"{url}/?__theme={theme}")
    page.wait_for_selector("#tweak .note:not(:empty)")  # the last script has run
    return page


# ---- the line to the server


QUESTIONS = re.compile("/component_server/|/decoders/")


def cut_off(page) -> None:
    """No question reaches the server any more."""
    page.route(QUESTIONS, lambda route: route.abort())


def reconnect(page) -> None:
    """Questions go through again."""
    page.unroute(QUESTIONS)


def hold_back(page, part: str = ""):
    """Questions that contain this text hang: neither an answer nor an error comes. Returns what lets them go on."""
    held = []

    def hold(route):
        if part in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    def release():
        for route in held:
            route.continue_()
        reconnect(page)

    page.route(QUESTIONS, hold)
    return release


# ---- the hand


def on_pad(page, point) -> tuple[float, float]:
    """A point in shares of the pad → pixels of the window."""
    box = page.locator("#pad canvas").bounding_box()
    return box["x"] + point[0] * box["width"], box["y"] + point[1] * box["height"]


def draw(page, strokes, lift: bool = True) -> None:
    """Draw with the mouse; without lifting, the last stroke goes on."""
    for stroke in strokes:
        page.mouse.move(*on_pad(page, stroke[0]))
        page.mouse.down()
        for point in stroke[1:]:
            page.mouse.move(*on_pad(page, point), steps=2)
        if lift:
            page.mouse.up()


def touch(page, points) -> None:
    """One finger along points in pixels of the window."""
    device = page.context.new_cdp_session(page)

    def send(kind, place):
        at = [{"x": place[0], "y": place[1]}] if place else []
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

    send("touchStart", points[0])
    for point in points[1:]:
        send("touchMove", point)
    send("touchEnd", None)


# ---- the eyes


def lengths(page) -> list[float]:
    """The numbers beside the ten bars."""
    return [float(text) for text in page.locator("#lengths .bar .value").all_inner_texts()]


def verdict(page) -> str:
    """The sentence above the bars."""
    return page.locator("#lengths .verdict p").inner_text()


def wait_for_verdict(page, part: str) -> None:
    """Until all answers have come and the sentence above the bars contains these words."""
    settle(page)
    page.wait_for_function("part => document.querySelector('#lengths .verdict p').innerText.includes(part)", arg=part)


def picture(page, selector: str) -> np.ndarray:
    """The 28 × 28 bytes that a canvas shows."""
    script = """canvas => {
      const pixels = canvas.getContext("2d").getImageData(0, 0, 28, 28).data;
      return btoa(String.fromCharCode(...pixels.filter((_, i) => i % 4 === 3)));
    }"""
    encoded = page.locator(selector).evaluate(script)
    return np.frombuffer(base64.b64decode(encoded), np.uint8).reshape(28, 28)


def bent(page) -> np.ndarray:
    """The decoder's picture of the pose on the sliders."""
    return picture(page, "#tweak .bent canvas")


def pose(page) -> list[float]:
    """What the number fields beside the sliders say."""
    return page.locator("#tweak .slider [type=number]").evaluate_all("fields => fields.map(f => Number(f.value))")


def slider(page, number: int):
    """Slider 1 to 16."""
    return page.locator("#tweak .slider [type=range]").nth(number - 1)


def field(page, number: int):
    """Number field 1 to 16."""
    return page.locator("#tweak .slider [type=number]").nth(number - 1)


def ink_on_pad(page) -> int:
    """How many pixels of the drawing pad have ink."""
    return page.locator("#pad canvas").evaluate(
        """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
             .filter((value, i) => i % 4 === 3 && value > 128).length"""
    )
