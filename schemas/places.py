"""Places in a JSON text: paths, and where in the text they lead."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

Path = tuple[str | int, ...]
"""Keys and indexes from the outermost value inwards."""

_SPACE = re.compile(r"\s*")


def show(path: Path) -> str:
    """`path` as JSON path: `$.tasks.intent.steps[1]`."""
    shown = "$"
    for segment in path:
        if isinstance(segment, int):
            shown += f"[{segment}]"
        else:
            shown += (
                f".{segment}"
                if re.fullmatch(r"\w+", segment)
                else f"[{json.dumps(segment, ensure_ascii=False)}]"
            )
    return shown


def offset(text: str, path: Path) -> int:
    """Where the last part of `path` that the text has begins; `text` is valid JSON."""
    at = _skip(text, 0)
    for segment in path:
        found = _child(text, at, segment)
        if found is None:
            return at
        at = found
    return at


def _child(text: str, at: int, segment: str | int) -> int | None:
    """Where the value of a key or index begins in the container at `at`."""
    if text[at] not in "{[":
        return None
    is_map = text[at] == "{"
    at = _skip(text, at + 1)
    index = 0
    while text[at] not in "}]":
        key: str | int = index
        if is_map:
            key, at = scanstring(text, at + 1, True)
            at = _skip(text, _skip(text, at) + 1)
        if key == segment:
            return at
        _, at = json.JSONDecoder().raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        index += 1
    return None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
