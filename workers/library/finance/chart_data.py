"""What a chart shows: named series over categories, from the forms in which they come."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from workers.errors import BadInput
from workers.library.finance.items import TERMS
from workers.library.finance.passages import CURRENT, PREVIOUS, QUARTER, Figure, Reading
from workers.library.finance.periods import recency

MOST_VALUES, MOST_SERIES = 2000, 30
_LARGEST = 1e18
Language = Literal["en", "zh"]

LABELS: dict[str, tuple[str, str]] = {
    "revenue": ("Revenue", "营业收入"),
    "cost": ("Cost of sales", "营业成本"),
    "gross_profit": ("Gross profit", "毛利"),
    "operating_profit": ("Operating profit", "营业利润"),
    "net_profit": ("Net profit", "净利润"),
    "assets": ("Total assets", "总资产"),
    "liabilities": ("Total liabilities", "总负债"),
    "equity": ("Equity", "股东权益"),
    "current_assets": ("Current assets", "流动资产"),
    "current_liabilities": ("Current liabilities", "流动负债"),
    "eps": ("Earnings per share", "每股收益"),
    "shares": ("Shares", "总股本"),
    "gross_margin": ("Gross margin", "毛利率"),
    "operating_margin": ("Operating margin", "营业利润率"),
    "net_margin": ("Net margin", "净利率"),
    "debt_ratio": ("Debt ratio", "资产负债率"),
    "debt_to_equity": ("Debt to equity", "产权比率"),
    "current_ratio": ("Current ratio", "流动比率"),
    "asset_turnover": ("Asset turnover", "总资产周转率"),
    "roa": ("Return on assets", "总资产收益率"),
    "roe": ("Return on equity", "净资产收益率"),
    CURRENT: ("This period", "本期"),
    PREVIOUS: ("A year before", "上年同期"),
    QUARTER: ("A quarter before", "上季度"),
    "growth": ("Growth on the year before", "同比增长"),
    "ratios": ("Ratios", "财务比率"),
    "figures": ("Figures of the report", "财报数据"),
}
"""English, Chinese."""


class Value(NamedTuple):
    category: str
    series: str
    value: float


class Data(NamedTuple):
    """`unit` is `percent`, an ISO 4217 code, what the caller named, or None."""

    values: list[Value]
    unit: str | None = None
    title: str = ""
    left_out: tuple[str, ...] = ()


def label(name: str, language: Language) -> str:
    found = LABELS.get(name)
    return name if found is None else found[language == "zh"]


def of_series(given: Any) -> Data:
    """`{name: {category: number}}`, or `[{"name", "values": {category: number}}]`.

    Raises:
        BadInput: another form, no value, too many, or one that is no finite number.
    """
    if isinstance(given, list | tuple):
        if not all(isinstance(each, Mapping) and isinstance(each.get("values"), Mapping) for each in given):
            raise BadInput('inputs.series is a list of {"name", "values": {category: number}}')
        given = {str(each.get("name", f"series {n}")): each["values"] for n, each in enumerate(given, 1)}
    if not isinstance(given, Mapping) or not all(isinstance(each, Mapping) for each in given.values()):
        raise BadInput("inputs.series is {name: {category: number}}, or a list of {name, values}")
    if len(given) > MOST_SERIES or sum(map(len, given.values())) > MOST_VALUES:
        raise BadInput(f"a chart shows at most {MOST_SERIES} series and {MOST_VALUES} values")
    values = [
        Value(str(category)[:100], str(name)[:100], _number(value))
        for name, its in given.items()
        for category, value in its.items()
        if value is not None
    ]
    return _some(Data(values))


def of_reading(reading: Reading, language: Language) -> Data:
    """The amounts of money read, by item and period; those in a second currency are left out."""
    figures = [figure for figure in reading.figures.values() if figure.item not in ("eps", "shares")]
    currencies = Counter(figure.currency for figure in figures)
    currency = max(currencies, key=lambda each: currencies[each], default=None)
    shown = [figure for figure in figures if figure.currency == currency]
    left = {figure.item for figure in reading.figures.values() if figure not in shown}
    periods = sorted({figure.period for figure in shown}, key=recency)
    order = {item: place for place, item in enumerate(TERMS)}
    values = [
        Value(label(figure.item, language), label(figure.period, language), float(figure.value))
        for figure in sorted(shown, key=lambda each: (order[each.item], periods.index(each.period)))
    ]
    return _some(Data(values, currency, label("figures", language), tuple(sorted(left))))


def of_indicators(found: Mapping[str, Any], what: str, language: Language) -> Data:
    """What `finance/indicators` answered: its `figures`, or its `growth` or `ratios` of the latest period."""
    given = found.get(what)
    if not isinstance(given, Mapping):
        raise BadInput(f"inputs.indicators has no {what}; give the output of finance/indicators")
    if what != "figures":
        series = label(what, language)
        values = [Value(label(str(name)[:100], language), series, _number(v)) for name, v in given.items()]
        return _some(Data(values, "percent" if what == "growth" else None, series))
    return of_reading(_reading(given), language)


def _reading(given: Mapping[str, Any]) -> Reading:
    from decimal import Decimal

    reading = Reading()
    for item, periods in given.items():
        if item not in TERMS or not isinstance(periods, Mapping):
            raise BadInput("inputs.indicators.figures is {item: {period: {value}}}")
        for period, row in periods.items():
            value = _number(row.get("value") if isinstance(row, Mapping) else row)
            currency = row.get("currency") if isinstance(row, Mapping) else None
            named = currency if isinstance(currency, str) else None
            reading.take(Figure(item, str(period)[:60], Decimal(str(value)), named, {}))
    return reading


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise BadInput("a value of the series is no number within 1e18")
    return float(value) if math.isfinite(value) else 0.0


def _some(data: Data) -> Data:
    if not data.values:
        raise BadInput("there is nothing to show: no figure was found in the inputs")
    if len(data.values) > MOST_VALUES:
        raise BadInput(f"a chart shows at most {MOST_VALUES} values")
    return data


def is_chinese(texts: Iterable[str]) -> bool:
    """Whether a character of the CJK blocks is among them."""
    return any("\u3000" <= character <= "\u9fff" for text in texts for character in text)
