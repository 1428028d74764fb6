"""The figures of a financial report: which amount is the revenue, which the year before."""

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .money import Money, find_money, unit_factor

TERMS = {
    "revenue": ("营业总收入", "营业收入", "营收", "revenues", "revenue", "net sales", "turnover"),
    "cost": ("营业成本", "cost of sales", "cost of revenue", "cost of goods sold"),
    "gross_profit": ("毛利润", "毛利", "gross profit"),
    "operating_profit": ("营业利润", "operating profit", "operating income"),
    "net_profit": ("归母净利润", "净利润", "net profit", "net income"),
    "assets": ("总资产", "资产总额", "total assets"),
    "liabilities": ("总负债", "负债总额", "total liabilities"),
}
_ITEM = {term: item for item, terms in TERMS.items() for term in terms}
_TERM = re.compile("|".join(re.escape(term) for term in sorted(_ITEM, key=len, reverse=True)), re.IGNORECASE)
_SENTENCE = re.compile(r"[。！？；;\n]|[.!?](?=\s|$)")
_BEFORE = re.compile(
    r"上年|去年|前一年|同期|\bfrom\b|compared (?:with|to)|\bversus\b|\bagainst\b", re.IGNORECASE
)
_AFTER = re.compile(
    r"^[\s,，)）]*(?:a year earlier|a year ago|last year|the (?:year before|prior year))", re.IGNORECASE
)
_MAX_TEXT = 100_000


@dataclass(frozen=True)
class Figure:
    """One item of the report now and a year before, in whole units of currency; None where not stated."""

    current: float | None
    previous: float | None
    currency: str


def text_of(inputs: Mapping[str, Any]) -> str:
    """`inputs.text`; ValueError where it is absent, blank, no string or over 100,000 characters."""
    text = inputs.get("text")
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"inputs.text must be a text that is not blank, got {type(text).__name__}")
    if len(text) > _MAX_TEXT:
        raise ValueError(
            f"inputs.text has {len(text)} characters; at most {_MAX_TEXT} are read: send it in parts"
        )
    return text


def _is_previous(text: str, money: Money, since: int, until: int) -> bool:
    return bool(_BEFORE.search(text[since : money.start]) or _AFTER.match(text[money.end : until]))


def _figure(text: str, amounts: list[Money], since: int, until: int) -> Figure | None:
    now: Money | None = None
    before: Money | None = None
    first, last = (bisect_left(amounts, edge, key=lambda money: money.start) for edge in (since, until))
    for money in amounts[first:last]:
        if _is_previous(text, money, since, until):
            before = before or money
        else:
            now = now or money
        since = money.end
    some = now or before
    if some is None:
        return None
    return Figure(now.value if now else None, before.value if before else None, some.currency)


def from_text(text: str) -> dict[str, Figure]:
    """By rule: an item's amounts stand between its name and the next item's name, in the same sentence.

    An amount after words like "from" or 上年同期, or before "a year earlier", is the previous one.
    The first mention of an item counts.
    """
    amounts = find_money(text)
    named = list(_TERM.finditer(text))
    ends = [match.start() for match in _SENTENCE.finditer(text)]
    found: dict[str, Figure] = {}
    for place, match in enumerate(named):
        following = named[place + 1].start() if place + 1 < len(named) else len(text)
        stop = bisect_left(ends, match.end())
        until = min(following, ends[stop]) if stop < len(ends) else following
        figure = _figure(text, amounts, match.end(), until)
        if figure is not None:
            found.setdefault(_ITEM[match[0].lower()], figure)
    return found


def _number(value: object, name: str, factor: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e18:
        raise ValueError(f"inputs.figures.{name} must be a number within 1e18")
    return round(float(value) * factor, 2)


def from_inputs(inputs: Mapping[str, Any]) -> dict[str, Figure]:
    """`inputs.figures` (item -> number or {current, previous}, in `inputs.unit`), else those of the text.

    Raises ValueError for an item that is not in TERMS, a value that is no finite number, or an unknown unit.
    """
    given = inputs.get("figures")
    if given is None:
        return from_text(text_of(inputs))
    if not isinstance(given, Mapping):
        raise ValueError(f"inputs.figures must be an object of items, got {type(given).__name__}")
    factor, currency = unit_factor(str(inputs.get("unit", ""))), str(inputs.get("currency", "CNY"))
    found = {}
    for name, value in given.items():
        if name not in TERMS:
            raise ValueError(f"inputs.figures.{name} is not known; use {', '.join(TERMS)}"[:300])
        pair = value if isinstance(value, Mapping) else {"current": value}
        current, previous = (
            _number(pair.get(key), f"{name}.{key}", factor) for key in ("current", "previous")
        )
        found[name] = Figure(current, previous, currency)
    return found
