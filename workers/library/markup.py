"""HTML tags out of a text, in time that grows with its length alone whatever is in it."""

from __future__ import annotations

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
    at, bracket = 0, text.find(">")
    while (begin := text.find("<", at)) >= 0:
        found.append(text[at:begin])
        if text.startswith("<!--", begin):
            end = text.find("-->", begin + 4)
            after = end + 3
        else:
            if 0 <= bracket < begin:
                bracket = text.find(">", begin)
            end = bracket
            after = end + 1
        if end < 0:
            at = begin
            break
        name = _name(lower, begin, end)
        if name is None:
            found.append("<")
            at = begin + 1
            continue
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


def _name(lower: str, begin: int, end: int) -> str | None:
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
    while stop < end and lower[stop].isalnum():
        stop += 1
    name = lower[start:stop]
    return f"/{name}" if first == "/" and name in _SILENT else name
