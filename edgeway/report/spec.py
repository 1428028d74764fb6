"""Charts out of what steps give as Vega-Lite. A specification may hold expressions, links and addresses to
load from: only its values, kind and titles are taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from edgeway.report.blocks import Chart, ChartKind, Point

MOST_POINTS, MOST_SERIES = 400, 12
_NAME = 100
_LARGEST = 1e18


def chart_of(value: Mapping[str, Any]) -> Chart | None:
    """The chart in a Vega-Lite specification with its values inside, as `finance/chart` gives it; None where
    it is none that can be drawn: other fields, no values, too many, or one that is no finite number."""
    if "vega-lite" not in str(value.get("$schema", "")) or not isinstance(value.get("data"), dict):
        return None
    rows = value["data"].get("values")
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_POINTS:
        return None
    points = [_point(row) for row in rows]
    kept = tuple(point for point in points if point is not None)
    if len(kept) != len(rows) or len({point.series for point in kept}) > MOST_SERIES:
        return None
    encoding = value.get("encoding")
    axes = encoding if isinstance(encoding, dict) else {}
    return Chart(_text(value.get("title")), _kind(value, axes, kept), kept, _unit(rows, axes), _y_title(axes))


def _point(row: Any) -> Point | None:
    if not isinstance(row, dict):
        return None
    number = row.get("value")
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    if not abs(number) <= _LARGEST or not math.isfinite(number):
        return None
    return Point(str(row.get("category", ""))[:_NAME], str(row.get("series", ""))[:_NAME], float(number))


def _kind(value: Mapping[str, Any], axes: Mapping[str, Any], points: tuple[Point, ...]) -> ChartKind:
    mark = value.get("mark")
    name = mark.get("type") if isinstance(mark, dict) else mark
    several = len({point.series for point in points}) > 1
    if name == "line":
        return "line"
    total = math.fsum(point.value for point in points)
    if name == "arc" and not several and total > 0 and all(point.value >= 0 for point in points):
        return "pie"
    y = axes.get("y")
    if several and isinstance(y, dict) and y.get("stack") == "zero":
        return "stacked"
    return "grouped" if several else "bar"


def _unit(rows: list[dict[str, Any]], axes: Mapping[str, Any]) -> str | None:
    currencies = {str(row.get("currency", "")) for row in rows}
    if len(currencies) == 1 and (name := currencies.pop()):
        return name[:3] if name.isascii() and name.isalpha() else None
    tips = axes.get("tooltip")
    formats = [tip.get("format") for tip in tips if isinstance(tip, dict)] if isinstance(tips, list) else []
    return "percent" if ".1%" in formats else None


def _y_title(axes: Mapping[str, Any]) -> str:
    y = axes.get("y")
    return _text(y.get("title")) if isinstance(y, dict) else ""


def _text(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""
