"""What Python's JSON reader lets pass and no other reader would, with its place in the text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.places import Path
from schemas.values import MAX_DEPTH

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_LONGEST_INTEGER = 20


class Oddity(NamedTuple):
    """Where it stands (`at`: character offset) and what is wrong with it."""

    path: Path
    at: int
    reason: str


@dataclass(slots=True)
class _Container:
    is_map: bool
    index: int = 0
    key: str | None = None
    keys: set[str] = field(default_factory=set)

    def next(self) -> None:
        self.index += 1
        self.key = None

    @property
    def here(self) -> str | int | None:
        return self.key if self.is_map else self.index


def first_oddity(text: str) -> Oddity | None:
    """The first key that stands twice in its object, word that is no JSON, text or number that no other
    program reads, or nesting beyond MAX_DEPTH; None where there is none. `text` is what `json.loads` takes.
    """
    open_: list[_Container] = []
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in "{[":
            if len(open_) >= MAX_DEPTH:
                return Oddity(_path(open_), token.start(), f"nested too deep; at most {MAX_DEPTH} levels")
            open_.append(_Container(word == "{"))
        elif word in "}]":
            open_.pop()
        elif word == ",":
            open_[-1].next()
        elif word != ":" and (reason := _wrong(word, open_[-1] if open_ else _Container(False))):
            return Oddity(_path(open_), token.start(), reason)
    return None


def _path(open_: list[_Container]) -> Path:
    return tuple(here for one in open_ if (here := one.here) is not None)


def _wrong(word: str, within: _Container) -> str | None:
    if word[0] != '"':
        return _wrong_word(word)
    said = json.loads(word, strict=False)
    try:
        said.encode()
    except UnicodeEncodeError:
        return "half of a surrogate pair is no character; write the character itself"
    if within.is_map and within.key is None:
        within.key = said
        if said in within.keys:
            return f"the key {said!r} stands twice in one object; give it once"
        within.keys.add(said)
    return None


def _wrong_word(word: str) -> str | None:
    if word in ("NaN", "Infinity", "-Infinity"):
        return f"{word} is no JSON number"
    digits = word.removeprefix("-")
    if digits.isdecimal() and (len(digits) > _LONGEST_INTEGER or not -(2**63) <= int(word) < 2**64):
        return "the number is beyond 64 bits"
    return None
