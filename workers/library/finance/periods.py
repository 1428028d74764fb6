"""The times that figures are of: years, half-years, quarters, months, and now against before."""

from __future__ import annotations

import re
from typing import Literal

from workers.library.finance.passages import CURRENT, PREVIOUS, QUARTER

Step = Literal["yoy", "qoq"]

_NAMED = {
    CURRENT: ("current", "this year", "本期", "本年", "本报告期", "报告期", "期末", "本期末"),
    PREVIOUS: ("previous", "last year", "prior year", "上年同期", "上期", "上年", "去年同期", "上年末"),
    QUARTER: ("previous quarter", "previous_quarter", "last quarter", "上季度", "上一季度"),
}
_NAMES = {name: period for period, names in _NAMED.items() for name in names}
_CHINESE = {"一": 1, "二": 2, "三": 3, "四": 4}
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_QUARTER = re.compile(
    r"\bq([1-4])\b|(?<=\d)q([1-4])\b|([1-4])q|第([一二三四1-4])季|([一二三四])季度", re.IGNORECASE
)
_HALF = re.compile(r"\bh([12])\b|(?<=\d)h([12])\b|([上下])半年", re.IGNORECASE)
_MONTH = re.compile(r"(?:19|20)\d\d\s?[-/.年]\s?(1[0-2]|0?[1-9])(?!\d)")
_KEY = re.compile(r"(\d{4})(?:(Q|H|-)(\d{1,2}))?")


def period_of(label: str) -> str:
    """`2023`, `2023Q3`, `2023H1`, `2023-09`, `current`, `previous`; or the label itself."""
    plain = " ".join(label.split())[:60]
    if plain.lower() in _NAMES:
        return _NAMES[plain.lower()]
    year = _YEAR.search(plain)
    if year is None:
        return plain
    if quarter := _QUARTER.search(plain):
        said = next(group for group in quarter.groups() if group)
        return f"{year[1]}Q{_CHINESE.get(said, said)}"
    if half := _HALF.search(plain):
        said = next(group for group in half.groups() if group)
        return f"{year[1]}H{ {'上': 1, '下': 2}.get(said, said) }"
    if month := _MONTH.search(plain):
        return f"{year[1]}-{int(month[1]):02d}"
    return year[1]


def before(period: str, step: Step) -> str | None:
    """The period a year (`yoy`) or a quarter (`qoq`) before; None where there is none such."""
    if period == CURRENT:
        return PREVIOUS if step == "yoy" else QUARTER
    match = _KEY.fullmatch(period)
    if match is None:
        return None
    year, kind, part = int(match[1]), match[2], int(match[3] or 0)
    if step == "yoy":
        return f"{year - 1}{period[4:]}"
    if kind == "Q":
        return f"{year}Q{part - 1}" if part > 1 else f"{year - 1}Q4"
    if kind == "-" and part % 3 == 0:
        return f"{year}-{part - 3:02d}" if part > 3 else f"{year - 1}-12"
    return None


def recency(period: str) -> tuple[int, int, int]:
    """Sort key: the latest is the greatest; what names no time is the least."""
    if period in (CURRENT, QUARTER, PREVIOUS):
        return (2, (PREVIOUS, QUARTER, CURRENT).index(period), 0)
    match = _KEY.fullmatch(period)
    if match is None:
        return (0, 0, 0)
    months = {"Q": 3, "H": 6, "-": 1}.get(match[2] or "", 12)
    return (1, int(match[1]), months * int(match[3] or 1))
