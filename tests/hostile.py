"""What a hostile visitor may send: malformed requests to every endpoint and live event of the page.

python tests/hostile.py [--requests 2000] [--seed 0]

serves the page on this machine alone, sends that many, and ends with status 1 at the first that is answered with a
failure of the server or a traceback, or that makes the page read, write, connect or start anything outside its own
folder. What there is to attack comes from the page's own description of itself, so a new event or endpoint without a
valid example here is an error.
"""

import argparse
import base64
import copy
import io
import json
import os
import re
import struct
import sys
import tempfile
import threading
import zlib
from collections import Counter
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import httpx
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
SECRET = "what nobody may read 4711"
SEVEN = [[[60, 50], [210, 50], [160, 150], [125, 240]]]
SHEET = {"network": "capsnet", "kind": "strokes", "strokes": SEVEN}
POSE = [0.1] * 16
# A valid request of every live event, to be spoiled
EVENTS = {
    "answer": SHEET,
    "sample": {"previous": 3, "index": 5},
    "morph": {"network": "capsnet", "a": SHEET, "b": {"kind": "sample", "index": 7}},
    "film": {"network": "capsnet", "a": {"kind": "sample", "index": 1}, "b": SHEET},
    "votes": SHEET,
    "perturb": ["capsnet", 3, POSE],
    "compare": SHEET,
    "overlap": {"kind": "strokes", "strokes": SEVEN},
    "experiment": {**SHEET, "distortion": "rotation"},
}
# … and of every endpoint
ENDPOINTS = {
    "recognize": {"image": {"path": "seven.png", "meta": {"_type": "gradio.FileData"}}, "model": "capsnet"},
    "recognize_strokes": {"strokes": SEVEN, "model": "capsnet"},
    "decode": {"digit": 3, "pose": POSE, "model": "capsnet"},
}
TYPES = [
    "application/json",
    "application/json; charset=utf-16",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "multipart/form-data; boundary=x",
    "text/plain",
    "application/octet-stream",
    "é",
    "",
]
# What else Gradio answers, with something crooked for what stands in braces
ROUTES = """
/ /config /static/{path} /assets/{path} /svelte/{path} /theme.css /manifest.json /pwa_icon/{size} /monitoring/{key}
/monitoring /login /logout /favicon.ico
"""
API_ROUTES = """
info openapi.json file={path} file/{path} proxy={path} upload_progress?upload_id={x} deep_link reset call/{name}/{id}
call/v2/{name}/{id} call/{name} call/v2/{name} run/{name} queue/data?session_hash={x} queue/status heartbeat/{x}
stream/{id} stream/{id}/close stream/{x}/{y}/{z}/playlist.m3u8 stream/{x}/{y}/{z}/{u}.{v}
stream/{x}/{y}/{z}/playlist-file custom_component/{x}/{y}/{z}/{u} cancel process_recording vibe-edit undo-vibe-edit
mcp mcp/ mcp/schema mcp/sse mcp/{x} vibe-code vibe-starter-queries startup-events run-history/records dev/reload token
user app_id login_check runs upload component_server decoders/{x}
"""
CROOKED = ["x", "0", "-1", "..", "../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00", "%ff", "/etc/passwd"]
CROOKED += ["http://127.0.0.1:1/x", "%F0%9F%92%8A"]


class Hostile(AssertionError):
    """A request did what none may."""


# ---- the page, watched


class Watch:
    """What this process does to files, other machines and programs, from Python's audit events.

    folder: where the page may write. Everything else that it writes, any planted file that it reads, any address but
    this machine's, any program started is kept in `seen`. The thread that asks is not watched. An audit hook stays for
    good, so it is switched off instead.
    """

    def __init__(self, folder: Path, planted: list[Path]):
        self.folder, self.planted = str(folder), {str(path) for path in planted}
        self.on, self.seen, self.asks = False, [], threading.get_ident()
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        if not self.on or threading.get_ident() == self.asks:
            return
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, str | bytes | os.PathLike):
                self._file(event, os.fsdecode(path), bool(flags and flags & ~os.O_CLOEXEC & 0o1103))
        elif event in ("os.remove", "os.rmdir") and arguments[1] != -1:  # a name in an open folder
            self._file(event, os.path.join(os.readlink(f"/proc/self/fd/{arguments[1]}"), arguments[0]), True)
        elif event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod"):
            self._file(event, os.fsdecode(arguments[0]), True)
        elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"):
            self.seen.append(f"{event} {arguments!r:.200}")
        elif event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] != "127.0.0.1":
            self.seen.append(f"{event} {arguments[1]!r:.200}")

    def _file(self, event, path, changes):
        path = os.path.realpath(path)
        ours = path.startswith(self.folder) or path == os.devnull
        if (changes and not ours) or path in self.planted:
            self.seen.append(f"{event} {path}{' to write' if changes else ''}")


