"""HTML tags out of a text, in time that grows with its length alone whatever is in it."""

from __future__ import annotations

import re

# The attribute's `=` belongs to it: an apostrophe elsewhere quotes nothing.
_MARK = re.compile(r">|=\s*[\"']")
_BLOCKS = frozenset(
    (
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "dd",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "td",
        "th",
        "tr",
        "ul",
    )
)
_SILENT = frozenset(("script", "style", "template", "noscript"))


def strip_tags(text: str) -> str:
    """`text` without tags and comments, and without what scripts and styles hold; blocks end a line.

    A `<` that begins no tag stays. What is never closed is text.
    """
    lower = text.lower()
    if len(lower) != len(text):
        lower = text  # a few letters grow when lowered, which would shift every place
    found: list[str] = []
    unpaired: set[str] = set()
    at = 0
    while (begin := text.find("<", at)) >= 0:
        found.append(text[at:begin])
        name = _name(lower, begin)
        if name is None:
            found.append("<")
            at = begin + 1
            continue
        if text.startswith("<!--", begin):
            end = text.find("-->", begin + 4)
            after = end + 3
        else:
            end = text.find(">", begin) if name == "!" else _end(text, begin, unpaired)
            after = end + 1
        if end < 0:
            at = begin
            break
        if name in _BLOCKS:
            found.append("\n")
        at = after
        if name in _SILENT:
            closing = lower.find(f"</{name}", at)
            if closing < 0:
                break
            at = closing
    found.append(text[at:])
    return "".join(found)


def _end(text: str, begin: int, unpaired: set[str]) -> int:
    """The place of the tag's `>`, not one within an attribute's quotes; -1: there is none. `unpaired` holds
    the quotes that are known not to come again."""
    at = begin
    while (match := _MARK.search(text, at)) is not None and (quote := match[0][-1]) != ">":
        at = match.end()
        close = -1 if quote in unpaired else text.find(quote, at)
        if close < 0:
            unpaired.add(quote)
        else:
            at = close + 1
    return -1 if match is None else match.start()


def _name(lower: str, begin: int) -> str | None:
    """The tag's name; `!` for a comment or declaration, `/` before a closing one's; None: no tag at all."""
    first = lower[begin + 1 : begin + 2]
    if first in ("!", "?"):
        return "!"
    start = begin + 1
    if first == "/":
        start += 1
    if not lower[start : start + 1].isalpha():
        return None
    stop = start
    while lower[stop : stop + 1].isalnum():
        stop += 1
    name = lower[start:stop]
    return f"/{name}" if first == "/" and name in _SILENT else name
