"""Placeholders instead of personal data, and back.

A placeholder is `[KIND_N]`: ASCII, short, and kept as it stands by text cleaners and language models.
`conceal` marks what already looks like one with a `~`, so that `restore` undoes it for any value and any
mask. A whole number that is concealed becomes the text `[KIND_N#]`, so that it comes back as a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from schemas.claims import claim_of
from streams.privacy.finding import KINDS

Mask = Mapping[str, str]

_LABELS = sorted({kind.upper() for kind in KINDS} | {"HIDDEN"}, key=len, reverse=True)
PLACEHOLDER = re.compile(rf"\[(?:{'|'.join(_LABELS)})_[0-9]{{1,4}}#?~*\]")
"""What any mask's placeholders look like. Such a text says a kind and a number, and nothing of a person: only
the kinds that are built in are named, so that nobody's name can be written as one.
"""

_NAME = re.compile(r"[A-Z][A-Z_]{1,30}_[0-9]{1,4}")


class BadMask(ValueError):
    """A mask whose placeholders do not look like placeholders, or one that stands for nothing."""


def mask_for(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Placeholders for `found`, pairs of a kind and a text: numbered by kind in the order given, the same
    text once.
    """
    known: dict[str, str] = {}
    counts: dict[str, int] = {}
    for kind, text in found:
        if text and text not in known:
            label = kind.upper() if kind in KINDS else "HIDDEN"
            counts[label] = counts.get(label, 0) + 1
            known[text] = f"[{label}_{counts[label]}]"
    return {placeholder: text for text, placeholder in known.items()}


def conceal(value: Any, mask: Mask) -> Any:
    """`value` with every original of `mask` (placeholder to original) replaced, in keys as well.

    Raises:
        BadMask: a mask that `mask_for` cannot have made.
    """
    if not mask:
        return value
    pattern, names = _concealing(tuple(mask.items()))
    numbers = {int(text): f"[{name}#]" for text, name in names.items() if _is_number(text)}

    def swap(match: re.Match[str]) -> str:
        if match["name"] is None:
            return f"[{names[match[0]]}]"
        return f"[{match['name']}{match['number']}{match['marks']}~]"

    return _walk(value, lambda text: pattern.sub(swap, text), lambda number: numbers.get(number, number))


def restore(value: Any, mask: Mask) -> Any:
    """The reverse of `conceal`. A model that changed a placeholder's case is forgiven.

    Raises:
        BadMask: a mask that `mask_for` cannot have made.
    """
    if not mask:
        return value
    originals = {_name(placeholder): text for placeholder, text in mask.items()}
    pattern = re.compile(_token(originals), re.IGNORECASE)

    def swap(match: re.Match[str]) -> str:
        if match["marks"]:
            return f"[{match['name']}{match['number']}{match['marks'][:-1]}]"
        return originals[match["name"].upper()]

    def back(text: str) -> Any:
        whole = pattern.fullmatch(text)
        if whole and whole["number"] and not whole["marks"]:
            original = originals[whole["name"].upper()]
            return int(original) if _is_number(original) else original
        return pattern.sub(swap, text)

    return _walk(value, back, lambda number: number, key=lambda text: pattern.sub(swap, text))


@lru_cache(maxsize=64)
def _concealing(items: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    names = {text: _name(placeholder) for placeholder, text in items}
    if "" in names or len(names) < len(items):
        raise BadMask("a mask's placeholders must each stand for another text, and none for an empty one")
    longest = sorted(names, key=len, reverse=True)
    token = f"(?i:{_token(names.values())})"
    return re.compile("|".join((token, *map(_edged, longest)))), names


def _token(names: Iterable[str]) -> str:
    return rf"\[(?P<name>{'|'.join(sorted(names, key=len, reverse=True))})(?P<number>\#?)(?P<marks>~*)\]"


def _edged(text: str) -> str:
    # "Al" stays in "Also"; where no blanks part the words (Chinese) nothing says where one ends.
    before = r"(?<![A-Za-z0-9])" if text[0].isascii() and text[0].isalnum() else ""
    after = r"(?![A-Za-z0-9])" if text[-1].isascii() and text[-1].isalnum() else ""
    return before + re.escape(text) + after


def _name(placeholder: str) -> str:
    name = placeholder[1:-1]
    if placeholder != f"[{name}]" or not _NAME.fullmatch(name):
        raise BadMask("a placeholder is written [KIND_N], with a kind of A to Z and _ and a number")
    return name


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0") and len(text) < 20


def _walk(
    value: Any,
    text: Callable[[str], Any],
    number: Callable[[int], Any],
    key: Callable[[str], str] | None = None,
) -> Any:
    kind = type(value)
    if kind is str:
        return text(value)
    if kind is int:
        return number(value)
    if kind is dict:
        if "dataref" in value and claim_of(value) is not None:
            return value  # what it stands for is concealed where that is copied
        of_key = key or text
        return {
            of_key(name) if type(name) is str else name: _walk(item, text, number, key)
            for name, item in value.items()
        }
    if kind is list:
        return [_walk(item, text, number, key) for item in value]
    if kind is tuple:
        return tuple(_walk(item, text, number, key) for item in value)
    if kind is bytes:
        return _bytes(value, key or text)
    return value


def _bytes(value: bytes, text: Callable[[str], str]) -> bytes:
    try:
        return text(value.decode()).encode()
    except UnicodeError:
        return value
