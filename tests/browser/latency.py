"""How many milliseconds the network adds: `python tests/browser/latency.py [--rounds N] [--json]`.

The real page with the real weights gets one more event, which calls the server as the others do but for nothing, in
this script alone. A stroke's end until the bars have moved, a slider's tick until the decoder's picture is painted,
and the empty event until its answer is there take turns in one browser; printed are the medians and what the first
two add to the third.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

import gradio as gr
import hand
import torch
from playwright.sync_api import sync_playwright

import capsnet
from capsnet.demo import networks, page, theme

EMPTY_EVENT = "window.emptyEvent = () => server.nothing(Math.random()).then(() => performance.now());"

# Each measurement resolves to milliseconds. Strokes and ticks are DOM events, so no driver's time is in them.
MEASURE = """
() => {
  const pad = document.querySelector("#pad canvas"), bars = document.querySelector("#lengths .bars");
  const slider = document.querySelector("#tweak .slider input");
  const bent = document.querySelector("#tweak .bent canvas");
  pad.setPointerCapture = () => {};

  function fire(type, [x, y]) {
    const box = pad.getBoundingClientRect();
    pad.dispatchEvent(new PointerEvent(type, {
      bubbles: true, cancelable: true, isPrimary: true, pointerId: 1, button: 0,
      clientX: box.x + x * box.width, clientY: box.y + y * box.height }));
  }
  const mutated = (place) => new Promise((done) => {
    const observer = new MutationObserver(() => { observer.disconnect(); done(performance.now()); });
    observer.observe(place, { subtree: true, attributes: true, childList: true, characterData: true });
  });
  const painted = (canvas) => new Promise((done) => {
    const brush = canvas.getContext("2d");
    brush.fillRect = (...box) => { delete brush.fillRect; brush.fillRect(...box); done(performance.now()); };
  });

  window.measure = {
    async stroke(points) {
      fire("pointerdown", points[0]);
      points.slice(1).forEach((point) => fire("pointermove", point));
      await mutated(bars); // the answer to the pen going down
      await new Promise((done) => setTimeout(done, 150));
      fire("pointermove", points.at(-1).map((share) => share + 0.02));
      const start = performance.now();
      const end = mutated(bars);
      fire("pointerup", points.at(-1));
      return (await end) - start;
    },
    async tick() {
      const share = Math.random();
      slider.value = Number(slider.min) + (slider.max - slider.min) * share;
      const start = performance.now();
      const end = painted(bent);
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      return (await end) - start;
    },
    async empty() {
      const start = performance.now();
      return (await window.emptyEvent()) - start;
    },
  };
}
"""


def serve():
    """The page and an event that does nothing: (Blocks, address)."""

    def nothing(value):
        return value

    torch.set_num_threads(2)
    model = capsnet.load_model("capsnet")
    offered = networks.beside(model, "capsnet")
    served = page.build(offered, networks.plain(model), networks.of_pairs(model))
    with served:
        gr.HTML(html_template="<i></i>", js_on_load=EMPTY_EVENT, server_functions=[nothing])
    _, url, _ = served.launch(prevent_thread_lock=True, quiet=True, **theme.launch_options(offered))
    return served, url.rstrip("/")


def measure(url: str, rounds: int) -> dict[str, float]:
    """Medians in milliseconds of the empty event, a stroke's end and a slider's tick, taken in turns."""
    times = {"empty": [], "stroke": [], "tick": []}
    with sync_playwright() as playwright:
        browser = hand.open_browser(playwright)
        tab = hand.visit(browser.new_context(viewport=hand.DESKTOP), url)
        tab.evaluate(MEASURE)
        for turn in range(rounds + 2):  # the first two warm up
            digit = (1, 7, 0, 2)[turn % 4]
            tab.click("[data-do=clear]", force=True)
            hand.settle(tab)
            for name, argument in (("empty", None), ("stroke", hand.DIGITS[digit][0]), ("tick", None)):
                took = tab.evaluate("([name, argument]) => window.measure[name](argument)", [name, argument])
                hand.settle(tab)
                if turn >= 2:
                    times[name].append(took)
        browser.close()
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="What the network adds to an empty event, in a browser.")
    parser.add_argument("--rounds", type=int, default=40, help="measurements of each kind (default: 40)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "localhost,127.0.0.1"
    served, url = serve()
    medians = measure(url, options.rounds)
    served.close()
    added = {name: medians[name] - medians["empty"] for name in ("stroke", "tick")}
    if options.json:
        print(json.dumps({"median_ms": medians, "added_ms": added}))
        return
    print(f"{'':24}median   added   (milliseconds, {options.rounds} rounds)")
    rows = {"empty": "empty event", "stroke": "stroke end → bars", "tick": "slider → picture"}
    for name, what in rows.items():
        print(f"{what:22}{medians[name]:8.1f}" + (f"{added[name]:8.1f}" if name in added else ""))


if __name__ == "__main__":
    main()
