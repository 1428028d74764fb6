"""Charts: what is taken of a specification, and what is drawn of it."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeway.report import svg
from edgeway.report.blocks import Chart, Point
from edgeway.report.drawing import drawn, only_shapes
from edgeway.report.spec import chart_of
from workers.library.finance.chart import chart

SERIES = {"This": {"a": 3.0, "b": -1.5, "c": 0}, "Before": {"a": 1.0, "b": 2.5}}


@pytest.mark.parametrize("kind", ["bar", "line", "grouped", "stacked", "pie"])
def test_each_kind_of_the_library_is_read_back_and_drawn(kind: Any) -> None:
    series = {"One": {"a": 3.0, "b": 1.5}} if kind in ("bar", "pie") else SERIES
    found = chart_of(chart(series=series, kind=kind, title="T", currency="EUR")["chart"])
    assert found is not None
    assert (found.kind, found.title) == (kind, "T")
    assert [point.value for point in found.points] == [v for one in series.values() for v in one.values()]
    for text in (svg.draw(found), drawn(found)):
        names = {element.text for element in ElementTree.fromstring(text).iter() if element.text}
        assert {"T", "a" if kind != "pie" else "b"} <= names


@pytest.mark.parametrize(
    "change",
    [
        {"$schema": "x"},
        {"data": {"url": "http://evil.example"}},
        {"data": {"values": []}},
        {"data": {"values": [{"category": "a", "value": float("nan")}]}},
        {"data": {"values": [{"category": "a", "value": 1e300}]}},
        {"data": {"values": [{"category": "a", "value": True}]}},
        {"data": {"values": ["a"]}},
        {"data": {"values": [{"category": "a", "value": 1}] * 401}},
        {"data": {"values": [{"category": "a", "series": n, "value": 1} for n in range(13)]}},
    ],
)
def test_what_cannot_be_drawn_is_no_chart(change: dict[str, Any]) -> None:
    spec = chart(series=SERIES)["chart"]
    assert chart_of(spec) is not None
    assert chart_of({**spec, **change}) is None


@given(
    values=st.lists(st.floats(-1e18, 1e18), min_size=1, max_size=30),
    kind=st.sampled_from(["bar", "line", "grouped", "stacked"]),
    name=st.text(max_size=5),
)
def test_our_own_drawing_stays_within_its_frame(values: list[float], kind: Any, name: str) -> None:
    points = tuple(Point(f"{name}{n % 7}", f"s{n // 7}", value) for n, value in enumerate(values))
    root = ElementTree.fromstring(svg.draw(Chart(name, kind, points)))
    for element in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y = float(element.attrib["x"]), float(element.attrib["y"])
        assert 0 <= x <= svg.WIDTH
        assert -1 <= y <= svg.HEIGHT
        assert y + float(element.attrib["height"]) <= svg.HEIGHT + 1


def test_a_pie_of_one_part_is_a_whole_circle() -> None:
    text = svg.draw(Chart("T", "pie", (Point("a", "", 5.0), Point("b", "", 0.0))))
    assert "NaN" not in text
    assert ElementTree.fromstring(text) is not None


@pytest.mark.parametrize(
    "inside",
    [
        "<script>1</script>",
        '<a href="http://evil.example"><text>x</text></a>',
        '<image href="http://evil.example"/>',
        "<foreignObject/>",
        '<rect fill="url(http://evil.example#a)"/>',
        "<style>*{}</style>",
        "<rect",
    ],
)
def test_a_drawing_with_more_than_shapes_is_not_taken(inside: str) -> None:
    with pytest.raises(ValueError, match=r"no SVG|neither|address"):
        only_shapes(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>')


def test_what_acts_is_left_out() -> None:
    text = only_shapes(
        '<svg xmlns="http://www.w3.org/2000/svg"><rect onload="x" style="y" href="z" width="1"/></svg>'
    )
    assert text == '<svg><rect width="1" /></svg>'
