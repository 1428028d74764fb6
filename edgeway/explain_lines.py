"""Requests as they lie in a file: a JSON object, an array of them, or a line each; little of it in memory."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

import msgspec

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
    """
    head: list[bytes] = []
    for line in _lines(stream):
        head.append(line)
        if line.removeprefix(_BOM).strip():
            break
    first = head[-1].removeprefix(_BOM).strip() if head else b""
    if first and not _is_line(first):
        head += _more(stream, sum(map(len, head)))
        read = b"".join(head)
        whole = _whole(read.removeprefix(_BOM))
        if whole is not None:
            yield from whole
            return
        head = list(_lines(io.BytesIO(read)))
    yield from _numbered(head, _lines(stream))


def _numbered(*parts: Iterable[bytes]) -> Iterator[Piece]:
    number = 0
    for lines in parts:
        for line in lines:
            number += 1
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


def _more(stream: IO[bytes], have: int) -> list[bytes]:
    """The lines up to MOST_WHOLE."""
    lines: list[bytes] = []
    for line in _lines(stream, MOST_WHOLE):
        lines.append(line)
        have += len(line)
        if have > MOST_WHOLE:
            break
    return lines


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


def _lines(stream: IO[bytes], longest: int = _LONGEST) -> Iterator[bytes]:
    """Lines; of one that is longer than `longest` only so much, the rest is passed over."""
    while line := stream.readline(longest):
        yield line
        while len(line) >= longest and not line.endswith(b"\n"):
            line = stream.readline(longest)
