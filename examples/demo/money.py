"""Amounts of money in English and Chinese text, as numbers with a currency."""

import re
from dataclasses import dataclass

_UNITS = {
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6, "bn": 1e9,
    "千": 1e3, "万": 1e4, "百万": 1e6, "千万": 1e7, "亿": 1e8, "万亿": 1e12,
}  # fmt: skip
_CURRENCIES = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollars": "USD", "美元": "USD",
    "€": "EUR", "eur": "EUR", "euros": "EUR", "euro": "EUR", "欧元": "EUR",
    "£": "GBP", "gbp": "GBP", "pounds": "GBP", "英镑": "GBP",
    "¥": "CNY", "￥": "CNY", "cny": "CNY", "rmb": "CNY", "yuan": "CNY", "元": "CNY", "人民币": "CNY",
    "港元": "HKD", "hkd": "HKD",
}  # fmt: skip

# Bounded, and never begun inside a number: an endless row of digits must not cost quadratic time.
_NUMBER = r"(?<![\d.,])(?P<{0}>\d{{1,3}}(?:,\d{{3}}){{1,5}}(?:\.\d{{1,6}})?|\d{{1,15}}(?:\.\d{{1,6}})?)(?!\d)"
_PREFIXED = (
    r"(?P<before>US\$|[$€£¥￥]|\b(?:USD|EUR|GBP|CNY|RMB|HKD)\b|人民币)\s?"
    + _NUMBER.format("first")
    + r"\s?(?P<unit1>(?:thousand|million|billion|trillion|bn|[mk])\b|万亿|千万|百万|[千万亿])?元?"
)
_SUFFIXED = (
    _NUMBER.format("second")
    + r"\s?(?P<unit2>(?:thousand|million|billion|trillion|bn)\b|万亿|千万|百万|[千万亿])?\s?"
    + r"(?P<after>美元|欧元|英镑|港元|元|\b(?:dollars|euros?|pounds|yuan|USD|EUR|GBP|CNY|RMB|HKD)\b)"
)
_MONEY = re.compile(f"{_PREFIXED}|{_SUFFIXED}", re.IGNORECASE)


@dataclass(frozen=True)
class Money:
    """`value` in whole units of `currency` (ISO 4217), found at text[start:end]."""

    start: int
    end: int
    value: float
    currency: str


def unit_factor(unit: str) -> float:
    """1 for an empty unit; `million`, `亿` and the like as numbers. ValueError names the known ones."""
    if not unit:
        return 1.0
    factor = _UNITS.get(unit.lower())
    if factor is None:
        raise ValueError(f"the unit is not known; use one of {', '.join(_UNITS)}, or none")
    return factor


def find_money(text: str) -> list[Money]:
    """All amounts, in the order of the text. A number without a currency is no amount."""
    found = []
    for match in _MONEY.finditer(text):
        number = (match["first"] or match["second"]).replace(",", "")
        unit = unit_factor(match["unit1"] or match["unit2"] or "")
        currency = _CURRENCIES[(match["before"] or match["after"]).lower()]
        # A decimal amount times a power of ten must not show binary noise such as 1260000000.0000002.
        found.append(Money(match.start(), match.end(), round(float(number) * unit, 2), currency))
    return found