@contextmanager
def serve(networks: dict):
    """The page around these networks on a free port: yields its address, a Watch and the planted secret's path."""
    from capsnet.demo import page, theme
    from capsnet.demo.networks import of_pairs

    with tempfile.TemporaryDirectory() as outside:
        top = Path(outside).resolve()
        secret, folder = top / "secret.txt", top / "page"
        secret.write_text(SECRET, encoding="utf-8")
        folder.mkdir()
        kept = {name: os.environ.get(name) for name in ("GRADIO_TEMP_DIR", "TMPDIR", "MPLCONFIGDIR")}
        os.environ.update(dict.fromkeys(kept, str(folder)))
        tempfile.tempdir = None
        try:
            with suppress(ImportError):  # Gradio imports it where it is installed, and it then looks for fonts
                import matplotlib.pyplot  # noqa: F401
            served = page.build(networks, of_pairs=of_pairs(next(iter(networks.values()))))
            watch = Watch(folder, [secret, Path("/etc/passwd"), ROOT / "app.py", ROOT / ".git" / "config"])
            _, url, _ = served.launch(prevent_thread_lock=True, quiet=True, **theme.launch_options(networks))
            try:
                yield url.rstrip("/"), watch, secret
            finally:
                watch.on = False
                served.close()
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
            tempfile.tempdir = None


# ---- what is sent


def junk(secret: Path):
    """Values of every kind that JSON, or what passes for it, can hold."""
    numbers = st.one_of(
        st.integers(), st.floats(), st.sampled_from([10**400, -(2**63), 2**64, 1e308, -0.0, float("nan"), float("inf")])
    )
    paths = [
        str(secret),
        f"../{secret.name}",
        "/etc/passwd",
        "file:///etc/passwd",
        "http://127.0.0.1:1/",
        "..",
        "C:\\a",
    ]
    texts = st.one_of(
        st.text(st.characters(), max_size=40),  # with lone surrogates and control characters
        st.sampled_from([*paths, "\ud800", "\0", "<script>alert(1)</script>", "__class__", "a" * 100_000, "1" * 5000]),
    )
    plain = st.one_of(st.none(), st.booleans(), numbers, texts)
    points = st.lists(st.lists(st.lists(numbers, max_size=3), max_size=5), max_size=4)
    files = st.builds(lambda data: {"kind": "file", "data": data}, st.sampled_from(pictures()).map(in_base64) | texts)
    huge = st.sampled_from(
        [
            [[[i % 97, i % 89] for i in range(12_000)]],
            [[[1, 1]]] * 9_000,
            [[[1e99, -1e99], [1e-320, 3]] * 200],
            [0.0] * 19_000,
            nested(60),
        ]
    )
    deep = st.recursive(plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3))
    return st.one_of(plain, points, files, deep, huge)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def in_base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


@cache
def pictures() -> list[bytes]:
    """Files that are no picture of a digit: bombs, cut ones, lying headers, other kinds."""

    def png(width, height, *chunks):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunk(*one) for one in chunks) + chunk(b"IEND", b"")

    def saved(kind, image, **options):
        file = io.BytesIO()
        image.save(file, kind, **options)
        return file.getvalue()

    digit = Image.new("L", (40, 40), 255)
    digit.paste(0, (18, 5, 22, 35))
    whole = saved("PNG", digit)
    zeros = zlib.compress(bytes(7100 * 7101), 1)
    return [
        png(7100, 7100, (b"IDAT", zeros)),  # 50 megapixels in 50 kB
        png(60_000, 60_000, (b"IDAT", zlib.compress(bytes(10_000)))),
        png(2**31 - 1, 1, (b"IDAT", b"")),
        png(0, 0, (b"IDAT", b"")),
        png(40, 40, (b"zTXt", b"k\0\0" + zlib.compress(bytes(80_000_000), 1)), (b"IDAT", zlib.compress(bytes(1640)))),
        whole[: len(whole) // 2],
        saved("JPEG", digit)[:200],
        saved("GIF", digit, save_all=True, append_images=[digit] * 300),
        saved("TIFF", digit)[:-30],
        saved("BMP", digit).replace(struct.pack("<i", 40), struct.pack("<i", -40)),
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) run",
        b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
        b"\x80\x04cos\nsystem\n(S'touch /tmp/pickled'\ntR.",
        b"P6 99999 99999 255\n",
        b"\0" * 1000,
        b"",
    ]


