"""Documents as Markdown: CommonMark with the tables of GitHub's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from edgeway.report.blocks import (
    Bars,
    Block,
    Chart,
    Document,
    Facts,
    Items,
    Link,
    Note,
    Picture,
    Section,
    Table,
    Text,
)
from edgeway.report.words import clean, number, percent, size

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~$&!#^]")
_AT_START = re.compile(r"^(?:[-+=:]|(\d{1,9})(?=[.)](?: |$)))")
# GitHub and others make links of these by themselves; in code they stay text.
_LINKED = re.compile(r"://|www\.|@|^(?:mailto|xmpp|javascript|data):|^\w+:/", re.IGNORECASE)
_MARK = {"good": "✔", "warning": "⚠", "bad": "✖"}
_BAR = 20


def write(document: Document) -> str:
    """The Markdown of `document`, ending in a line end."""
    parts = [f"# {escaped(document.title)}", *_blocks(document.blocks, 2)]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """One line that shows `text` as it is, wherever it stands: no markup, no link, no end of a cell."""
    words = clean(text).split()
    line = " ".join(_code(each) if _LINKED.search(each) else _SPECIAL.sub(r"\\\g<0>", each) for each in words)
    return _AT_START.sub(_held, line)


def _held(match: re.Match[str]) -> str:
    # `1\.` starts no list, `\-` neither.
    return f"{match[0]}\\" if match[1] else f"\\{match[0]}"


def _code(word: str) -> str:
    # A cell ends at a bar even in code, unless it is escaped, and outside of tables the escape would show.
    inner = word.replace("|", "¦").replace("`", "'")
    return f"`{inner}`"


def _blocks(blocks: tuple[Block, ...], level: int) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, level)


def _block(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, Section):
        yield f"{'#' * min(level, 6)} {escaped(block.title) or '–'}"
        yield from _blocks(block.blocks, level + 1)
    elif isinstance(block, Text):
        yield from _paragraphs(block.text)
    elif isinstance(block, Note):
        yield f"> {_MARK[block.tone]} **{escaped(block.text) or '–'}**"
    elif isinstance(block, Items):
        yield "\n".join(f"- {escaped(text) or '–'}" for text in block.texts)
    elif isinstance(block, Link):
        yield f"[{escaped(block.text)}](<{block.path}>)"
    elif isinstance(block, Picture):
        yield escaped(f"{block.mime}, {size(len(block.data))}")
    else:
        yield _table(_rows(block))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", clean(text)):
        lines = [line for line in map(escaped, paragraph.split("\n")) if line]
        if lines:
            yield "\\\n".join(lines)


def _rows(block: Facts | Table | Bars | Chart) -> Table:
    if isinstance(block, Facts):
        return Table(("", ""), block.rows)
    if isinstance(block, Bars):
        rows = tuple((name, "█" * round(share * _BAR), told) for name, share, told in block.rows)
        return Table(("", "", ""), rows, frozenset((2,)))
    return _of_chart(block) if isinstance(block, Chart) else block


def _of_chart(chart: Chart) -> Table:
    """A chart as its numbers."""
    series = list(dict.fromkeys(point.series for point in chart.points))
    categories = list(dict.fromkeys(point.category for point in chart.points))
    known = {(point.category, point.series): point.value for point in chart.points}
    unit = "" if chart.unit in (None, "percent") else f" {chart.unit}"
    rows = tuple(
        (
            category,
            *(
                _value(known[category, one], chart.unit) + unit if (category, one) in known else ""
                for one in series
            ),
        )
        for category in categories
    )
    return Table((chart.title, *series), rows, frozenset(range(1, len(series) + 1)))


def _value(value: float, unit: str | None) -> str:
    return percent(value) if unit == "percent" else number(value)


def _table(table: Table) -> str:
    marks = ("---:" if at in table.right else "---" for at in range(len(table.head)))
    lines = [_line(table.head), "| " + " | ".join(marks) + " |", *(_line(row) for row in table.rows)]
    return "\n".join(lines)


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(escaped(cell) for cell in cells) + " |"
