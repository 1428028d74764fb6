"""Requests from flags and file lines."""

from __future__ import annotations

import pytest

from edgeway.request_lines import Ask, BadLine, parse_line, request_of
from schemas.messages import Request


def test_a_line_is_a_request() -> None:
    found = parse_line(1, b'{"task": "intent", "text": "wo ist meine Karte"}\n')
    assert isinstance(found, Request)
    assert (found.task, found.inputs) == ("intent", {"text": "wo ist meine Karte"})


@pytest.mark.parametrize("raw", [b"", b"  \n", b"\r\n"])
def test_empty_lines_are_skipped(raw: bytes) -> None:
    assert parse_line(1, raw) is None


@pytest.mark.parametrize(
    "raw", [b"no json", b"[1]", b'{"task": 5}', b'{"task": "t", "v": 99}', b"\xff\xfe", b'{"a": 1}']
)
def test_bad_lines_say_where_and_why_without_quoting(raw: bytes) -> None:
    found = parse_line(12, raw)
    assert isinstance(found, BadLine)
    assert found.number == 12
    assert found.reason


def test_flags_make_a_request() -> None:
    ask = Ask(
        task="intent",
        text="hello",
        pairs=["n=5", "name=Ada", "list=[1, 2]", "empty="],
        inputs='{"n": 1, "k": true}',
        fields={"privacy": "high", "deadline_ms": 500, "tenant": None},
    )
    request = request_of(ask)
    assert request.inputs == {"n": 5, "k": True, "name": "Ada", "list": [1, 2], "empty": "", "text": "hello"}
    assert (request.task, request.privacy, request.deadline_ms, request.tenant) == (
        "intent",
        "high",
        500,
        None,
    )


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (Ask(), "--task NAME"),
        (Ask(task="t", inputs="{"), "--inputs is no JSON"),
        (Ask(task="t", inputs="[1]"), "no JSON object"),
        (Ask(task="t", inputs="[" * 3000 + "]" * 3000), "nested too deep"),
        (Ask(task="t", pairs=["alone"]), "no NAME=VALUE"),
        (Ask(task="t", fields={"id": "x" * 200}), "--id has 200 bytes; give 1 to 128"),
        (Ask(task="t", fields={"deadline_ms": 0}), "--deadline-ms 0: give 1 to 600000"),
        (Ask(task="t", fields={"deadline_ms": 600_001}), "--deadline-ms 600001: give 1 to 600000"),
        (Ask(task="t", fields={"tenant": "a b/c"}), "--tenant 'a b/c': give 1 to 64 of A-Z"),
        (Ask(task="t", text="\udcff"), "--text is no UTF-8"),
        (Ask(task="t", pairs=["a=\udcff"]), "--input is no UTF-8"),
        (Ask(task="t", fields={"reply_to": "x" * 250}), "--reply-to: give 1 to 249"),
        (Ask(task=""), "--task: give 1 to 128"),
    ],
)
def test_flags_that_make_none(ask: Ask, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        request_of(ask)


def test_a_pair_that_cannot_be_read_as_json_is_text() -> None:
    assert request_of(Ask(task="t", pairs=["a=" + "[" * 3000])).inputs == {"a": "[" * 3000}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{"task": "t", "privacy": "secret"}', "give one of high, normal"),
        (b'{"task": "t", "text": "\\ud83d"}', "half a surrogate pair"),
        (b'{"task": "t", "text": "\\udc00 x"}', "half a surrogate pair"),
        (b'{"task": "t", "tenant": "a b"}', "1 to 64 of A-Z"),
        (b"{\n", "one JSON object a line"),
        (b'[{"task": "t"}]', "one JSON object a line"),
        (b'  "task": "t",', "one JSON object a line"),
        (b'{"task": "t", "text": "x', "truncated"),
    ],
)
def test_bad_lines_say_how_to_mend_them(raw: bytes, words: str) -> None:
    found = parse_line(1, raw)
    assert isinstance(found, BadLine)
    assert words in found.reason
    assert "secret" not in found.reason