@st.composite
def spoiled(draw, valid, values):
    """A valid value with one part of it removed, doubled, wrapped or replaced; or something else altogether."""
    whole = {"": copy.deepcopy(valid)}
    places = []

    def walk(parent):
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        for key in keys:
            places.append((parent, key))
            if isinstance(parent[key], dict | list):
                walk(parent[key])

    walk(whole)
    parent, key = draw(st.sampled_from(places))
    how = draw(st.sampled_from(["replace", "replace", "replace", "remove", "double", "wrap"]))
    if how == "replace" or parent is whole:
        parent[key] = draw(values)
    elif how == "remove":
        del parent[key]
    elif how == "double":
        parent[key] = [parent[key]] * 2
    else:
        parent[key] = {str(key): parent[key]}
    return whole[""]


@st.composite
def requests(draw, page: "Page", values):
    """(what it is about, method, path, headers, body)."""
    kind = draw(st.sampled_from(["event", "event", "event", "call", "call", "queue", "upload", "route", "bytes"]))
    headers = {"content-type": "application/json"}
    if kind == "event":
        name, component = draw(st.sampled_from(page.events))
        body = {"session_hash": "x", "component_id": component, "fn_name": name}
        body["data"] = draw(spoiled(EVENTS[name], values))
        if draw(st.integers(0, 9)) == 0:
            body = draw(spoiled(body, values))
        return name, "POST", "/gradio_api/component_server", headers, dump(body)
    if kind == "call":
        name = draw(st.sampled_from(sorted(ENDPOINTS)))
        version = draw(st.sampled_from(["call/v2", "call", "run", "api"]))
        arguments = draw(spoiled(ENDPOINTS[name], values))
        if version != "call/v2":
            arguments = {"data": list(arguments.values()) if isinstance(arguments, dict) else arguments}
            if draw(st.integers(0, 4)) == 0:
                arguments = draw(spoiled({**arguments, "fn_index": 0, "session_hash": "x"}, values))
        return f"/{name}", "POST", f"/gradio_api/{version}/{name}", headers, dump(arguments)
    if kind == "queue":
        body = {"fn_index": draw(st.integers(-1, 4)), "session_hash": "x", "data": [SEVEN, "capsnet"]}
        return "queue", "POST", "/gradio_api/queue/join", headers, dump(draw(spoiled(body, values)))
    if kind == "upload":
        name = draw(
            st.sampled_from(["../../evil.png", str(page.secret), "a" * 400, "\0.png", "é.svg", "", "..", "a.html"])
        )
        return "upload", "POST", "/gradio_api/upload", {}, (name, draw(st.sampled_from(pictures())))
    if kind == "route":
        method = draw(st.sampled_from(["GET", "GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"]))
        path = re.sub(
            r"\{(\w+)(:path)?\}", lambda m: draw(st.sampled_from(page.crooked)), draw(st.sampled_from(page.routes))
        )
        return "routes", method, path, headers, draw(st.sampled_from([b"", b"{}", b"[]", b"null"]))
    path = draw(
        st.sampled_from(
            [f"/gradio_api/{p}" for p in ("component_server", "call/v2/decode", "call/decode", "queue/join")]
        )
    )
    body = draw(
        st.binary(max_size=60)
        | st.sampled_from(
            [
                b"[" * 100_000,
                b'{"data":' * 50_000,
                b"\xff\xfe{\0}\0",
                b"1" * 5000,
                b'"' + b"a" * 1_000_000,
                b'{"a":1' + b",1" * 9,
            ]
        )
    )
    return "bytes", "POST", path, {"content-type": draw(st.sampled_from(TYPES)).encode()}, body


def dump(value) -> bytes:
    """JSON as a careless client writes it, NaN and lone surrogates included."""
    return json.dumps(value).encode()


# ---- what is asked of every answer


