"""A hundred and fifty of the requests that tests/hostile.py sends by the thousand, and the limits of the guard."""

import hostile
import pytest

import capsnet
from capsnet.demo.guard import DEEPEST, LARGEST_BODY, MOST_POINTS


@pytest.fixture(scope="module")
def page():
    with hostile.serve({"capsnet": capsnet.load_model("capsnet")}) as served:
        yield hostile.Page(*served)


def test_malformed_requests_do_no_harm(page):
    hostile.attack(page, count=150, start=0)
    assert sum(page.counts.values()) >= 150 and len({about for about, _ in page.counts}) > 8


def test_the_attack_sees_harm(page):
    def seen(status, text):
        with pytest.raises(hostile.Hostile):
            page.judge(status, text, "a request")

    page.judge(200, "an answer", "a request")
    seen(500, "")
    seen(200, "Traceback (most recent call last):")
    seen(200, f"... {hostile.SECRET} ...")
    page.watch.seen.append("open /etc/passwd")
    seen(200, "")
    page.watch.seen.clear()


ANSWER = "/gradio_api/component_server"


@pytest.mark.parametrize(
    "content, status, part",
    [
        (b'{"data": "' + b"a" * LARGEST_BODY + b'"}', 413, "28 MB"),
        (b'{"data": [' + b"[1, 2]," * MOST_POINTS + b"[1, 2]]}", 413, "10,000 points"),
        (b'{"data": ' + b"[" * 2 * DEEPEST + b"]" * 2 * DEEPEST + b"}", 400, "nested too deeply"),
        (b'{"data": NaN}', 400, "finite numbers"),
        (b'{"data": "\\ud800"}', 400, "whole characters"),
        (b'{"data": ', 400, "no JSON"),
        (b"\xff", 400, "no JSON"),
        (b"[1]", 400, "must be a JSON object"),
        (b'{"data": {}, "component_id": 9999, "session_hash": "x", "fn_name": "answer"}', 400, "cannot be read"),
    ],
)
def test_what_the_guard_refuses_gets_a_sentence(page, content, status, part):
    answer = page.http.post(ANSWER, content=content)
    assert answer.status_code == status
    sentence = answer.json()["detail"]
    assert part in sentence and sentence.endswith(".") and "\n" not in sentence


def test_a_body_without_a_length_is_counted(page):
    parts = (b" " * 1_000_000 for _ in range(40))
    assert page.http.post(ANSWER, content=parts).status_code == 413


def test_brackets_in_texts_are_not_nested(page):
    body = {"component_id": dict(page.events)["answer"], "session_hash": "x", "fn_name": "answer", "data": "[" * 200}
    assert page.http.post(ANSWER, json=body).json()["lengths"]["sentence"]["say"] == "error.no_model"
