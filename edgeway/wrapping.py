"""Texts broken to a width that counts in columns: a Chinese character takes two."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator


def columns(text: str) -> int:
    """How many columns `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def printable(text: str) -> str:
    """`text` with its control characters written out: an id must not steer anybody's terminal."""
    if text.isprintable():
        return text
    return "".join(f"\\x{ord(char):02x}" if unicodedata.category(char) == "Cc" else char for char in text)


def wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """`text` in lines of at most `width` columns, at spaces where there are some, each behind its indent.

    A word that is longer than a line is broken. `rest` is the indent of all but the first line.
    """
    rest = " " * columns(first) if rest is None else rest
    room = max(8, width - max(columns(first), columns(rest)))
    lines: list[str] = []
    line = ""
    for word in _words(printable(text), room):
        if line and columns(line) + 1 + columns(word) > room:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    lines.append(line)
    return [(rest if number else first) + part for number, part in enumerate(lines)]


def _words(text: str, room: int) -> Iterator[str]:
    for word in text.split():
        piece = ""
        for char in word:
            if columns(piece) + _width(char) > room:
                yield piece
                piece = ""
            piece += char
        yield piece


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
