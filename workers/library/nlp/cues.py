"""What the English tagger sees of a sentence: its words and their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from workers.library.nlp.tokens import tokens_of

Lexicon = Mapping[str, tuple[str, str]]
"""Lower-case word -> letters that say what it may be (F, L a first or last name, C a city, c a town, P a
country or region, A a people, O of an organisation's name, n a word that is often written small), and a group
of like words.
"""

_SUFFIXES_TEXT = """
inc ltd limited corp corporation plc group holdings gmbh ag llc llp co company bank university college
association institute ministry department council committee party union club fund trust partners capital
insurance airlines technologies systems agency commission court school hospital church fc bros sons
federation foundation museum orchestra times post herald news museum senate parliament army police
"""
_SUFFIXES: Final = frozenset(_SUFFIXES_TEXT.split())
_TITLES_TEXT = """
mr mrs ms miss dr prof sir lord lady president minister senator ceo chairman judge king queen pope
captain general sergeant director secretary governor mayor professor detective coach saint aunt uncle
"""
_TITLES: Final = frozenset(_TITLES_TEXT.split())
_NOTHING: Final = ("", "-")


class Unit(NamedTuple):
    text: str
    start: int
    end: int


def english_units(text: str) -> list[Unit]:
    """The tokens; `'s` at a word's end stands alone, so that names end before it."""
    found = []
    for token in tokens_of(text):
        cut = token.end - 2 if token.text[-2:] in ("'s", "’s", "'S") and len(token.text) > 2 else token.end
        found.append(Unit(text[token.start : cut], token.start, cut))
        if cut < token.end:
            found.append(Unit("'s", cut, token.end))
    return found


def english_features(units: Sequence[Unit], lexicon: Lexicon) -> list[list[str]]:
    """One list a unit: the word, its form, its neighbours, what the lexicon knows of them."""
    words = ["<s>", "<s>", *(unit.text.lower() for unit in units), "</s>", "</s>"]
    style = _style(units)
    shapes = ["^", "^", *(_shape(unit.text) for unit in units), "$", "$"]
    entries = [lexicon.get(word, _NOTHING) for word in words]
    known = [_known(word, kinds) for word, (kinds, _) in zip(words, entries, strict=True)]
    groups = [group for _, group in entries]
    found = []
    for at, unit in enumerate(units, 2):
        word, shape, k, g = words[at], shapes[at], known[at], groups[at]
        row = ["1", f"w {word}", f"s {shape}", f"k {k}", f"ks {k} {shape}", f"g {g}", f"gs {g} {shape}"]
        row += [f"w{d} {words[at + d]}" for d in (-2, -1, 1, 2)]
        row += [f"s{d} {shapes[at + d]}" for d in (-2, -1, 1, 2)]
        row += [f"k{d} {known[at + d]} {shapes[at + d]}" for d in (-1, 1)]
        row += [f"g{d} {groups[at + d]}" for d in (-2, -1, 1, 2)]
        row += [f"b {words[at - 1]} {word}", f"a {word} {words[at + 1]}", f"kk {k} {known[at + 1]} {shape}"]
        row += [f"pk {known[at - 1]} {k} {shape}", f"ss {shapes[at - 1]} {shape} {shapes[at + 1]}"]
        row += [f"p {word[:3]}", f"e {word[-3:]}", f"e2 {word[-2:]} {shape}"]
        row += [f"sw {shape} {words[at - 1]}", f"ws {shape} {words[at + 1]}"]
        row += [f"sg {shape} {groups[at - 1]}", f"gr {shape} {groups[at + 1]}"]
        row.append(f"gg {shape} {groups[at - 1]} {groups[at + 1]}")
        if at == 2 or (at == 3 and not unit.text.isalnum()):
            row.append(f"first {shape} {k}")
        if style:
            row += [style, f"{style} {k} {shape}"]
        found.append(row)
    return found


def _style(units: Sequence[Unit]) -> str:
    """`loud` of words that are all capitals, `head` of a headline, where nearly every word has one."""
    letters = [unit.text for unit in units if unit.text.isalpha()]
    if len(letters) > 2 and all(word.isupper() for word in letters):
        return "loud"
    long = [word for word in letters if len(word) > 3]
    return "head" if len(long) > 3 and sum(word[0].isupper() for word in long) >= 0.85 * len(long) else ""


def _shape(word: str) -> str:
    """`Northwind` as Aa, `U.S.` as A., `2024` as 9."""
    shape = ""
    for c in word[:24]:
        kind = "9" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c
        if not shape.endswith(kind):
            shape += kind
    return shape + ("1" if len(word) == 1 else "")


def _known(word: str, kinds: str) -> str:
    extra = "S" if word in _SUFFIXES else "T" if word in _TITLES else ""
    return kinds + extra or "-"
