"""Requests as they lie in a file: a JSON object, an array of them, or a line each; little of it in memory."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

import msgspec

from edgeway.errors import UsageError
from schemas.limits import MAX_RECORD_BYTES

MOST_WHOLE = 64 * 2**20
"""An array, or an object that goes over several lines, is read whole, up to so many bytes."""
_LONGEST = 2 * MAX_RECORD_BYTES
_BOM = b"\xef\xbb\xbf"


class Piece(NamedTuple):
    """One request: its line, or in an array its place, from 1."""

    number: int
    raw: bytes


def pieces(stream: IO[bytes]) -> Iterator[Piece]:
    """The requests of `stream` in order; empty lines are none, but count.

    What begins like an array or like one object over several lines is read whole and taken as such, where
    it is one. A line too long for a record is cut off, and so refused later.

    Raises:
        UsageError: an array that is longer than MOST_WHOLE.
    """
    empty = 0
    while read := stream.readline(_LONGEST):
        first = (read.removeprefix(_BOM) if not empty else read).strip()
        if first:
            break
        empty += read.endswith(b"\n")
    if read and not _is_line(first):
        read += stream.read(MOST_WHOLE + 1 - len(read))
        whole = _whole(read.removeprefix(_BOM))
        if whole is not None:
            yield from whole
            return
        if len(read) > MOST_WHOLE and first.startswith(b"[") and not _parses(first):
            most = f"up to {MOST_WHOLE // 2**20} MiB"
            raise UsageError(f"an array of requests is read whole, {most}; give one request a line")
    yield from _numbered(_lines(_Behind(io.BytesIO(read), stream)), empty)


class _Behind(NamedTuple):
    """A stream behind what was already read of it."""

    read: io.BytesIO
    rest: IO[bytes]

    def readline(self, size: int) -> bytes:
        line = self.read.readline(size)
        if line.endswith(b"\n") or len(line) >= size:
            return line
        return line + self.rest.readline(size - len(line))


def _numbered(lines: Iterable[bytes], before: int) -> Iterator[Piece]:
    for number, line in enumerate(lines, before + 1):
        raw = (line.removeprefix(_BOM) if number == 1 else line).strip()
        if raw:
            yield Piece(number, raw)


def _is_line(first: bytes) -> bool:
    """Whether the first line stands for itself: JSON, or nothing that could go on."""
    if not first.startswith((b"{", b"[")):
        return True
    return first.startswith(b"{") and _parses(first)


def _parses(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _whole(raw: bytes) -> list[Piece] | None:
    """The requests of one JSON value, None where it is none."""
    if len(raw) > MOST_WHOLE:
        return None
    try:
        if not raw.lstrip().startswith(b"["):
            msgspec.json.decode(raw, type=msgspec.Raw)
            return [Piece(1, raw.strip())]
        elements = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return None
    return [Piece(number, bytes(element)) for number, element in enumerate(elements, 1)]


def _lines(stream: _Behind) -> Iterator[bytes]:
    """Lines; of one that is longer than _LONGEST only so much, the rest is passed over."""
    while line := stream.readline(_LONGEST):
        yield line
        while len(line) >= _LONGEST and not line.endswith(b"\n"):
            line = stream.readline(_LONGEST)
