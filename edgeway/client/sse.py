"""Server-sent events out of bytes as they come (WHATWG HTML, 9.2.6 "Interpreting an event stream"). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MOST_BYTES = 16 * 1024 * 1024
"""Of one event: a Result of the largest record fits as base64 text."""


class ServerEvent(NamedTuple):
    """One event: its name, its data, and the last id that was given."""

    name: str
    data: str
    id: str


class EventTooLarge(ValueError):
    """More than MOST_BYTES without the end of an event."""

    def __init__(self, most: int) -> None:
        super().__init__(f"an event of the stream is larger than {most} bytes")


class SseParser:
    """`feed` takes bytes cut anywhere and gives the events that they complete.

    Lines end in CR LF, LF or CR alone; nothing else ends one (`str.splitlines` knows ten more ends, which
    texts in the data may hold).
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._rest = b""
        self._begun = False
        self._held = 0
        self._name = ""
        self._data: list[str] = []
        self._id = ""

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that end in `chunk`.

        Raises:
            EventTooLarge: one does not end.
        """
        for line in self._lines(chunk):
            self._held += len(line)
            event = self._line(line.decode("utf-8", "replace"))
            if event is not None:
                yield event
        if self._held + len(self._rest) > self._most:
            raise EventTooLarge(self._most)

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        text = self._rest + chunk
        if not self._begun and len(text) >= 3:
            self._begun = True
            text = text.removeprefix(b"\xef\xbb\xbf")
        start = 0
        while True:
            ends = [at for at in (text.find(b"\n", start), text.find(b"\r", start)) if at >= 0]
            end = min(ends, default=-1)
            # A CR at the very end may be the first half of a CR LF.
            if end < 0 or (text[end : end + 1] == b"\r" and end + 1 == len(text)):
                break
            yield text[start:end]
            start = end + (2 if text[end : end + 2] == b"\r\n" else 1)
        self._rest = text[start:]

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatched()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatched(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._held = "", [], 0
        return ServerEvent(name or "message", "\n".join(data), self._id) if data else None
