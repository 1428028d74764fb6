"""People, places, organisations and peoples: by titles, by lists, and by a small classifier of words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from streams.privacy import chinese, classifier
from streams.privacy.classifier import CLASSES, Model
from streams.privacy.features import Token, tokens_of
from streams.privacy.finding import Detector, Finding
from streams.privacy.lexicon import CITY, KNOWN_FIRST, RANK, heads, marks, places

NAME = "names"

_TITLED = re.compile(
    r"\b(?:Mr|Mrs|Ms|Mx|Miss|Dr|Prof|Professor|Sir|Lady|Lord|Madam|Herr|Frau|Fr|Monsieur|Madame|Mme|Mlle"
    r"|Señora?|Sra?|Srta"
    r"|Signora?|Sig|Dott|Mevrouw|Meneer|Dhr|Mevr|Senhora?|Pan|Pani|Capt|Captain|Lt|Sgt|Col|Judge|Justice"
    r"|Rev|Rabbi|Imam|Sheikh)"
    r"\b\.? (?:[A-Z]\. ?)?[^\W\d_a-z][^\W\d_]+(?:[ -][^\W\d_a-z][^\W\d_]+){0,2}"
    r"|\b(?:mr|mrs|ms|dr)\.? [^\W\d_]{3,}"
)
_UNREAD = re.compile(
    "[\u0370-\u03ff\u0400-\u052f\u0530-\u058f\u0590-\u05ff\u0600-\u06ff\u0700-\u08ff\u0900-\u0dff\u0e00-\u0fff"
    "\u1000-\u109f\u10a0-\u11ff\u1200-\u137f\u1780-\u17ff\u1f00-\u1fff\u3040-\u30ff\uac00-\ud7af]"
    "[\u0300-\u109f\u10a0-\u11ff\u1200-\u137f\u1780-\u17ff\u1f00-\u1fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}"
)
_CJK = re.compile("[\u4e00-\u9fff]")
_MOST_WORDS = 5
_JOINT = re.compile(r" ?[-&'’]? ?|(?: [A-Z])?\. ")
_COMPANIES = frozenset(
    (
        *("ag", "bank", "bv", "co", "company", "corp", "corporation", "gmbh", "group", "holding", "holdings"),
        *("inc", "incorporated", "instruments", "kg", "limited", "llc", "llp", "ltd", "nv", "oy", "partners"),
        *("plc", "sa", "sarl", "se", "solutions", "spa", "srl", "systems", "technologies"),
    )
)
_DATES = frozenset(
    (
        *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
        *("november", "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"),
        *("sunday", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"),
    )
)
"""They are told by their number, if at all."""
_COMMON_BAR = 0.5
_LEADS = frozenset(("in", "from", "near", "at", "to"))
_WORDS_TOO = frozenset(
    (
        *(
            "amber",
            "angel",
            "apple",
            "april",
            "art",
            "august",
            "dean",
            "edit",
            "else",
            "faith",
            "grace",
            "guy",
        ),
        *(
            "hope",
            "hunter",
            "iris",
            "joy",
            "july",
            "june",
            "line",
            "mai",
            "march",
            "mark",
            "may",
            "per",
            "rose",
        ),
        *("said", "summer", "tea", "urban", "will"),
    )
)
_LOWER_TOO = _WORDS_TOO | {"max", "marina", "urban"}

_MEASURES = frozenset(
    (
        *("bn", "mn", "mio", "mrd", "mln", "tn", "tsd", "pct", "bps", "bp", "yoy", "qoq", "mom", "ytd", "vs"),
        *("approx", "eps", "ebit", "ebitda", "capex", "opex", "cagr"),
    )
)
"""What stands behind or beside figures in reports, and in no list of words: each was taken for a place."""


class Names:
    """Words are findings where the classifier's doubt that they are none exceeds its threshold."""

    name = NAME

    def __init__(self, model: Model | None = None) -> None:
        self._model = model or classifier.model()
        marks(), heads()

    def find(self, text: str, /) -> Iterator[Finding]:
        yield from (Finding("person", match[0], 0.9, NAME) for match in _TITLED.finditer(text))
        if not text.isascii():
            yield from (Finding("unread", match[0], 0.3, NAME) for match in _UNREAD.finditer(text))
            if _CJK.search(text):
                yield from _chinese(text)
        tokens = tokens_of(text, marks())
        yield from _known_places(text, tokens)
        yield from _known_names(tokens)
        yield from self._classified(text)

    def _classified(self, text: str) -> Iterator[Finding]:
        """Words that follow each other are one finding: of the kind that is surest, or a company by its last
        word."""
        start = end = 0
        kind, score = "", 0.0
        for token, chances in self._model.chances(text):
            doubt = 1.0 - float(chances[0])
            bar = _COMMON_BAR if _is_common(token) else self._model.threshold
            if doubt < bar or token.word in _DATES or _is_measure(text, token):
                continue
            found = CLASSES[1 + int(chances[1:].argmax())]
            if kind and _JOINT.fullmatch(text, end, token.start):
                end = token.end
                if token.word in _COMPANIES:
                    kind, score = "organization", 1.0
                elif doubt > score:
                    kind, score = found, doubt
                continue
            if kind:
                yield Finding(kind, text[start:end], score, NAME)
            kind, start, end, score = found, token.start, token.end, doubt
        if kind:
            yield Finding(kind, text[start:end], score, NAME)


