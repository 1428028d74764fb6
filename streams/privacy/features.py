"""Words of a text and what the classifier of names sees of each: case, lists, letters, neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from zlib import crc32

from streams.privacy.lexicon import RANK, fold

BUCKETS = 2**16
"""Rows of the model; a feature's row is its CRC-32 modulo this."""

_TOKEN = re.compile(r"[^\W\d_]*\d[^\W_]*|[^\W\d_]+(?:['’][^\W\d_]+)?|\n|[^\w\s]")
_ENDS = frozenset('.?!:\n"“”>•|*;([{')
_COMMON = 2


class Token(NamedTuple):
    """A word, number or mark of a text. `word` is folded and empty for anything but a word; `mark` is what
    the lists say of it; `shape` its case."""

    text: str
    start: int
    word: str
    shape: str
    mark: int

    @property
    def end(self) -> int:
        """Where it ends in the text."""
        return self.start + len(self.text)


def tokens_of(text: str, marks: Mapping[str, int]) -> list[Token]:
    """The tokens of `text`; a possessive s is no part of its word."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if any(map(str.isdigit, token)):
            found.append(Token(token, match.start(), "", "#" if token[0].isdigit() else "a#", 0))
            continue
        if not token[0].isalpha():
            found.append(Token(token, match.start(), "", token, 0))
            continue
        head, mark, tail = token.replace("’", "'").partition("'")
        if mark and tail.lower() == "s":
            token, word = head, fold(head)
        else:
            word = fold(head + tail)
        found.append(Token(token, match.start(), word, _shape(token, head, tail), marks.get(word, 0)))
    return found


def features_of(tokens: list[Token]) -> Iterator[tuple[int, list[int]]]:
    """For each word of two Latin letters or more its index in `tokens` and the rows of its features."""
    classes = ["<<", "<", *(_class(token) for token in tokens), ">", ">>"]
    manner = _manner(tokens)
    for index, token in enumerate(tokens):
        if len(token.word) > 1 and token.word.isascii():
            starts = index == 0 or tokens[index - 1].text in _ENDS
            yield (
                index,
                [crc32(name.encode()) % BUCKETS for name in _names(token, classes, index, manner, starts)],
            )


def _names(token: Token, classes: list[str], index: int, manner: str, starts: bool) -> list[str]:
    _, _, word, shape, mark = token
    before2, before, after, after2 = (
        classes[index],
        classes[index + 1],
        classes[index + 3],
        classes[index + 4],
    )
    case = f"{shape}{'s' if starts else ''}{manner}"
    kind = f"{shape}{mark}"
    rank = mark & RANK
    names = [
        "1",
        f"b{case}{mark}",
        f"c{case}{rank}",
        f"m{mark}",
        f"d{manner}{mark}",
        f"p{before}",
        f"n{after}",
        f"P{before}|{case}{rank}",
        f"N{after}|{case}{rank}",
        f"q{before}|{kind}",
        f"o{after}|{kind}",
        f"2{before2}|{before}|{shape}",
        f"3{after}|{after2}|{shape}",
        f"4{before}|{after}|{shape}",
    ]
    if 0 < rank <= _COMMON:
        names.append(f"w{word}")
        names.append(f"W{word}{shape}")
    else:
        edged = f"^{word}$"
        names += [f"e{edged[-size:]}" for size in (3, 4, 5)]
        names += [f"a{edged[:4]}", f"l{min(len(word), 12)}{shape}"]
        names += [f"g{edged[at : at + 3]}" for at in range(min(len(edged) - 2, 14))]
    return names


def _class(token: Token) -> str:
    """What a neighbour sees: common words and marks as they are, others by case and lists."""
    if not token.word:
        return token.shape
    rank = token.mark & RANK
    if 0 < rank <= _COMMON and (token.mark < 8 or token.shape == "l" or rank == 1):
        return token.word
    return f"<{token.shape}{rank}{'n' if token.mark & 24 else ''}{'c' if token.mark & 96 else ''}>"


def _shape(token: str, head: str, tail: str) -> str:
    if head.islower():
        shape = "l"
    elif head.isupper():
        shape = "U" if len(head) > 1 or tail else "I"
    elif head[0].isupper() and (head[1:].islower() or not head[1:].isascii()):
        shape = "C"
    else:
        shape = "M"
    if not token.isascii():
        shape += "x"
    return shape


def _manner(tokens: list[Token]) -> str:
    """How the text treats capitals: all (`A`), none (`z`), or as usual."""
    lower = sum(token.shape[0] == "l" for token in tokens if token.word)
    words = sum(1 for token in tokens if token.word)
    if lower == words:
        return "z"
    upper = sum(token.shape[0] == "U" for token in tokens if token.word)
    return "A" if upper > 0.6 * words and words > 2 else ""
