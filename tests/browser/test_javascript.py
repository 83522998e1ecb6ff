"""README's example in JavaScript, in a browser on the page."""

import re

import hand


def test_javascript(page, url):
    (code,) = re.findall(r"```js\n(.*?)```", (hand.ROOT / "README.md").read_text(), re.DOTALL)
    code = code.replace("http://127.0.0.1:7860", url.rstrip("/"))
    digit, lengths = page.evaluate(f"async () => {{ {code} return [digit, lengths]; }}")
    assert digit == 7 and len(lengths) == 10 and lengths[7] == max(lengths)
