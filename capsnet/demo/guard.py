"""What comes from outside, before Gradio sees it: a limit on its size, and one sentence where it cannot be read."""

import re
import sys

import orjson
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

LARGEST_BODY = 28_000_000  # bytes: a file of 20 MB in base64, and what stands around it
UPLOADS = ("/upload", "/upload/")  # a form, which Gradio limits itself while it reads it
DEEPEST = 50  # lists in lists
MOST_POINTS = 10_000  # a drawing on the page has 3,000; what Gradio does with a request grows with its values
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
NO_MARKS = bytes(set(range(256)) - set(b"[]{},"))


class Guard:
    """ASGI middleware around the whole page.

    Every body but that of an upload must be a JSON object of at most LARGEST_BODY bytes and MOST_POINTS points, with
    finite numbers and whole characters, not nested without end. Gradio's routes take much of the rest for granted (that
    a component of that number exists, that so many arguments came) and fail where it is wrong. The page's own functions
    never let a failure of theirs get this far (see `answer.refusing`), so what fails here is a request: status 400.
    """

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        begun = False

        async def noting(message):
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            if scope["method"] in ("POST", "PUT", "PATCH", "DELETE") and not scope["path"].endswith(UPLOADS):
                receive = await self.checked(Headers(scope=scope), receive)
            await self.app(scope, receive, noting)
        except Refused as refused:
            await refused.answer(scope, receive, send)
        except Exception as error:
            print(f"{scope['method']} {scope['path']!r} was refused: {error!r:.300}", file=sys.stderr)
            if not begun:  # else the connection ends, which is all that can still be said
                await Refused(400, "This request cannot be read: see the API page.").answer(scope, receive, send)

    async def checked(self, headers: Headers, receive):
        """The whole body, once it is read and found right, as another `receive`. Raises Refused."""
        length = headers.get("content-length", "0")
        parts, size = [], int(length) if length.isdecimal() else 0
        if size <= LARGEST_BODY:
            size, more = 0, True
            while more and size <= LARGEST_BODY:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(400, "The request did not arrive whole: send it again.")
                parts.append(message.get("body", b""))
                size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > LARGEST_BODY:
            raise Refused(413, f"The request is too large: send less than {LARGEST_BODY // 1_000_000} MB.")
        body = b"".join(parts)
        if body:
            check(body)
        given = False

        async def again():
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        return again


class Refused(Exception):
    """A request that is not passed on: its status, and one sentence."""

    def __init__(self, status: int, sentence: str):
        self.status, self.sentence = status, sentence

    async def answer(self, scope, receive, send):
        headers = {"connection": "close"}  # what is left of the body is not read
        await JSONResponse({"detail": self.sentence}, self.status, headers)(scope, receive, send)


def check(body: bytes) -> None:
    """Raises Refused where a body is no JSON object that a program may be handed."""
    marks = STRING.sub(b"", body).translate(None, NO_MARKS)
    if marks.count(b",") > 2 * MOST_POINTS:
        raise Refused(413, f"The request holds too many values: send at most {MOST_POINTS:,} points.")
    try:
        value = orjson.loads(body)
    except ValueError:
        raise Refused(400, "The request is no JSON of finite numbers and whole characters: send such.") from None
    if not isinstance(value, dict):
        raise Refused(400, "The request must be a JSON object: see the API page.")
    if deeper(marks.replace(b",", b""), DEEPEST):
        raise Refused(400, f"The request is nested too deeply: send at most {DEEPEST} lists in lists.")


def deeper(brackets: bytes, limit: int) -> bool:
    """Whether the brackets of a JSON text are nested far more than `limit` deep (lists and objects count apart)."""
    for _ in range(limit):  # each time the innermost go
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return bool(brackets)
