"""`local/nlp/entities`, also in the cloud at no cost: people, organisations, places, money, dates, periods
and percentages of English and Chinese text.

Money, dates and percentages by grammar (`money`, `dates`); people, organisations and places by trained
taggers (`names`), companies also by their suffix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any, Final, Literal, NamedTuple

from workers.backends.function import capability
from workers.library.nlp.dates import find_dates
from workers.library.nlp.given import text_of
from workers.library.nlp.money import find_money
from workers.library.nlp.names import MODELS, Name, chinese, english, find_names
from workers.library.nlp.organisations import find_companies, find_percentages
from workers.models.cards import read_card

Kind = Literal["person", "organization", "place", "money", "date", "period", "percentage"]
MOST_SHOWN: Final = 2_000
_REVENUE: Final = re.compile("营业总收入|营业收入|营收|revenues?|net sales|turnover", re.IGNORECASE)
_NEAR: Final = 40
_NAMES: Final = ("person", "organization", "place")
_MOST_TERMS: Final = 50


class Entity(NamedTuple):
    """`text` is the part [start:end] of what was read; `more` what is known of it."""

    kind: Kind | str
    text: str
    start: int
    end: int
    more: dict[str, Any]


def _quality() -> str:
    cards = [MODELS / f"entities-{language}" / "1" / "card.json" for language in ("en", "zh")]
    # Not there before the first training, which imports this package; `load` tells of it.
    told = [read_card(card)["quality"] for card in cards if card.exists()]
    by_grammar = (
        "; by grammar: 111 of 111 amounts and 187 of 192 days of four English corpora, 45 of 48 amounts and"
        " 1,288 of 1,292 days and years of a Chinese one. Of all these texts only our own sentences are in"
        " the repository; none was trained on"
    )
    return "all names (person / organization / place): " + "; ".join(told) + by_grammar


_CARD: Final[dict[str, Any]] = {
    "cacheable": True,
    "model": "entities-en-zh",
    "licence": "Apache-2.0",
    "source": "a CRF of this project for English, LAC's small network (Baidu) for Chinese; grammars",
    "quality": _quality(),
    "load": lambda: find_names("Jane Doe of Northwind. 王伟在北京。"),
}


@capability("local/nlp/entities", **_CARD)
@capability("cloud/nlp/entities", **_CARD)
def entities(text: str = "", query: str = "", today: date | None = None) -> dict[str, Any]:
    """People, organisations, places, money, dates, periods, percentages, with their places and values.

    `today` (YYYY-MM-DD) gives dates to `yesterday`, `去年`, `3月12日`.
    """
    given = text_of(text, query)
    found = find_entities(given, today)
    shown = [
        {"kind": e.kind, "text": e.text, "start": e.start, "end": e.end, **e.more} for e in found[:MOST_SHOWN]
    ]
    said: dict[str, Any] = {"entities": shown}
    if len(found) > MOST_SHOWN:
        said["entities_left_out"] = len(found) - MOST_SHOWN
    for key, kind in (
        ("companies", "organization"),
        ("people", "person"),
        ("places", "place"),
        ("periods", "period"),
    ):
        said[key] = list(dict.fromkeys(entity.text for entity in found if entity.kind == kind))
    revenue = _near_revenue(given, found)
    return said if revenue is None else {**said, "revenue": revenue}


def find_entities(text: str, today: date | None = None) -> list[Entity]:
    """In the order of the text, without overlap; of two that overlap the surer kind stays."""
    taken = bytearray(len(text))
    kept = []
    for candidate in _candidates(text, today):
        clear = not any(taken[candidate.start : candidate.end])
        if entity := candidate if clear else _rest(candidate, text, taken):
            taken[entity.start : entity.end] = b"\1" * (entity.end - entity.start)
            kept.append(entity)
    return sorted(kept, key=lambda entity: entity.start)


def _rest(entity: Entity, text: str, taken: bytearray) -> Entity | None:
    """What a date or an amount leaves of a name's beginning: a tagger may run on, `王伟昨天` for `王伟`."""
    if entity.kind not in _NAMES:
        return None
    end = taken.find(1, entity.start, entity.end)
    left = _entity(entity.kind, text, entity.start, end, entity.more)
    return left if left.end - left.start >= 2 else None


def _candidates(text: str, today: date | None) -> Iterator[Entity]:
    """The surest first."""
    for money in find_money(text):
        more: dict[str, Any] = {"value": money.value, "currency": money.currency, "scale": money.scale}
        yield _entity("money", text, money.start, money.end, more)
    for share in find_percentages(text):
        yield _entity("percentage", text, share.start, share.end, {"value": share.value})
    for dated in find_dates(text, today):
        known = {} if dated.value is None else {"value": dated.value}
        yield _entity(dated.kind, text, dated.start, dated.end, known)
    names = find_names(text)
    for start, end in _companies(text, names):
        yield _entity("organization", text, start, end, {})
    for name in names:
        yield _entity(name.kind, text, name.start, name.end, {"score": round(name.share, 3)})


def _companies(text: str, names: list[Name]) -> Iterator[tuple[int, int]]:
    """By suffix; where the tagger ends an organisation there too, its start is the better one."""
    starts = {name.end: name.start for name in names if name.kind == "organization"}
    for company in find_companies(text):
        yield starts.get(company.end, company.start), company.end


def _entity(kind: str, text: str, start: int, end: int, more: dict[str, Any]) -> Entity:
    part = text[start:end]
    begin = start + len(part) - len(part.lstrip())
    return Entity(kind, part.strip(), begin, begin + len(part.strip()), more)


def _near_revenue(text: str, found: list[Entity]) -> float | None:
    """The first amount within 40 characters behind a word for revenue, whatever sentence or year it is of."""
    ends = [match.end() for match in _REVENUE.finditer(text)]
    for entity in found:
        if entity.kind == "money" and any(0 <= entity.start - at <= _NEAR for at in ends[:_MOST_TERMS]):
            return float(entity.more["value"])
    return None


def warm() -> None:
    """Reads the models."""
    english()
    chinese()
