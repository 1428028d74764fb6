"""Vega-Lite specifications (version 5) of bar, line, grouped, stacked and pie charts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from workers.errors import BadInput
from workers.library.finance.chart_data import Data, Language

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
Kind = Literal["bar", "line", "grouped", "stacked", "pie"]
_STEPS = {
    "en": ((1e12, "tn"), (1e9, "bn"), (1e6, "m"), (1e3, "k")),
    "zh": ((1e12, "万亿"), (1e8, "亿"), (1e4, "万")),
}
# As the data has them. A list of values becomes one nested expression, which breaks at a thousand of them,
# and at one with a name of JavaScript's own (`constructor`).
_GIVEN_ORDER = None
_UNITS_ZH = {"CNY": "元", "USD": "美元", "EUR": "欧元", "GBP": "英镑", "HKD": "港元", "JPY": "日元"}


class Look(NamedTuple):
    """Sizes in pixels, of the plot without axes and legend."""

    kind: Kind
    language: Language
    width: int
    height: int
    title: str
    x_title: str = ""
    y_title: str = ""


def kind_of(data: Data, asked: Kind | None) -> Kind:
    """What was asked for, or suits the data; bars of several series stand side by side."""
    if asked not in (None, "bar"):
        return asked
    return "grouped" if len({value.series for value in data.values}) > 1 else "bar"


def spec_of(data: Data, look: Look) -> dict[str, Any]:
    """The specification, its data within.

    Raises:
        BadInput: a pie with negative parts or nothing in it, or with several series.
    """
    made = {
        "$schema": SCHEMA,
        "title": look.title,
        "width": look.width,
        "height": look.height,
        "data": {"values": [_row(data, value._asdict()) for value in data.values]},
        "config": {"font": "sans-serif", "view": {"stroke": None}},
    }
    return made | (_pie(data, look) if look.kind == "pie" else _axes(data, look))


def _row(data: Data, row: dict[str, Any]) -> dict[str, Any]:
    is_money = data.unit is not None and len(data.unit) == 3 and data.unit.isupper()
    return row | {"currency": data.unit} if is_money else row


def _axes(data: Data, look: Look) -> dict[str, Any]:
    categories = {value.category for value in data.values}
    series = {value.series for value in data.values}
    expression, unit = _numbers(data, look)
    x: dict[str, Any] = {
        "field": "category",
        "type": "ordinal" if look.kind == "line" else "nominal",
        "sort": _GIVEN_ORDER,
        "title": look.x_title or None,
        "axis": {"labelAngle": 0 if len(categories) <= 6 else -40, "labelLimit": _limit(categories)},
    }
    y: dict[str, Any] = {
        "field": "value",
        "type": "quantitative",
        "title": look.y_title or unit or None,
        "axis": {"labelExpr": expression},
    }
    encoding: dict[str, Any] = {"x": x, "y": y, "tooltip": _tooltip(data)}
    if len(series) > 1 or look.kind in ("grouped", "stacked"):
        encoding["color"] = _colours("series", series)
    if look.kind == "grouped":
        encoding["xOffset"] = {"field": "series", "sort": _GIVEN_ORDER}
    for axis in (x, y):
        if _limit([axis["title"] or ""]) == 0:
            axis["axis"]["titleLimit"] = 0
    y["stack"] = "zero" if look.kind == "stacked" else None
    mark = {"type": "line", "point": True} if look.kind == "line" else {"type": "bar"}
    return {"mark": mark, "encoding": encoding}


def _pie(data: Data, look: Look) -> dict[str, Any]:
    if len({value.series for value in data.values}) > 1:
        raise BadInput("a pie shows one series; several are shown by grouped or stacked")
    if any(value.value < 0 for value in data.values) or not any(value.value for value in data.values):
        raise BadInput("a pie shows parts of a whole: none is negative, and one is not 0")
    return {
        "mark": {"type": "arc", "innerRadius": min(look.width, look.height) // 6},
        "encoding": {
            "theta": {"field": "value", "type": "quantitative", "stack": True},
            "color": _colours("category", {value.category for value in data.values}),
            "tooltip": _tooltip(data),
        },
    }


def _colours(field: str, names: set[str]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "sort": _GIVEN_ORDER,
        "title": None,
        "legend": {"labelLimit": _limit(names)},
    }


def _limit(names: Iterable[str]) -> int:
    """Pixels of the longest label that is shown in full; 0: all are. Longer ones are cut in UTF-16, and a cut
    through an emoji is an error."""
    return 0 if any(character > "\uffff" for name in names for character in name) else 160


def _tooltip(data: Data) -> list[dict[str, Any]]:
    number = ".1%" if data.unit == "percent" else ",~f"
    return [
        {"field": "category", "type": "nominal"},
        {"field": "series", "type": "nominal"},
        {"field": "value", "type": "quantitative", "format": number},
    ]


def _numbers(data: Data, look: Look) -> tuple[str, str]:
    """How the axis writes its numbers, a Vega expression; and the unit they are in."""
    if data.unit == "percent":
        return "format(datum.value, '.0%')", ""
    largest = max(abs(value.value) for value in data.values)
    step, name = next(((step, name) for step, name in _STEPS[look.language] if largest >= step), (1, ""))
    unit = data.unit or ""
    unit = name + _UNITS_ZH.get(unit, unit) if look.language == "zh" else f"{unit} {name}".strip()
    return f"format(datum.value / {step:.0f}, ',~r')", unit
