from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeway.client.sse import EventTooLarge, ServerEvent, SseParser

TEXT = (
    "\ufeff: a comment\n\n"
    'id: 5-1\r\nevent: planned\r\ndata: {"a":1}\r\n\r\n'
    "data: one\rdata:two\rdata\r\r"
    "retry: 10\nunknown: x\n:\n\n"
    "id: 6-2\nevent: partial\n\n"
    "event: result\ndata: lines\u2028of\x0btext\x85 ü\n\n"
    "data: has no end\n"
).encode()
EVENTS = [
    ServerEvent("planned", '{"a":1}', "5-1"),
    ServerEvent("message", "one\ntwo\n", "5-1"),
    ServerEvent("result", "lines\u2028of\x0btext\x85 ü", "6-2"),
]


@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_events_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(TEXT)]
    parser = SseParser()
    found = [event for start, end in pairwise(places) for event in parser.feed(TEXT[start:end])]
    assert found == EVENTS


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)))
def test_what_is_written_is_read(texts: list[str]) -> None:
    raw = "".join(f"event: x\ndata: {text}\n\n" for text in texts).encode()
    assert [event.data for event in SseParser().feed(raw)] == texts


def test_an_event_without_end_is_refused() -> None:
    parser = SseParser(most_bytes=1000)
    chunks = (b"data: " + b"x" * 100 + b"\n" for _ in range(20))
    with pytest.raises(EventTooLarge, match="1000"):
        list(map(list, map(parser.feed, chunks)))
    parser = SseParser(most_bytes=1000)
    for _ in range(20):
        list(parser.feed(b"data: " + b"x" * 100 + b"\n\n"))
