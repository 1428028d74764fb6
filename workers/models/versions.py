"""Names and versions of models: which may be folders of a repository, and the order of versions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from workers.errors import RepositoryError

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,62}[A-Za-z0-9])?")
_PARTS = re.compile(r"\d+|[A-Za-z]+")
_WORD, _END, _NUMBER = 0, 1, 2

Order = tuple[tuple[tuple[int, int, str], ...], str]


def check_name(name: str, what: str = "name") -> str:
    """`name`, which may be a folder's: letters, digits, `._+-`, with a letter or digit at both ends.

    Raises:
        RepositoryError: it may not.
    """
    if not _NAME.fullmatch(name) or ".." in name:
        raise RepositoryError(
            f"{what} {name[:80]!r} cannot be a folder: give up to 64 letters, digits and . _ + - that begin "
            "and end with a letter or digit"
        )
    return name


def is_name(name: str) -> bool:
    """Whether `check_name` lets it pass."""
    return bool(_NAME.fullmatch(name)) and ".." not in name


def order(version: str) -> Order:
    """A total order of versions: numbers as numbers, part by part, and a word before the end.

    So 1 < 2 < 10, 1.2 < 1.2.0, 1.2.0-rc1 < 1.2.0, 2024-01-31 < 2024-02-01. Versions that differ in their
    spelling alone (`1.0`, `1-0`, `01.0`) are in the order of their texts.
    """
    found = ((_NUMBER, int(p), "") if p.isdigit() else (_WORD, 0, p.lower()) for p in _PARTS.findall(version))
    return (*found, (_END, 0, "")), version


def in_order(versions: Iterable[str]) -> list[str]:
    """The oldest first."""
    return sorted(versions, key=order)


def next_number(versions: Iterable[str]) -> str:
    """The number after the highest of those that are whole numbers; `1` at first."""
    return str(max((int(v) for v in versions if v.isdecimal() and v.isascii()), default=0) + 1)
