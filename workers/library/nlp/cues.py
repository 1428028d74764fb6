"""What the entity tagger sees of a text: units (words, or single Chinese characters) and their features."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from workers.library.nlp.dictionary import tagged
from workers.library.nlp.tokens import HAN, tokens_of

Lexicon = Mapping[str, str]
"""Lower-case word -> letters that say what it may be: F and L first and last name, C city, P country."""


_RUN = re.compile(rf"[{HAN}]|[^\W{HAN}]+|\S")
_HAN = re.compile(rf"[{HAN}]")
_SUFFIXES_TEXT = """
inc ltd limited corp corporation plc group holdings gmbh ag llc llp co company bank university college
association institute ministry department council committee party union club fund trust partners capital
insurance airlines technologies systems agency commission court school hospital church
"""
_SUFFIXES: Final = frozenset(_SUFFIXES_TEXT.split())
_TITLES_TEXT = """
mr mrs ms miss dr prof sir lord lady president minister senator ceo chairman judge king queen pope
captain general sergeant director secretary governor mayor
"""
_TITLES: Final = frozenset(_TITLES_TEXT.split())
_SURNAMES: Final = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈"
    "姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)


class Unit(NamedTuple):
    text: str
    start: int
    end: int


def english_units(text: str) -> list[Unit]:
    return [Unit(token.text, token.start, token.end) for token in tokens_of(text)]


def chinese_units(text: str) -> list[Unit]:
    """Each Chinese character alone, each run of other letters and digits, each mark."""
    return [Unit(match[0], *match.span()) for match in _RUN.finditer(text)]


def english_features(units: Sequence[Unit], lexicon: Lexicon) -> list[list[str]]:
    """One list a unit: the word, its form, its neighbours, what the lexicon knows of them."""
    words = ["<s>", "<s>", *(unit.text.lower() for unit in units), "</s>", "</s>"]
    letters = [unit.text for unit in units if unit.text.isalpha()]
    loud = "loud" if len(letters) > 2 and all(word.isupper() for word in letters) else ""
    shapes = ["^", "^", *(_shape(unit.text) for unit in units), "$", "$"]
    known = [_known(word, lexicon) for word in words]
    found = []
    for at, unit in enumerate(units, 2):
        word = words[at]
        row = ["1", f"w {word}", f"s {shapes[at]}", f"k {known[at]}", f"ks {known[at]} {shapes[at]}"]
        row += [f"w{d} {words[at + d]}" for d in (-2, -1, 1, 2)]
        row += [f"s{d} {shapes[at + d]}" for d in (-2, -1, 1, 2)]
        row += [f"k{d} {known[at + d]}" for d in (-1, 1)]
        row += [f"b {words[at - 1]} {word}", f"a {word} {words[at + 1]}", f"kk {known[at]} {known[at + 1]}"]
        row += [f"pk {known[at - 1]} {known[at]}", f"ss {shapes[at - 1]} {shapes[at]} {shapes[at + 1]}"]
        row += [f"p {word[:3]}", f"e {word[-3:]}", f"e2 {word[-2:]}", f"e4 {word[-4:]}"]
        row += [f"sw {shapes[at]} {words[at - 1]}", f"ws {shapes[at]} {words[at + 1]}"]
        if at == 2 or (at == 3 and not unit.text.isalnum()):
            row.append(f"first {shapes[at]} {known[at]}")
        if loud:
            row += [loud, f"loud {known[at]}"]
        found.append(row)
    return found


def chinese_features(text: str, units: Sequence[Unit]) -> list[list[str]]:
    """One list a unit: the characters around it, the word of jieba's dictionary it is in, and that one's
    neighbours.
    """
    words = _words(text, units)
    forms = [unit.text if _HAN.fullmatch(unit.text) else _shape(unit.text) for unit in units]
    c = ["<s>", "<s>", *forms, "</s>", "</s>"]
    found = []
    for at, unit in enumerate(units, 2):
        word, tag, place, before, after = words[at - 2]
        row = ["1", *(f"c{d} {c[at + d]}" for d in (-2, -1, 0, 1, 2))]
        row += [f"d{d} {c[at + d]} {c[at + d + 1]}" for d in (-2, -1, 0, 1)]
        row += [f"t{d} {c[at + d - 1]} {c[at + d]} {c[at + d + 1]}" for d in (-1, 0, 1)]
        row += [
            f"w {word} {place}",
            f"g {tag} {place}",
            f"wl {len(word)} {place}",
            f"we {word[-1]} {tag} {place}",
        ]
        row += [f"b {before[0]} {place}", f"a {after[0]} {place}", f"bg {before[1]} {tag} {place}"]
        row += [f"ag {tag} {after[1]} {place}", f"bga {before[1]} {tag} {after[1]} {place}"]
        row += [f"ae {after[0][-1:]} {tag} {place}"]
        if unit.text in _SURNAMES:
            row += ["sur", f"sur {place} {tag}"]
        if at > 2 and units[at - 3].text in _SURNAMES:
            row.append(f"sur-1 {place} {tag}")
        found.append(row)
    return found


_Neighbour = tuple[str, str]


def _words(text: str, units: Sequence[Unit]) -> list[tuple[str, str, str, _Neighbour, _Neighbour]]:
    """Of each unit: its word, that one's tag, the unit's place in it, the words before and after."""
    spans, at = [], 0
    for word, tag in tagged(text):
        if word.strip():
            spans.append((at, at + len(word), word, tag))
        at += len(word)
    found, index = [], 0
    for unit in units:
        while index + 1 < len(spans) and spans[index][1] <= unit.start:
            index += 1
        start, end, word, tag = spans[index]
        place = (
            ("S" if unit.end >= end else "B") if unit.start <= start else ("E" if unit.end >= end else "M")
        )
        before = spans[index - 1][2:] if index else ("<s>", "^")
        after = spans[index + 1][2:] if index + 1 < len(spans) else ("</s>", "$")
        found.append((word, tag, place, before, after))
    return found


def _shape(word: str) -> str:
    """`Northwind` as Aa, `U.S.` as A., `2024` as 9."""
    shape = ""
    for c in word[:24]:
        kind = "9" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c
        if not shape.endswith(kind):
            shape += kind
    return shape + ("1" if len(word) == 1 else "")


def _known(word: str, lexicon: Lexicon) -> str:
    extra = "S" if word in _SUFFIXES else "T" if word in _TITLES else ""
    return lexicon.get(word, "") + extra or "-"
