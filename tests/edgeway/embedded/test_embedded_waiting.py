"""The line that says what a start waits for."""

from __future__ import annotations

import io

from edgeway.embedded.waiting import Waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_piped_it_is_one_line() -> None:
    stream = io.StringIO()
    with Waiting("fetching", stream, lambda: 0.0) as waiting:
        waiting.tick()
    assert stream.getvalue() == "fetching ...\n"


def test_a_terminal_sees_the_seconds_and_the_end() -> None:
    now = 0.0
    stream = Terminal()
    with Waiting("fetching", stream, lambda: now) as waiting:
        now = 0.5
        waiting.tick()
        now = 2.2
        waiting.tick()
    assert [part.strip() for part in stream.getvalue().split("\r")] == [
        "",
        "fetching ... 0 s",
        "fetching ... 2 s",
        "fetching done",
    ]


def test_a_closed_stream_keeps_nothing_from_starting() -> None:
    with Waiting("fetching", _Full()) as waiting:
        waiting.tick()


class _Full(io.StringIO):
    def write(self, _text: str) -> int:
        raise OSError(28, "No space left on device")
