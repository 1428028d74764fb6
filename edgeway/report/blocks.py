"""What a report is made of, whatever it is written in. All texts are as they came: writers escape them."""

from __future__ import annotations

from typing import Literal, NamedTuple

Tone = Literal["good", "warning", "bad"]
ChartKind = Literal["bar", "line", "grouped", "stacked", "pie"]


class Text(NamedTuple):
    """Paragraphs; its line ends are kept."""

    text: str


class Note(NamedTuple):
    """A line that must not be overlooked."""

    tone: Tone
    text: str


class Facts(NamedTuple):
    """Names and what they stand for."""

    rows: tuple[tuple[str, str], ...]


class Items(NamedTuple):
    """A list of short texts."""

    texts: tuple[str, ...]


class Table(NamedTuple):
    """Rows of as many cells as the head; the columns in `right` hold numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()


class Bars(NamedTuple):
    """Labels, each with a share in [0, 1] and what is written beside it."""

    rows: tuple[tuple[str, float, str], ...]


class Point(NamedTuple):
    """One value of a chart."""

    category: str
    series: str
    value: float


class Chart(NamedTuple):
    """Values by category and series, in the order given. `unit`: `percent`, a currency, or None."""

    title: str
    kind: ChartKind
    points: tuple[Point, ...]
    unit: str | None = None
    y_title: str = ""


class Picture(NamedTuple):
    """An image as bytes; `mime` is what its first bytes say."""

    mime: str
    data: bytes


class Link(NamedTuple):
    """A text that leads to a path on the server that shows the report."""

    text: str
    path: str


class Section(NamedTuple):
    """A part of a report under a title of its own."""

    title: str
    blocks: tuple[Block, ...]


Block = Text | Note | Facts | Items | Table | Bars | Chart | Picture | Link | Section


class Document(NamedTuple):
    """`language` is that of our own words in it."""

    title: str
    blocks: tuple[Block, ...]
    language: Literal["en", "zh"] = "en"
