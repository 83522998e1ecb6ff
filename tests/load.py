"""Many visitors at once: `python tests/load.py --visitors 50 --seconds 60`.

Starts app.py, and beside it visitors who end a stroke every two seconds, as the page sends it: at most one question of
a visitor is on its way, and of those that come meanwhile only the newest is asked. Each has drawings of its own and
compares every answer with what the network says of that drawing alone. Prints how many were answered, how long that
took, errors, strangers' answers, how much memory the page holds at the beginning and at the end, and the files it left.
"""

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]
PAUSE = 2.0  # seconds from the end of one stroke to that of the next
WARM = 5.0  # seconds at the beginning that do not count
CALM = 0.5  # seconds after which an answer is late


@dataclass
class Counts:
    """What the visitors saw; times in seconds from the end of a stroke to its answer."""

    times: list[float] = field(default_factory=list)
    strokes: int = 0
    passed_over: int = 0  # a newer stroke came before they were asked
    errors: list[str] = field(default_factory=list)
    strangers: int = 0
    recovered: float = 0.0  # seconds from the last stroke of all until a new one is answered in time


def drawings(visitor: int, count: int = 5) -> list[list]:
    """Sheets of strokes that no other visitor draws: a 1, a 7 and a 0 with a lean, a place and a size of their own."""
    shapes = [[(0.5, 0.1), (0.45, 0.9)], [(0.2, 0.2), (0.8, 0.2), (0.4, 0.9)], [(0.5, 0.1), (0.2, 0.5), (0.5, 0.9)]]
    chance, sheets = random.Random(visitor), []
    for n in range(count):
        lean, size = chance.uniform(-0.4, 0.4), chance.uniform(90, 200)
        points = [[round(40 + size * (x + lean * (0.5 - y)), 2), round(40 + size * y, 2)] for x, y in shapes[n % 3]]
        sheets.append([points])
    return sheets


def expected(sheets: list[list]) -> list[list[float]]:
    """The lengths for each sheet, worked out here."""
    import torch

    import capsnet
    from capsnet.demo.answer import rounded

    model = capsnet.load_model("capsnet")
    with torch.inference_mode():
        return [rounded(model(capsnet.prepare_digit({"strokes": sheet})[None]).lengths[0]) for sheet in sheets]


async def visit(http: httpx.AsyncClient, component: int, sheets: list, answers: list, counts: Counts, ends: float):
    """One visitor, from a random moment on."""
    await asyncio.sleep(random.uniform(0, PAUSE))
    asked: asyncio.Task | None = None
    begun = time.monotonic()
    stroke = 0
    while time.monotonic() < ends:
        which = stroke % len(sheets)
        counting = time.monotonic() - begun > WARM
        counts.strokes += counting
        if asked is not None and not asked.done():
            counts.passed_over += counting
        else:
            asked = asyncio.create_task(ask(http, component, sheets[which], answers[which], counts, counting))
        stroke += 1
        await asyncio.sleep(PAUSE)
    if asked is not None:
        await asked


async def ask(http: httpx.AsyncClient, component: int, strokes: list, wanted: list, counts: Counts, counting: bool):
    sheet = {"network": "capsnet", "kind": "strokes", "strokes": strokes}
    body = {"session_hash": "load", "component_id": component, "fn_name": "answer", "data": sheet}
    started = time.monotonic()
    try:
        answer = await http.post("/gradio_api/component_server", json=body)
        answer.raise_for_status()
        lengths = answer.json()["lengths"]["lengths"]
    except (httpx.HTTPError, ValueError, KeyError) as error:
        counts.errors.append(repr(error)[:200])
        return
    if counting:
        counts.times.append(time.monotonic() - started)
    if max(abs(one - other) for one, other in zip(lengths, wanted, strict=True)) > 0.003:
        counts.strangers += 1


async def load(url: str, visitors: int, seconds: float) -> Counts:
    counts = Counts()
    every = [drawings(n) for n in range(visitors)]
    answers = [expected(sheets) for sheets in every]
    # Idle connections go before the server closes them (5 s): a question sent just then would break, and httpx,
    # unlike a browser, does not ask again.
    limits = httpx.Limits(max_connections=visitors + 10, max_keepalive_connections=visitors + 10, keepalive_expiry=2.5)
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, limits=limits) as http:
        config = (await http.get("/config")).json()
        pad = next(one["id"] for one in config["components"] if "answer" in (one["props"].get("server_fns") or ()))
        ends = time.monotonic() + seconds
        await asyncio.gather(
            *(visit(http, pad, sheets, wanted, counts, ends) for sheets, wanted in zip(every, answers, strict=True)),
            recover(http, pad, every[0][0], answers[0][0], counts, ends),
        )
    return counts


async def recover(http: httpx.AsyncClient, component: int, strokes: list, wanted: list, counts: Counts, ends: float):
    """Once nobody draws any more: how long until a stroke is answered in time."""
    await asyncio.sleep(max(0.0, ends - time.monotonic()))
    alone = Counts()
    while not alone.times or alone.times[-1] > CALM:
        await ask(http, component, strokes, wanted, alone, True)
        if alone.errors:
            counts.errors += alone.errors
            return
    counts.recovered = time.monotonic() - ends


def held(process: psutil.Process) -> int:
    """Bytes that the page holds in memory."""
    return process.memory_info().rss


def main() -> int:
    import hand

    parser = argparse.ArgumentParser(description="Let many visitors draw at once.")
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    if options.visitors < 1 or options.seconds <= WARM + PAUSE:
        parser.error(f"there must be at least one visitor, for more than {WARM + PAUSE:.0f} seconds")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRADIO_TEMP_DIR"] = os.environ["TMPDIR"] = folder
        process, url = hand.start_app()
        try:
            page = psutil.Process(process.pid)
            asyncio.run(load(url, options.visitors, WARM + PAUSE + 1))  # what the first questions load stays
            before = held(page)
            counts = asyncio.run(load(url, options.visitors, options.seconds))
            after, files = held(page), [path for path in Path(folder).rglob("*") if path.is_file()]
        finally:
            process.terminate()
            process.wait(20)
    print(report(counts, before, after, len(files)))
    return 1 if counts.errors or counts.strangers else 0


def report(counts: Counts, before: int, after: int, files: int) -> str:
    times = sorted(counts.times)
    quick = sum(one <= CALM for one in times) / max(len(times), 1)
    lines = [
        f"{counts.strokes:,} strokes, {len(times):,} answered, {counts.passed_over:,} passed over for a newer one",
        f"{len(counts.errors)} errors, {counts.strangers} answers to somebody else's drawing",
        f"after the last stroke of all, answers come in time within {counts.recovered:.1f} s",
        f"memory {before / 2**20:.0f} MiB, then {after / 2**20:.0f} ({after / before - 1:+.1%}); {files} files left",
    ]
    if len(times) > 1:
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        middle, most = (f"{1000 * cuts[n]:.0f} ms" for n in (49, 94))
        lines.insert(1, f"answered after {middle} (median), {most} (95 %); {quick:.1%} within {1000 * CALM:.0f} ms")
    return "\n".join([*lines, *dict.fromkeys(counts.errors[:5])])


if __name__ == "__main__":
    sys.exit(main())