def _is_measure(text: str, token: Token) -> bool:
    """Whether a word is one of a report's units; in capitals (`MN` is a state too) only behind a number."""
    if token.word not in _MEASURES:
        return False
    return token.shape[0] == "l" or text[: token.start].rstrip(" .").endswith(tuple("0123456789"))


def _is_common(token: Token) -> bool:
    """Whether a word in lower case is one of the 30,000 commonest and no name: little doubt is no finding."""
    rank = token.mark & RANK
    named = (token.mark & KNOWN_FIRST and token.word not in _LOWER_TOO) or (token.mark & CITY and rank > 2)
    return token.shape == "l" and 0 < rank <= 3 and not named


def _known_places(text: str, tokens: list[Token]) -> Iterator[Finding]:
    """Countries, their people, large regions. In lower case only where the whole text is."""
    known = places()
    lower = not any(token.shape[0] in "CUM" for token in tokens if token.word)
    for index, token in enumerate(tokens):
        unheard = token.mark & RANK == 0
        if not (lower or unheard or token.shape[0] in "CU") or not heads() & _singulars(token.word):
            continue
        words: list[str] = []
        for other in tokens[index : index + _MOST_WORDS]:
            if not other.word:
                break
            words.append(other.word)
            name = " ".join(words)
            if known & _singulars(name) and not _is_product(tokens, index + len(words)):
                yield Finding("location", text[token.start : other.end], 0.8, NAME)


def _known_names(tokens: list[Token]) -> Iterator[Finding]:
    """First names that many countries know, and cities after a word that leads to one."""
    for index, token in enumerate(tokens):
        if token.shape[0] != "C" or token.word in _WORDS_TOO or len(token.word) < 3:
            continue
        if token.mark & KNOWN_FIRST:
            yield Finding("person", token.text, 0.5, NAME)
        elif token.mark & CITY and index and tokens[index - 1].word in _LEADS and token.mark & RANK != 1:
            yield Finding("location", token.text, 0.5, NAME)


def _singulars(name: str) -> set[str]:
    """`name`, and what it may be the plural of. ("US" is too short: it is also a word.)"""
    found = {name, re.sub(r"m[ae]ns?$", "man", name)} if len(name) > 2 else set()
    return (
        found | {re.sub(r"s$", "", name), re.sub(r"mans?$", "", name), re.sub(r"n?s$", "", name)}
        if found
        else found
    )


def _is_product(tokens: list[Token], after: int) -> bool:
    return after < len(tokens) and tokens[after].word in ("express", "airlines", "language")


def _chinese(text: str) -> Iterator[Finding]:
    yield from (Finding("person", name, 0.8, NAME) for name in chinese.people(text))
    yield from (Finding("location", name, 0.8, NAME) for name in _chinese_places() if name in text)


@cache
def _chinese_places() -> tuple[str, ...]:
    return tuple(place for place in places() if len(place) > 1 and _CJK.match(place))


def detector() -> Detector:
    """The detector `names`."""
    return Names()
