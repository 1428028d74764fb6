"""Dates and periods in English and Chinese text, in the form of ISO 8601. A grammar: nothing is learned.

A period is written as an interval, `2024-01-01/2024-03-31`; a month or a year as itself, `2024-03`, `2024`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final, Literal, NamedTuple

_NAMES: Final = (
    r"Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?"
)
_MONTH = rf"(?:{_NAMES})\b\.?"
_Y = r"(?:1\d|2[01])\d\d"
_ORDINAL: Final = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "last": 4,
    "一": 1,
    "二": 2,
    "三": 3,
    "四": 4,
}
_HAN_Y = r"(?<!\d)(?P<{0}>(?:1\d|2[01])\d\d|[〇零一二三四五六七八九]{{4}})\s?年"
_HAN_N = r"[一二三四五六七八九十]{1,3}|\d{1,2}"
_RELATIVE: Final = {
    "yesterday": -1, "today": 0, "tomorrow": 1, "前天": -2, "昨天": -1, "昨日": -1, "今天": 0, "今日": 0,
    "明天": 1, "后天": 2,
}  # fmt: skip
_YEARS: Final = {"last year": -1, "this year": 0, "next year": 1, "去年": -1, "今年": 0, "明年": 1}


class Dated(NamedTuple):
    """`value` is None where the text alone does not say which day is meant."""

    kind: Literal["date", "period"]
    start: int
    end: int
    value: str | None


_Reader = Callable[[re.Match[str], date | None], str | None]


def find_dates(text: str, today: date | None = None) -> list[Dated]:
    """All of the text, in order, without overlap. `today` gives a day to `yesterday`, `去年`, `3月12日`."""
    found = [dated for rule in _RULES for dated in _found(rule, text, today)]
    # The longest of those that start together, then the one that starts first.
    found.sort(key=lambda dated: (dated.start, -dated.end))
    kept: list[Dated] = []
    for dated in found:
        if not kept or dated.start >= kept[-1].end:
            kept.append(dated)
    return kept


class _Rule(NamedTuple):
    kind: Literal["date", "period"]
    pattern: re.Pattern[str]
    read: _Reader


def _found(rule: _Rule, text: str, today: date | None) -> list[Dated]:
    found = []
    for match in rule.pattern.finditer(text):
        value = rule.read(match, today)
        if value != "":
            found.append(Dated(rule.kind, match.start(), match.end(), value))
    return found


def _day(year: int, month: int, day: int) -> str:
    """Empty where there is no such day."""
    ok = 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]
    return f"{year:04}-{month:02}-{day:02}" if ok else ""


def _month(name: str) -> int:
    return "janfebmaraprmayjunjulaugsepoctnovdec".index(name[:3].lower()) // 3 + 1


def _span(year: int, first: int, last: int) -> str:
    return f"{year:04}-{first:02}-01/{year:04}-{last:02}-{monthrange(year, last)[1]:02}"


def _quarter(year: int, quarter: int) -> str:
    return _span(year, 3 * quarter - 2, 3 * quarter)


def _half(year: int, half: int) -> str:
    return _span(year, 6 * half - 5, 6 * half)


def _number(text: str) -> int:
    """`12`, `二〇二四`, `十二`, `三十一`."""
    if text.isdecimal():
        return int(text)
    digits = {c: str(k) for k, c in enumerate("〇一二三四五六七八九")} | {"零": "0"}
    if "十" in text:
        tens, _, ones = text.partition("十")
        return int(digits.get(tens, "1")) * 10 + int(digits.get(ones, "0"))
    return int("".join(digits[c] for c in text))


def _iso(m: re.Match[str], _today: date | None) -> str:
    return _day(int(m["y"]), int(m["m"]), int(m["d"]))


def _named(m: re.Match[str], today: date | None) -> str | None:
    month, year = _month(m["m"]), m["y"] or (today and str(today.year))
    day = int(m["d"])
    if not year:
        return None if 1 <= day <= 31 else ""
    return _day(int(year), month, day)


def _numeric(m: re.Match[str], _today: date | None) -> str | None:
    """Day and month by which one can be no month; None where both may be."""
    one, other, year = int(m["a"]), int(m["b"]), int(m["y"])
    if one > 12:
        return _day(year, other, one)
    if other > 12 or one == other:
        return _day(year, one, other)
    return None if one and other else ""


def _month_year(m: re.Match[str], _today: date | None) -> str:
    return f"{int(m['y']):04}-{_month(m['m']):02}"


def _chinese_day(m: re.Match[str], today: date | None) -> str | None:
    month, day = _number(m["m"]), _number(m["d"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return ""
    year = _number(m["y"]) if m["y"] else today.year if today else None
    return None if year is None else _day(year, month, day)


def _chinese_month(m: re.Match[str], _today: date | None) -> str:
    month = _number(m["m"])
    return f"{_number(m['y']):04}-{month:02}" if 1 <= month <= 12 else ""


def _relative_day(m: re.Match[str], today: date | None) -> str | None:
    if today is None:
        return None
    try:
        return (today + timedelta(days=_RELATIVE[m[0].lower()])).isoformat()
    except OverflowError:
        return None


def _relative_year(m: re.Match[str], today: date | None) -> str | None:
    return None if today is None else f"{today.year + _YEARS[m[0].lower()]:04}"


def _quarter_of(m: re.Match[str], today: date | None) -> str | None:
    year = m["y"] and _number(m["y"])
    if not year:
        return None if today is None else _quarter(today.year, _ordinal(m["q"]))
    return _quarter(year, _ordinal(m["q"]))


def _half_of(m: re.Match[str], today: date | None) -> str | None:
    year = (m["y"] and _number(m["y"])) or (today and today.year)
    second = m["h"] in ("2", "下") or m["h"].lower() == "second"
    return _half(year, 2 if second else 1) if year else None


def _three_quarters(m: re.Match[str], today: date | None) -> str | None:
    year = (m["y"] and _number(m["y"])) or (today and today.year)
    return _span(year, 1, 9) if year else None


def _ordinal(text: str) -> int:
    return int(text) if text.isdecimal() else _ORDINAL[text.lower()]


def _year(m: re.Match[str], _today: date | None) -> str:
    return f"{_number(m['y']):04}"


def _rule(kind: Literal["date", "period"], pattern: str, read: _Reader) -> _Rule:
    return _Rule(kind, re.compile(pattern, re.IGNORECASE), read)


_OPT_Y = f"(?:{_HAN_Y.format('y')})?"
_RULES: Final = (
    _rule("date", rf"(?<![\d-])(?P<y>{_Y})(?P<s>[-/.])(?P<m>\d{{1,2}})(?P=s)(?P<d>\d{{1,2}})(?![\d-])", _iso),
    _rule(
        "date", rf"(?<![\d/.])(?P<a>\d{{1,2}})(?P<s>[/.])(?P<b>\d{{1,2}})(?P=s)(?P<y>{_Y})(?![\d/])", _numeric
    ),
    _rule(
        "date",
        rf"\b(?<![\d.])(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_MONTH})(?:,? (?P<y>{_Y})\b)?",
        _named,
    ),
    _rule(
        "date",
        rf"\b(?P<m>{_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?![\d.,]\d)(?:,? (?P<y>{_Y})\b)?",
        _named,
    ),
    _rule("date", rf"\b(?P<m>{_MONTH}),? (?P<y>{_Y})\b", _month_year),
    _rule("date", rf"{_OPT_Y}\s?(?P<m>{_HAN_N})\s?月\s?(?:份)?(?P<d>{_HAN_N})\s?[日号]", _chinese_day),
    _rule("date", rf"{_HAN_Y.format('y')}\s?(?P<m>{_HAN_N})\s?月(?:份)?", _chinese_month),
    _rule("date", "|".join(rf"\b{word}\b" if word.isascii() else word for word in _RELATIVE), _relative_day),
    _rule("period", "|".join(rf"\b{word}\b" if word.isascii() else word for word in _YEARS), _relative_year),
    _rule("period", rf"{_OPT_Y}\s?第(?P<q>[一二三四1-4])季度?", _quarter_of),
    _rule("period", rf"{_OPT_Y}\s?前三季度?", _three_quarters),
    _rule("period", rf"{_OPT_Y}\s?(?P<h>[上下])半年", _half_of),
    _rule("period", rf"{_HAN_Y.format('y')}(?:度|全年)?(?!\s?[\d一二三四五六七八九十]+月)", _year),
    _rule("period", rf"(?<!\d)(?P<y>{_Y})\s?财年", _year),
    _rule("period", rf"\bQ(?P<q>[1-4])(?:,? (?:of )?(?:FY ?)?(?P<y>{_Y}))?\b", _quarter_of),
    _rule("period", rf"\b(?P<y>{_Y}) ?Q(?P<q>[1-4])\b", _quarter_of),
    _rule("period", rf"\bH(?P<h>[12])(?:,? (?:of )?(?P<y>{_Y}))?\b", _half_of),
    _rule("period", rf"\b(?:FY|fiscal(?: year)?) ?(?P<y>{_Y})\b", _year),
    _rule(
        "period",
        rf"\b(?P<q>first|second|third|fourth)[ -]quarter(?:(?: of)?(?: fiscal)?(?: year)? (?P<y>{_Y}))?\b",
        _quarter_of,
    ),
    _rule("period", rf"\b(?P<h>first|second)[ -]half(?:(?: of)? (?P<y>{_Y}))\b", _half_of),
    _rule("period", r"(?<=\bin )(?P<y>(?:1[6-9]|20)\d\d)\b(?![-/.,]\d)", _year),
)
