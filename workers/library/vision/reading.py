"""Lines of text that were found in an image, in the order in which one reads them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

GUTTER = 1.0
"""How many lines' heights of empty space part two columns, at least."""
COLUMN_LINES = 3
LONG = 6.0
"""Width by height of a line of running text; a table's cells are shorter, and are read across."""


class Line(NamedTuple):
    """A line: its corners (left, top, right, bottom in pixels), its text, and how sure that text is."""

    left: float
    top: float
    right: float
    bottom: float
    text: str
    score: float

    @property
    def height(self) -> float:
        return self.bottom - self.top


def in_order(lines: Sequence[Line]) -> list[list[Line]]:
    """Rows of lines: columns of running text one after the other, within them from top to bottom, lines
    beside one another from left to right.
    """
    if not lines:
        return []
    split = _gutter(lines)
    if split is not None:
        left = [line for line in lines if line.right <= split]
        right = [line for line in lines if line.right > split]
        return in_order(left) + in_order(right)
    return _rows(lines)


def text_of(rows: Sequence[Sequence[Line]]) -> str:
    """A row a line, lines of one row with a blank between."""
    return "\n".join(" ".join(line.text for line in row) for row in rows)


def sureness(lines: Sequence[Line]) -> float | None:
    """The mean score a character; None of no text. A measure of how clear the text is, not a probability
    that all of it is right."""
    whole = sum(len(line.text) for line in lines)
    if not whole:
        return None
    return min(1.0, sum(line.score * len(line.text) for line in lines) / whole)


def _gutter(lines: Sequence[Line]) -> float | None:
    """Where an empty strip parts two columns of running text."""
    space = GUTTER * median(line.height for line in lines)
    edge = None
    for line in sorted(lines, key=lambda line: line.left):
        if edge is not None and line.left - edge >= space:
            sides = (
                [one for one in lines if one.right <= edge],
                [one for one in lines if one.left >= line.left],
            )
            if all(_is_column(side) for side in sides):
                return edge
        edge = line.right if edge is None else max(edge, line.right)
    return None


def _is_column(lines: Sequence[Line]) -> bool:
    shapes = [(line.right - line.left) / max(line.height, 1.0) for line in lines]
    return len(lines) >= COLUMN_LINES and median(shapes) >= LONG


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.top + line.bottom, line.left)):
        middle = (line.top + line.bottom) / 2
        if rows and rows[-1][0].top <= middle <= rows[-1][0].bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: (line.left, line.top)) for row in rows]
