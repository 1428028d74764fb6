"""`finance/chart`: a Vega-Lite chart of figures or series, drawn where a picture is asked for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from workers.backends.function import capability
from workers.errors import BadInput
from workers.library.finance import chart_render
from workers.library.finance.chart_data import (
    Data,
    Language,
    is_chinese,
    of_indicators,
    of_reading,
    of_series,
)
from workers.library.finance.chart_spec import Kind, Look, kind_of, spec_of
from workers.library.finance.indicators import read_inputs

Pixels = Annotated[int, Meta(ge=50, le=1600)]
Title = Annotated[str, Meta(max_length=200)]
_OFFER: dict[str, Any] = {
    "model": "template",
    "cacheable": True,
    "licence": "Apache-2.0; pictures by vl-convert (BSD-3-Clause)",
    "source": "templates of this project for Vega-Lite 5",
    "quality": "every kind of chart is valid by Vega-Lite's schema and drawn in tests",
    "load": chart_render.warm_up,
}


@capability("local/finance/chart", **_OFFER)
@capability("cloud/finance/chart", **_OFFER)
def chart(
    series: Any = None,
    indicators: dict[str, Any] | None = None,
    what: Literal["figures", "growth", "ratios"] = "figures",
    text: str = "",
    query: str = "",
    figures: dict[str, Any] | None = None,
    table: Any = None,
    unit: str = "",
    currency: str = "",
    kind: Kind | None = None,
    language: Language | None = None,
    title: Title = "",
    x_title: Title = "",
    y_title: Title = "",
    width: Pixels = 480,
    height: Pixels = 300,
    format: Literal["spec", "svg", "png"] = "spec",  # noqa: A002  # the name of the parameter
) -> dict[str, Any]:
    """A bar, line, grouped, stacked or pie chart of a report's figures or of series: Vega-Lite, SVG, PNG."""
    said = text or query
    spoken: Language = language or (
        "zh" if is_chinese([said, title, *_names(series), *_names(table)]) else "en"
    )
    drawn = format == "png" and chart_render.can_render()
    warnings = []
    if drawn and spoken == "zh" and not chart_render.has_chinese_font():
        warnings.append(
            "no font here has Chinese letters: what is ours is in English; install fonts-noto-cjk"
        )
        spoken = "en"

    def data() -> Data:
        if series is not None:
            return of_series(series)._replace(unit=unit or None)
        if indicators is not None:
            return of_indicators(indicators, what, spoken)
        return of_reading(read_inputs(said, figures, table, unit, currency), spoken)

    shown = data()
    look = Look(kind_of(shown, kind), spoken, width, height, title or shown.title, x_title, y_title)
    spec = spec_of(shown, look)
    answer: dict[str, Any] = {"chart": spec, "left_out": list(shown.left_out), "warnings": warnings}
    size = chart_render.bounded(len(msgspec.json.encode(spec)))
    if format == "spec":
        return answer
    if not chart_render.can_render():
        # No failure of the backend: who asks for a picture must not close the specifications for others.
        raise BadInput("no pictures are drawn here: install edgeway[charts] for the worker, or ask for spec")
    made = chart_render.svg(spec) if format == "svg" else chart_render.png(spec)
    chart_render.bounded(size + len(made.encode() if isinstance(made, str) else made))
    return answer | {format: made}


def _names(given: Any) -> list[str]:
    """Names in the first two levels of a table or of series."""
    if isinstance(given, str):
        return [given[:1000]]
    if isinstance(given, dict):
        return [str(key) for key in given][:100]
    if isinstance(given, list | tuple):
        return [str(each)[:200] for each in given[:100]]
    return []
