"""Charts as SVG: by vl-convert where it is installed, else our own."""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec
from xml.etree import ElementTree

from edgeway.report import svg
from edgeway.report.blocks import Chart
from edgeway.report.words import clean, language_of

log = logging.getLogger(__name__)
_SVG = "{http://www.w3.org/2000/svg}"
_ELEMENTS = frozenset(
    ("svg", "g", "path", "rect", "line", "text", "tspan", "circle", "clipPath", "defs", "title")
)
_ATTRIBUTES = frozenset(
    (
        *(
            "class",
            "width",
            "height",
            "viewBox",
            "transform",
            "d",
            "x",
            "y",
            "x1",
            "x2",
            "y1",
            "y2",
            "dx",
            "dy",
        ),
        *("cx", "cy", "r", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "opacity"),
        *(
            "stroke-miterlimit",
            "stroke-dasharray",
            "stroke-linecap",
            "stroke-linejoin",
            "text-anchor",
            "version",
        ),
        *("font-family", "font-size", "font-weight", "font-style", "aria-label", "role", "id", "clip-path"),
        *("aria-roledescription", "aria-hidden", "pointer-events", "preserveAspectRatio", "direction"),
    )
)
_LOCAL = re.compile(r"url\((?!#[\w-]+\))", re.IGNORECASE)


def drawn(chart: Chart) -> str:
    """The chart as an `svg` element, without scripts, links or addresses."""
    made = _by_vega(chart) if find_spec("vl_convert") is not None else None
    return svg.draw(chart) if made is None else made


def _by_vega(chart: Chart) -> str | None:
    """None where Vega does not draw it, or draws what we do not put into a page."""
    from workers.errors import BadInput
    from workers.library.finance import chart_render
    from workers.library.finance.chart_data import Data, Value
    from workers.library.finance.chart_spec import Look, spec_of

    values = [Value(clean(point.category), clean(point.series), point.value) for point in chart.points]
    language = language_of(chart.title, *(point.category for point in chart.points))
    look = Look(chart.kind, language, 560, 320, clean(chart.title))
    try:
        return only_shapes(chart_render.svg(spec_of(Data(values, chart.unit), look)))
    except (BadInput, ValueError) as error:
        log.warning("a chart is drawn without Vega: %s", type(error).__name__)
        return None


def only_shapes(drawing: str) -> str:
    """`drawing` written anew from shapes and texts alone.

    Raises:
        ValueError: it is no SVG, or holds something else than shapes and texts.
    """
    try:
        root = ElementTree.fromstring(drawing)  # of vl-convert, which writes no entities
    except ElementTree.ParseError as error:
        raise ValueError(f"no SVG: {error}") from error
    for element in root.iter():
        name = str(element.tag).removeprefix(_SVG)
        if name not in _ELEMENTS:
            raise ValueError("an element that is neither shape nor text")
        element.tag = name
        kept = {key: value for key, value in element.attrib.items() if key in _ATTRIBUTES}
        if any(_LOCAL.search(value) for value in kept.values()):
            raise ValueError("an address in an attribute")
        element.attrib.clear()
        element.attrib.update(kept)
    return ElementTree.tostring(root, encoding="unicode")
