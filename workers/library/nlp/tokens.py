"""Tokens of English, Chinese and mixed text, each with its place in the text.

Chinese is cut by rjieba (jieba's dictionary and its hidden Markov model for unknown words); everything else
by one regular expression that reads each character once.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from workers.library.nlp.dictionary import cut

Kind = Literal["latin", "number", "han", "mark"]

HAN: Final = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = rf"[^\W\d_{HAN}]"
_WORD = rf"{_LETTER}[^\W\d_{HAN}\u0300-\u036f]*"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?"
_TOKENS = re.compile(
    rf"(?P<number>(?:{_NUMBER})[%％‰]?)|(?P<latin>{_WORD}(?:['\u2019.&-]{_WORD})*)|(?P<han>[{HAN}]+)"
    r"|(?P<mark>\S)"
)
_UNIT = re.compile(
    r"\s?(?P<unit>(?:万亿|千万|百万|[千万亿])?(?:美元|欧元|英镑|港元|日元|元|人民币)|万亿|千万|百万|[千万亿]"
    r"|个百分点|公里|千米|平方米|公斤|千克|小时|分钟|[年月日天周人次个家台辆吨米克秒倍股]"
    r"|(?:trillion|billion|million|thousand|percent|per cent|hours?|minutes?|seconds?|days?|weeks?|months?"
    r"|years?|miles?|tonnes?|tons?|kilometres|kilometers|metres|meters"
    r"|km/h|mph|km|kg|mg|mm|cm|ms|kWh|MWh|GWh|kW|MW|GW|GB|MB|TB|bn|tn|m|g|s|h|k)\b|°[CF])"
)


class Token(NamedTuple):
    """`text` is the part [start:end] of what was read. A number has a `value`, and a `unit` where one follows
    it.
    """

    text: str
    kind: Kind
    start: int
    end: int
    value: float | None = None
    unit: str | None = None


def tokens_of(text: str) -> list[Token]:
    """All tokens, in order; only space is left out. Linear in the text's length."""
    found: list[Token] = []
    for match in _TOKENS.finditer(text):
        start, end = match.span()
        if match.lastgroup == "han":
            found += [Token(word, "han", start + at, start + until) for word, at, until in cut(match[0])]
        elif match.lastgroup == "number":
            found.append(_number(text, match[0], start, end))
        else:
            kind: Kind = "latin" if match.lastgroup == "latin" else "mark"
            found.append(Token(match[0], kind, start, end))
    return found


def _number(text: str, shown: str, start: int, end: int) -> Token:
    sign = shown[-1] if shown[-1] in "%％‰" else ""
    digits = shown[: len(shown) - len(sign)].replace(",", "")
    # Beyond this a double has no place for the digits, and an int none in JSON.
    value = float(digits) if len(digits) <= 300 else None
    if sign:
        return Token(shown, "number", start, end, value, "‰" if sign == "‰" else "%")
    unit = _UNIT.match(text, end)
    return Token(shown, "number", start, end, value, unit["unit"] if unit else None)


def is_chinese(text: str) -> bool:
    """Whether there are more Chinese characters than a third of the letters of alphabets."""
    han = len(_HAN.findall(text))
    return han > 0 and 3 * han >= len(_LETTERS.findall(text))


_HAN = re.compile(rf"[{HAN}]")
_LETTERS = re.compile(_LETTER)
