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
        (Ask(task="t", pairs=["alone"]), "no NAME=VALUE"),
        (Ask(task="t", fields={"id": "x" * 200}), "128"),
    ],
)
def test_flags_that_make_none(ask: Ask, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        request_of(ask)