class Page:
    """A served page: its events and routes, and the requests to it."""

    def __init__(self, url: str, watch: Watch, secret: Path):
        self.url, self.watch, self.secret = url, watch, secret
        self.http = httpx.Client(
            base_url=url, trust_env=False, timeout=30, limits=httpx.Limits(max_keepalive_connections=0)
        )
        config = self.http.get("/config").json()
        self.events = [
            (name, component["id"])
            for component in config["components"]
            for name in component["props"].get("server_fns") or ()
        ]
        endpoints = self.http.get("/gradio_api/info").json()["named_endpoints"]
        assert {name for name, _ in self.events} == set(EVENTS), "a live event has no example in tests/hostile.py"
        assert {name.lstrip("/") for name in endpoints} == set(ENDPOINTS), "an endpoint has no example"
        self.routes = [*ROUTES.split(), *(f"/gradio_api/{path}" for path in API_ROUTES.split())]
        path = str(secret)
        self.crooked = [*CROOKED, "a" * 5000, path, path.replace("/", "%2F")]
        self.counts = Counter()
        for name, component in self.events:  # what is imported or cached at a first request
            body = {"session_hash": "x", "component_id": component, "fn_name": name, "data": EVENTS[name]}
            self.send((name, "POST", "/gradio_api/component_server", {}, dump(body)))
            if not self.counts.pop((name, 200), 0):
                raise Hostile(f"the example of {name} in tests/hostile.py is not valid")

    def send(self, request) -> None:
        """Send one request and judge its answer. Raises Hostile."""
        about, method, path, headers, body = request
        options = {"files": {"files": body}} if about == "upload" else {"content": body}
        try:
            status, text = self.ask(method, path, headers, 1 if about == "routes" else 30, options)  # some never end
        except httpx.ReadTimeout:  # not even a status: this machine is busy, or the page hangs
            status, text = self.ask(method, path, headers, 30, options)
        self.judge(status, text, request)
        self.counts[about, status] += 1
        if about == "upload" and status == 200:
            there = json.loads(text)[0]
            image = {"path": there, "meta": {"_type": "gradio.FileData"}}
            self.send(("/recognize", "POST", "/gradio_api/call/recognize", {}, dump({"data": [image, "capsnet"]})))
        if status == 200 and path.startswith("/gradio_api/call/") and method == "POST":
            event = json.loads(text)["event_id"]
            with self.http.stream("GET", f"{path}/{event}") as answer:
                said = beginning(answer)
            self.judge(answer.status_code, said, request)
            if not re.search("^event: (complete|error)", said, re.MULTILINE):
                raise Hostile(f"{request!r:.1000} got no answer: {said:.300}")

    def ask(self, method: str, path: str, headers: dict, patience: float, options: dict) -> tuple[int, str]:
        """Status and beginning of the answer; patience is how many seconds it may pause."""
        timeout = httpx.Timeout(30, read=patience)
        with self.http.stream(method, path, headers=headers, timeout=timeout, **options) as answer:
            return answer.status_code, beginning(answer)

    def judge(self, status: int, text: str, request) -> None:
        if status >= 500:
            wrong = f"status {status}"
        elif "Traceback" in text or '.py", line' in text or str(ROOT) in text:
            wrong = "a traceback"
        elif SECRET in text or "root:" in text:
            wrong = "the secret"
        elif self.watch.seen:
            wrong = "; ".join(self.watch.seen)
        else:
            return
        raise Hostile(f"{request!r:.1000}\n→ {wrong}: {text:.500}")


def beginning(answer) -> str:
    """The first 200 kB of an answer; of one that never ends, what came until it paused."""
    text, size = [], 0
    try:
        for part in answer.iter_bytes():
            text.append(part)
            size += len(part)
            if size > 200_000 or b"event: heartbeat" in part or b"ALIVE" in part:
                break
    except httpx.HTTPError:
        pass
    return b"".join(text).decode("utf-8", "replace")


def attack(page: Page, count: int, start: int) -> None:
    """Send `count` requests. Raises Hostile, with the shortest request that shows it."""
    values = junk(page.secret)

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(requests(page, values))
    def each(request):
        page.send(request)

    page.watch.on = True
    each()
    page.watch.on = False


def main() -> None:
    parser = argparse.ArgumentParser(description="Send malformed requests to the page, served on this machine alone.")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    import capsnet

    with serve({"capsnet": capsnet.load_model("capsnet")}) as served:
        page = Page(*served)
        attack(page, options.requests, options.seed)
        for (about, status), number in sorted(page.counts.items()):
            print(f"{number:6d}  {status}  {about}")
        print(f"{sum(page.counts.values()):6d}  requests, none did harm")


if __name__ == "__main__":
    main()
