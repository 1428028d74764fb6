"""Amounts of money in English and Chinese text, as numbers with a currency. A grammar: nothing is learned."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

UNITS: Final[dict[str, float]] = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6,
    "mn": 1e6, "mln": 1e6, "b": 1e9, "bn": 1e9, "tn": 1e12, "百": 1e2, "千": 1e3, "万": 1e4, "十万": 1e5,
    "百万": 1e6, "千万": 1e7, "亿": 1e8, "十亿": 1e9, "百亿": 1e10, "千亿": 1e11, "万亿": 1e12, "兆": 1e12,
}  # fmt: skip
"""Words that multiply a number, in lower case."""

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "USD": ("us$", "$", "usd", "dollars", "dollar", "美元", "美金"),
    "EUR": ("€", "eur", "euros", "euro", "欧元"),
    "GBP": ("£", "gbp", "pounds sterling", "pounds", "pound", "英镑"),
    "CNY": ("¥", "￥", "rmb", "cny", "yuan", "renminbi", "人民币", "元", "块钱", "块"),
    "JPY": ("jpy", "yen", "日元", "日圆", "円"),
    "HKD": ("hk$", "hkd", "港元", "港币"),
    "AUD": ("a$", "au$", "aud", "澳元"),
    "CAD": ("c$", "ca$", "cad", "加元"),
    "SGD": ("s$", "sgd", "新加坡元", "新元"),
    "TWD": ("nt$", "twd", "新台币", "台币"),
    "CHF": ("chf", "swiss francs", "瑞士法郎"),
    "INR": ("₹", "inr", "rupees", "卢比"),
    "KRW": ("₩", "krw", "韩元"),
    "RUB": ("₽", "rub", "roubles", "rubles", "卢布"),
    "BRL": ("r$", "brl"),
}
_CODES: Final = {name: code for code, names in _NAMES.items() for name in names}


def _any(words: list[str]) -> str:
    shown = [_word(word) for word in sorted(words, key=len, reverse=True)]
    return "|".join(shown)


def _word(word: str) -> str:
    """Letters of the alphabet as a word, also beside Chinese ones, which `\\b` takes for letters too."""
    shown = re.escape(word)
    whole = word.isascii() and word[0].isalpha() and word[-1].isalpha()
    return rf"(?<![A-Za-z]){shown}(?![A-Za-z])" if whole else shown


_HAN_NUMBER = r"[零〇一二两三四五六七八九十百千万亿]"
# Bounded, and never begun inside a number: an endless row of digits must not cost quadratic time.
_DIGITS = (
    r"(?<![\d.,])(?P<{0}>\d{{1,3}}(?:,\d{{3}}){{1,5}}(?:\.\d{{1,6}})?|\d{{1,15}}(?:\.\d{{1,6}})?)(?![\d])"
)
_WORD_UNITS = [unit for unit in UNITS if unit.isascii()]
_HAN_UNITS = sorted((unit for unit in UNITS if not unit.isascii()), key=len, reverse=True)
_LONGEST = "|".join(sorted(_WORD_UNITS, key=len, reverse=True))
_SCALE = rf"(?:[\s-]?(?P<{{0}}>(?:{_LONGEST})(?![A-Za-z])|{'|'.join(_HAN_UNITS)}))?"
_BEFORE = [n for n in _CODES if not n[-1].isascii() or not n[-1].islower() or len(n) == 3]
_BEFORE = [n for n in _BEFORE if n not in ("元", "块", "块钱", "円", "美元", "欧元", "英镑", "日元", "港元")]
_AFTER = [n for n in _CODES if "$" not in n and n not in ("€", "£", "¥", "￥", "₹", "₩", "₽")] + ["€", "£"]
_MONEY = re.compile(
    rf"(?P<sign1>(?<![A-Za-z\d)%])[-−–])?(?<![A-Za-z])(?P<before>{_any(_BEFORE)})\s?(?P<sign2>[-−–])?"
    + _DIGITS.format("first")
    + _SCALE.format("unit1")
    + rf"(?:\s?(?:{_any(['dollars', '美元', '元', '人民币'])}))?"
    + r"|(?P<sign3>(?<![A-Za-z\d)%])[-−–])?"
    + _DIGITS.format("second")
    + r"(?:多|余)?"
    + _SCALE.format("unit2")
    + rf"[\s-]?(?P<after>{_any(_AFTER)})(?:人民币)?"
    + rf"|(?<!{_HAN_NUMBER})(?P<third>{_HAN_NUMBER}{{1,16}})(?:多|余)?"
    + rf"(?P<after3>{_any([n for n in _AFTER if not n.isascii() and n not in ('块', '€', '£')])})",
    re.IGNORECASE,
)
_HAN_DIGITS: Final = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_POWERS: Final = {"十": 10, "百": 100, "千": 1000}


class Money(NamedTuple):
    """`value` in whole units of `currency` (ISO 4217), found at text[start:end].

    `scale` is what the number written there is multiplied by. A bare $ is USD, a bare ¥ CNY.
    """

    start: int
    end: int
    value: float
    currency: str
    scale: float = 1.0


def unit_factor(unit: str) -> float:
    """1 for an empty unit; `million`, `亿` and the like as numbers.

    Raises:
        ValueError: a unit that is not known; the message names those there are.
    """
    if not unit:
        return 1.0
    factor = UNITS.get(unit.lower())
    if factor is None:
        raise ValueError(f"the unit is not known; use one of {', '.join(UNITS)}, or none")
    return factor


def find_money(text: str) -> list[Money]:
    """All amounts, in the order of the text. A number without a currency is no amount."""
    return [money for match in _MONEY.finditer(text) if (money := _money(match)) is not None]


def _money(match: re.Match[str]) -> Money | None:
    currency = _CODES[(match["before"] or match["after"] or match["after3"]).lower()]
    if match["third"]:
        value = chinese_number(match["third"])
        return None if value is None else Money(*match.span(), value, currency)
    number = float((match["first"] or match["second"]).replace(",", ""))
    scale = unit_factor(match["unit1"] or match["unit2"] or "")
    sign = -1.0 if match["sign1"] or match["sign2"] or match["sign3"] else 1.0
    # A decimal amount times a power of ten must not show binary noise such as 1260000000.0000002.
    return Money(*match.span(), sign * round(number * scale, 2), currency, scale)


def chinese_number(text: str) -> float | None:
    """`三亿五千万` as 350000000, `二〇二四` as 2024; None where it is no number."""
    if all(c in _HAN_DIGITS for c in text):
        return float("".join(str(_HAN_DIGITS[c]) for c in text))
    total, section, digit = 0, 0, None
    for c in text:
        if c in _HAN_DIGITS:
            digit = _HAN_DIGITS[c]
        elif c in _HAN_POWERS:
            section += (1 if digit is None else digit) * _HAN_POWERS[c]
            digit = None
        elif c in "万亿":
            section += digit or 0
            if section == 0 and total == 0:
                return None
            power = 10**4 if c == "万" else 10**8
            total = (total + section) * power if c == "亿" else total + section * power
            section, digit = 0, None
        else:
            return None
    return float(total + section + (digit or 0))
