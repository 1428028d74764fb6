"""Where sentences end, in English, Chinese and mixed text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from workers.library.nlp.tokens import HAN

_END = re.compile(
    r"[。！？!?；…]+[”’」』）)\]\"']{0,4}"
    r"|\.{1,8}[”’)\]\"']{0,4}(?=\s|$)"
    r"|\n(?:[^\S\n]*\n)+\s*"
    r"|\n(?=[^\S\n]{0,8}(?:[-*•#|]|\d{1,3}[.)、])\s?)"
    rf"|(?<=[{HAN}：:])\n"
)
_SHORT_TEXT = """
mr mrs ms dr prof st jr sr vs etc e.g i.e inc ltd corp co no fig sec eq al gen col sen rep gov rev hon
jan feb mar apr jun jul aug sept sep oct nov dec u.s u.k u.n approx est dept bros mt a.m p.m ph.d
"""
_SHORT = frozenset(_SHORT_TEXT.split())
_LAST_WORD = re.compile(r"([\w.]{1,12})$")
_NEXT = re.compile(r"\s*[\"'“‘(\[]?(\S?)")


class Span(NamedTuple):
    """A part [start:end] of a text."""

    start: int
    end: int


def sentences_of(text: str) -> list[Span]:
    """The sentences in order, without the space around them; together they hold all that is not space."""
    found: list[Span] = []
    start = 0
    for end in _ends(text):
        _add(found, text, start, end)
        start = end
    _add(found, text, start, len(text))
    return found


def _ends(text: str) -> Iterator[int]:
    for match in _END.finditer(text):
        if not match[0].startswith(".") or _is_end(text, match.start(), match.end(), len(match[0])):
            yield match.end()


def _is_end(text: str, dot: int, end: int, length: int) -> bool:
    """Whether a full stop ends its sentence: not behind a shortened word, nor before a small letter."""
    following = _NEXT.match(text, end)
    if following and following[1].islower():
        return False
    before = _LAST_WORD.search(text, max(0, dot - 12), dot)
    if before is None or length > 1:
        return True
    word = before[1].lower()
    return not (word in _SHORT or (len(word) == 1 and word.isalpha() and before[1].isupper()))


def _add(found: list[Span], text: str, start: int, end: int) -> None:
    part = text[start:end]
    shown = part.strip()
    if shown:
        begin = start + len(part) - len(part.lstrip())
        found.append(Span(begin, begin + len(shown)))
