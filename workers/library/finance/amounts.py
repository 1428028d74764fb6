"""Amounts of money and percentages in English and Chinese text, as decimals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from workers.errors import BadInput

UNITS = {
    "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "k": 3, "m": 6, "mn": 6, "bn": 9, "tn": 12,
    "千": 3, "万": 4, "百万": 6, "千万": 7, "亿": 8, "十亿": 9, "百亿": 10, "万亿": 12,
}  # fmt: skip
"""Powers of ten."""
CURRENCIES = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollars": "USD", "dollar": "USD", "美元": "USD",
    "€": "EUR", "eur": "EUR", "euros": "EUR", "euro": "EUR", "欧元": "EUR",
    "£": "GBP", "gbp": "GBP", "pounds": "GBP", "英镑": "GBP",
    "¥": "CNY", "￥": "CNY", "cny": "CNY", "rmb": "CNY", "yuan": "CNY", "元": "CNY", "人民币": "CNY",
    "hk$": "HKD", "hkd": "HKD", "港元": "HKD", "港币": "HKD", "jpy": "JPY", "yen": "JPY", "日元": "JPY",
}  # fmt: skip
"""ISO 4217; `¥` is read as CNY."""

# Bounded, and never begun inside a number: an endless row of digits must not cost quadratic time.
# A hyphen is a minus, but for one between two numbers ("5亿-6亿"), in a word, or with space behind it
# ("Revenue - $5m"); Chinese stands close before it.
_SIGN = r"(?<![^\W\u4e00-\u9fff])(?<![)）%％元亿万千百年月日])"
_NUMBER = r"(?<![\d.,])(?P<number>\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,6})?|\d{1,15}(?:\.\d{1,6})?)(?!\d)"
_AMOUNT = re.compile(
    r"(?P<sign>" + _SIGN + r"(?:[-–](?!\s)|−\s?))?"
    r"(?P<before>US\$|HK\$|[$€£¥￥]|\b(?:USD|EUR|GBP|CNY|RMB|HKD|JPY)\b|人民币)?\s?"
    r"(?P<minus>(?<=[$€£¥￥币])[-−])?(?P<loss>(?<=[$€£¥￥])\((?=[\d.,]{1,40}\)))?"
    + _NUMBER
    + r"(?(loss)\))(?:\s?(?P<unit>(?:thousand|million|billion|trillion|mn|bn|tn|[mk])\b"
    r"|万亿|百亿|十亿|千万|百万|[千万亿]))?"
    r"(?:\s?(?P<after>美元|欧元|英镑|港元|港币|日元|人民币|元"
    r"|\b(?:dollars?|euros?|pounds|yen|yuan|USD|EUR|GBP|CNY|RMB|HKD|JPY)\b))?",
    re.IGNORECASE,
)
# The unit of "$5-6 million" is that of both.
_RANGE = re.compile(
    r"\s?(?:[-–~～至]|to\b)\s?[$€£¥￥]?\s?[\d.,]{1,20}\s?"
    r"(?P<unit>(?:thousand|million|billion|trillion|mn|bn|tn|[mk])\b|万亿|百亿|十亿|千万|百万|[千万亿])",
    re.IGNORECASE,
)
_PERCENT = re.compile(
    r"(?P<sign>" + _SIGN + r"[-−+])?(?<![\d.,])(?P<number>\d{1,6}(?:\.\d{1,6})?)\s?"
    r"(?:%|％|percent\b|per cent\b)"
    r"|百分之(?P<said>\d{1,6}(?:\.\d{1,6})?)",
    re.IGNORECASE,
)
# Accounts write a loss in brackets; "(about $5m)" and "100亿元（14亿美元）" are none.
_STATED = re.compile(
    r"(?:^|[:：=]|为|是|\b(?:was|were|is|of|to|from|at|with|versus|vs|against|than))\s*$", re.IGNORECASE
)
# One character each, so that offsets stay those of the text.
_NARROW = {code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), 0xFF0B, 0xFF0D, 0xFF0E, 0xFF04)}


class Amount(NamedTuple):
    """`value` in whole units of `currency` (None: not named) at text[start:end], said to `within` of it."""

    start: int
    end: int
    value: Decimal
    currency: str | None
    within: Decimal


def power_of(unit: str) -> int:
    """The power of ten of `million`, `亿` and the like; 0 of an empty unit.

    Raises:
        BadInput: another unit.
    """
    found = UNITS.get(unit.strip().lower()) if unit.strip() else 0
    if found is None:
        raise BadInput(f"the unit is not known; use one of {', '.join(UNITS)}, or none")
    return found


def narrow(text: str) -> str:
    """`text` with full-width digits and signs in usual width; every character keeps its place."""
    return text.translate(_NARROW)


def find_amounts(text: str) -> Iterator[Amount]:
    """In the order of the text. A number without currency and unit is no amount."""
    for match in _AMOUNT.finditer(text):
        unit, named = match["unit"], match["before"] or match["after"]
        # "5 m" is a length as well, and "2千" seldom a figure; with a currency beside them they are money.
        if named is None and (unit is None or unit.lower() in ("m", "k", "千")):
            continue
        start = match.start()
        while text[start].isspace():
            start += 1
        if unit is None and (range_ := _RANGE.match(text, match.end())):
            unit = range_["unit"]
        value, within = scaled(match["number"], UNITS[unit.lower()] if unit else 0)
        minus = match["sign"] or match["minus"] or match["loss"] or _in_brackets(text, start, match.end())
        yield Amount(
            start,
            match.end(),
            -value if minus else value,
            CURRENCIES[named.lower()] if named else None,
            within,
        )


def _in_brackets(text: str, start: int, end: int) -> bool:
    if text[start - 1 : start] not in ("(", "（") or text[end : end + 1] not in (")", "）"):
        return False
    return _STATED.search(text[max(0, start - 12) : start - 1]) is not None


def find_percents(text: str) -> Iterator[Amount]:
    """Percentages as shares: `12.5%` is 0.125."""
    for match in _PERCENT.finditer(text):
        value, within = scaled(match["number"] or match["said"], -2)
        minus = (match["sign"] or "+") != "+"
        yield Amount(match.start(), match.end(), -value if minus else value, None, within)


def scaled(number: str, power: int) -> tuple[Decimal, Decimal]:
    """A number written out, times 10 to the `power`; and half a unit of its last digit."""
    value = Decimal(number.replace(",", ""))
    exponent = value.as_tuple().exponent
    last = exponent if isinstance(exponent, int) else 0
    return value.scaleb(power), Decimal(5).scaleb(last - 1 + power)
