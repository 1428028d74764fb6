"""The financial example: figures, growth and ratios, chart, and what the text names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgeway.report.blocks import Block, Facts, Section, Table
from edgeway.report.spec import chart_of
from edgeway.report.values import MOST_ROWS, Values
from edgeway.report.words import Language, cut, number, percent, shown, word

_NAMES = ("companies", "people", "places", "periods")
_SHOWN = ("chart", "entities", *_NAMES, "figures", "growth", "growth_qoq", "ratios", "indicators")
_TOKENS = ("tokens", "left_out", "warnings")
_PLAIN = frozenset(("debt_to_equity", "current_ratio", "asset_turnover"))
"""Ratios that nobody writes in percent."""


def is_financial(output: Any) -> bool:
    """Whether `output` is what the task `financial_report` gives, or its indicators alone."""
    if not isinstance(output, dict):
        return False
    return isinstance(output.get("figures"), dict) and any(
        isinstance(output.get(key), dict | list) for key in ("growth", "ratios", "indicators")
    )


def financial(output: dict[str, Any], values: Values, language: Language) -> list[Block]:
    """The blocks of the report, in the order in which one reads it. What is not in the form that the library
    gives is shown as any other value."""
    rest = {key: value for key, value in output.items() if key not in (*_SHOWN, *_TOKENS)}
    found: list[Block] = []
    overview = _overview(output, language)
    if overview:
        found.append(Section(word("summary", language), (Facts(overview),)))
    for key, block in (
        ("figures", _figures(output["figures"], language)),
        ("growth", _shares(output.get("growth"), language)),
        ("ratios", _shares(output.get("ratios"), language)),
        ("indicators", _indicators(output.get("indicators"), language)),
    ):
        if block is not None:
            found.append(Section(word(key, language), (block,)))
        elif output.get(key):
            found.append(Section(word(key, language), tuple(values.blocks(output[key], 1))))
    chart = chart_of(output["chart"]) if isinstance(output.get("chart"), dict) else None
    if chart is not None:
        found.insert(1 if overview else 0, Section(word("chart", language), (chart,)))
    elif output.get("chart"):
        found.append(Section(word("chart", language), tuple(values.blocks(output["chart"], 1))))
    if output.get("entities"):
        found.append(
            Section(word("entities", language), tuple(values.blocks(_entities(output["entities"]), 1)))
        )
    if rest:
        found.append(Section(word("more", language), tuple(values.blocks(rest, 1))))
    return found


def _overview(output: Mapping[str, Any], language: Language) -> tuple[tuple[str, str], ...]:
    rows = []
    for key in _NAMES:
        names = output.get(key)
        if isinstance(names, list | tuple) and names:
            rows.append((word(key, language), cut(", ".join(map(shown, names[:20])), 300)))
    growth = output.get("growth")
    shares = growth if isinstance(growth, dict) else {}
    for item in ("revenue", "net_profit"):
        told = _latest(output["figures"].get(item))
        if told:
            rise = shares.get(item)
            more = f" ({rise * 100:+.1f} %)" if isinstance(rise, int | float) else ""
            rows.append((name_of(item, language), told + more))
    return tuple(rows)


def _latest(periods: Any) -> str:
    return _amount(next(iter(periods.values()))) if isinstance(periods, dict) and periods else ""


def _amount(row: Any) -> str:
    value = row.get("value") if isinstance(row, dict) else row
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    currency = row.get("currency") if isinstance(row, dict) else None
    return number(float(value)) + (f" {currency[:8]}" if isinstance(currency, str) else "")


def _figures(figures: Any, language: Language) -> Table | None:
    if not figures or not all(isinstance(periods, dict) for periods in figures.values()):
        return None
    names = list(dict.fromkeys(str(period) for periods in figures.values() for period in periods))[:8]
    rows = tuple(
        (name_of(item, language), *(_amount(periods.get(name)) for name in names))
        for item, periods in list(figures.items())[:MOST_ROWS]
    )
    head = (word("item", language), *(name_of(name, language) for name in names))
    return Table(head, rows, frozenset(range(1, len(head))))


def _shares(given: Any, language: Language) -> Table | None:
    if not isinstance(given, dict) or not given or not all(map(_is_number, given.values())):
        return None
    rows = tuple(
        (name_of(name, language), _share(name, float(value)))
        for name, value in list(given.items())[:MOST_ROWS]
    )
    return Table((word("indicator", language), word("value", language)), rows, frozenset((1,)))


def _share(name: str, value: float) -> str:
    return f"{value:,.4g}" if name in _PLAIN or abs(value) >= 1000 else percent(value)


def _indicators(given: Any, language: Language) -> Table | None:
    if not isinstance(given, list | tuple) or not given:
        return None
    rows = []
    for row in given[:MOST_ROWS]:
        if not isinstance(row, dict) or not _is_number(row.get("value")):
            return None
        kind, value = row.get("kind"), float(row["value"])
        texts = [shown(row.get(key, "")) for key in ("name", "kind", "period", "formula")]
        plain = kind == "ratio" and texts[0] in _PLAIN
        told = number(value) if kind == "amount" else _share(texts[0] if plain else "", value)
        what = f"{name_of(texts[0], language)}, {word(texts[1], language)}"
        rows.append((what, name_of(texts[2], language), told, texts[3]))
    keys = ("indicator", "period", "value", "formula")
    return Table(tuple(word(key, language) for key in keys), tuple(rows), frozenset((2,)))


def _entities(given: Any) -> Any:
    """Names by kind, each once; anything else as it is."""
    if not isinstance(given, list | tuple) or not all(
        isinstance(row, dict) and isinstance(row.get("text"), str) and isinstance(row.get("kind"), str)
        for row in given
    ):
        return given
    kinds: dict[str, dict[str, None]] = {}
    for row in given:
        kinds.setdefault(row["kind"], {})[row["text"]] = None
    return {kind: ", ".join(texts) for kind, texts in kinds.items()}


def name_of(name: str, language: Language) -> str:
    """The library's name of a figure, period or ratio."""
    from workers.library.finance.chart_data import label

    return label(cut(str(name), 80), language)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
