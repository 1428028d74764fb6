"""Documents as one HTML page: no script, no address, nothing to load. Charts stand in it as SVG."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from importlib.resources import files

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
from edgeway.report.drawing import drawn
from edgeway.report.words import clean

_STYLE = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
_HASH = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
"""Of the page; a server that shows it may send the same as a header."""


def write(document: Document) -> str:
    """The page, as text to be encoded in UTF-8."""
    title = _text(document.title)
    lang = "zh" if document.language == "zh" else "en"
    return (
        f'<!doctype html>\n<html lang="{lang}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1 dir="auto">{title}</h1>\n{_blocks(document.blocks, 2)}</main>\n</body>\n</html>\n'
    )


def _text(text: str) -> str:
    return escape(clean(text))


def _blocks(blocks: Iterable[Block], level: int) -> str:
    return "".join(_block(block, level) for block in blocks)


def _block(block: Block, level: int) -> str:
    if isinstance(block, Section):
        rank = min(level, 6)
        heading = f'<h{rank} dir="auto">{_text(block.title)}</h{rank}>\n'
        return f"<section>\n{heading}{_blocks(block.blocks, level + 1)}</section>\n"
    if isinstance(block, Text):
        paragraphs = [part for part in clean(block.text).split("\n\n") if part.strip()]
        return "".join(f'<p dir="auto">{escape(part.strip())}</p>\n' for part in paragraphs)
    if isinstance(block, Note):
        return f'<div class="note {block.tone}" role="note" dir="auto">{_text(block.text)}</div>\n'
    if isinstance(block, Items):
        items = "".join(f'<li dir="auto">{_text(text)}</li>\n' for text in block.texts)
        return f"<ul>\n{items}</ul>\n"
    if isinstance(block, Link):
        return f'<p><a href="{escape(block.path)}" rel="noreferrer">{_text(block.text)}</a></p>\n'
    if isinstance(block, Picture):
        data = base64.b64encode(block.data).decode()
        return f'<figure><img alt="" src="data:{block.mime};base64,{data}"></figure>\n'
    if isinstance(block, Chart):
        return f"<figure>{drawn(block)}</figure>\n"
    return _tabular(block)


def _tabular(block: Facts | Table | Bars) -> str:
    if isinstance(block, Facts):
        rows = (f"{_cell(name, tag='th', more=' scope=row')}{_cell(value)}" for name, value in block.rows)
        return _table("", rows)
    if isinstance(block, Bars):
        return _table("", (_bar(*row) for row in block.rows))
    head = "".join(_cell(name, at in block.right, "th", " scope=col") for at, name in enumerate(block.head))
    rows = ("".join(_cell(cell, at in block.right) for at, cell in enumerate(row)) for row in block.rows)
    return _table(f"<thead><tr>{head}</tr></thead>\n", rows)


def _table(head: str, rows: Iterable[str]) -> str:
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return f'<div class="wide"><table>\n{head}<tbody>\n{body}</tbody></table></div>\n'


def _cell(text: str, right: bool = False, tag: str = "td", more: str = "") -> str:
    kind = ' class="n"' if right else ' dir="auto"'
    return f"<{tag}{more}{kind}>{_text(text)}</{tag}>"


def _bar(name: str, share: float, told: str) -> str:
    bar = (
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="back" width="100" height="6"/><rect width="{100 * share:.1f}" height="6"/></svg>'
    )
    return f"{_cell(name, tag='th', more=' scope=row')}<td>{bar}</td>{_cell(told, True)}"
