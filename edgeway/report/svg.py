"""Charts drawn by ourselves: bars, grouped or stacked, lines and pies, as plain SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from edgeway.report.blocks import Chart, Point
from edgeway.report.words import clean, language_of, number, percent

WIDTH, HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 12, 82, 56
_COLOURS = (
    "#2f6db5",
    "#e0803a",
    "#3f9a5f",
    "#b04a5a",
    "#7a62b3",
    "#8a6d4b",
    "#c76fa8",
    "#6b7580",
    "#a8a13a",
    "#38a3ac",
)
_LABEL = 16
_STEPS = {
    "en": ((1e12, "tn"), (1e9, "bn"), (1e6, "m"), (1e3, "k")),
    "zh": ((1e12, "万亿"), (1e8, "亿"), (1e4, "万")),
}


class _Scale(NamedTuple):
    """From values to pixels, over ticks that are round numbers."""

    ticks: tuple[float, ...]

    def y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - (value - low) / (high - low))


def draw(chart: Chart) -> str:
    """An `svg` element; its size is fixed and its texts are escaped."""
    series = list(dict.fromkeys(point.series for point in chart.points))
    names = list(dict.fromkeys(point.category for point in chart.points)) if chart.kind == "pie" else series
    shapes = _pie(chart) if chart.kind == "pie" else _axes(chart, series)
    legend = _legend(names) if len(names) > 1 else ()
    title = _words(WIDTH / 2, 20, chart.title, "middle", 15, weight=600, most=70)
    inside = "".join((title, *legend, *shapes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(clean(chart.title))}" '
        f'font-family="sans-serif" fill="#1d2733">{inside}</svg>'
    )


def _axes(chart: Chart, series: Sequence[str]) -> Iterator[str]:
    categories = list(dict.fromkeys(point.category for point in chart.points))
    scale = _scale(_extent(chart))
    step, unit = _unit(scale, chart)
    for tick in scale.ticks:
        y = scale.y(tick)
        strong = "#5b6876" if tick == 0 else "#d9dfe6"
        yield f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{strong}"/>'
        told = percent(tick) if chart.unit == "percent" else number(round(tick / step, 6))
        yield _words(_LEFT - 6, y + 4, told, "end", 11)
    if unit:
        yield _words(_LEFT - 6, _TOP - 10, unit, "end", 11)
    width = (WIDTH - _LEFT - _RIGHT) / len(categories)
    for at, category in enumerate(categories):
        x = _LEFT + width * (at + 0.5)
        if len(categories) <= 24 or at % math.ceil(len(categories) / 24) == 0:
            yield _category(x, category, width)
    places = {category: at for at, category in enumerate(categories)}
    if chart.kind == "line":
        yield from _lines(chart, series, scale, _middles(places, width))
    else:
        yield from _bars(chart, series, scale, places, width)


def _middles(places: dict[str, int], width: float) -> dict[str, float]:
    """The middle of each category."""
    return {name: _LEFT + width * (at + 0.5) for name, at in places.items()}


def _bars(
    chart: Chart, series: Sequence[str], scale: _Scale, places: dict[str, int], width: float
) -> Iterator[str]:
    stacked = chart.kind == "stacked"
    thick = width * 0.7 / (1 if stacked else len(series))
    tops: dict[tuple[str, bool], float] = {}
    for point in chart.points:
        number_of = series.index(point.series)
        base = tops.get((point.category, point.value < 0), 0.0) if stacked else 0.0
        tops[point.category, point.value < 0] = base + point.value
        y0, y1 = scale.y(base), scale.y(base + point.value)
        x = _LEFT + width * (places[point.category] + 0.15) + (0 if stacked else thick * number_of)
        yield (
            f'<rect x="{x:.1f}" y="{min(y0, y1):.1f}" width="{max(1.0, thick - 1):.1f}" '
            f'height="{max(0.5, abs(y0 - y1)):.1f}" fill="{_colour(number_of)}">{_tip(point, chart)}</rect>'
        )


def _lines(chart: Chart, series: Sequence[str], scale: _Scale, at: dict[str, float]) -> Iterator[str]:
    for number_of, name in enumerate(series):
        points = [point for point in chart.points if point.series == name]
        places = [(at[point.category], scale.y(point.value)) for point in points]
        path = " ".join(f"{'L' if n else 'M'}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(places))
        yield f'<path d="{path}" fill="none" stroke="{_colour(number_of)}" stroke-width="2"/>'
        for point, (x, y) in zip(points, places, strict=True):
            tip = _tip(point, chart)
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_colour(number_of)}">{tip}</circle>'


def _pie(chart: Chart) -> Iterator[str]:
    total = math.fsum(point.value for point in chart.points)
    x, y, radius, hole = WIDTH / 2, (HEIGHT + 40) / 2, 150.0, 60.0
    at = 0.0
    for index, point in enumerate(chart.points):
        # An arc of a whole circle has no direction: it is drawn as nothing.
        turn = min(point.value / total, 0.99999)
        (a, b), (c, d) = _on_circle(at), _on_circle(at + turn)
        large = int(turn > 0.5)
        path = (
            f"M{x + radius * a:.2f} {y + radius * b:.2f}A{radius} {radius} 0 {large} 1 "
            f"{x + radius * c:.2f} {y + radius * d:.2f}L{x + hole * c:.2f} {y + hole * d:.2f}"
            f"A{hole} {hole} 0 {large} 0 {x + hole * a:.2f} {y + hole * b:.2f}Z"
        )
        yield f'<path d="{path}" fill="{_colour(index)}" stroke="#fff">{_tip(point, chart)}</path>'
        at += point.value / total


def _on_circle(turn: float) -> tuple[float, float]:
    angle = 2 * math.pi * turn
    return math.sin(angle), -math.cos(angle)


def _extent(chart: Chart) -> tuple[float, float]:
    values = [point.value for point in chart.points]
    if chart.kind == "stacked":
        sums: dict[tuple[str, bool], float] = {}
        for point in chart.points:
            key = (point.category, point.value < 0)
            sums[key] = sums.get(key, 0.0) + point.value
        values = list(sums.values())
    if chart.kind == "line":
        return min(values), max(values)
    return min(0.0, *values), max(0.0, *values)


def _scale(extent: tuple[float, float]) -> _Scale:
    low, high = extent
    if high - low < 1e-12 * max(1.0, abs(high), abs(low)):
        low, high = min(low, 0.0), max(high, 0.0) if high else 1.0
    if high == low:
        high = low + 1.0
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return _Scale(tuple(step * at for at in range(first, max(last, first + 1) + 1)))


def _unit(scale: _Scale, chart: Chart) -> tuple[float, str]:
    if chart.unit == "percent":
        return 1.0, ""
    largest = max(abs(tick) for tick in scale.ticks)
    steps = _STEPS[language_of(chart.title, *(point.category for point in chart.points))]
    step, name = next(((step, name) for step, name in steps if largest >= step), (1.0, ""))
    return step, f"{chart.unit or ''} {name}".strip()


def _category(x: float, name: str, width: float) -> str:
    y = HEIGHT - _BOTTOM + 18
    if width >= 78:
        return _words(x, y, name, "middle", 11, most=int(width / 6))
    return _words(x, y, name, "end", 11, turn=-35)


def _legend(names: Sequence[str]) -> Iterator[str]:
    room = (WIDTH - 40) / min(len(names), 5)
    for at, name in enumerate(names[:10]):
        x, y = 30 + room * (at % 5), 40 + 14 * (at // 5)
        yield f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" fill="{_colour(at)}"/>'
        yield _words(x + 15, y, name, "start", 11)


def _tip(point: Point, chart: Chart) -> str:
    unit = "" if chart.unit in (None, "percent") else f" {chart.unit}"
    told = percent(point.value) if chart.unit == "percent" else number(point.value) + unit
    text = " · ".join(part for part in (point.category, point.series, told) if part)
    return f"<title>{escape(clean(text))}</title>"


def _words(
    x: float,
    y: float,
    text: str,
    anchor: str,
    size: int,
    *,
    weight: int = 400,
    turn: int | None = None,
    most: int = _LABEL,
) -> str:
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn is not None else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"'
        f"{turned}>{escape(clean(short))}</text>"
    )


def _colour(at: int) -> str:
    return _COLOURS[at % len(_COLOURS)]
