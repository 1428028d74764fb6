"""What the table says of one setting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from streams.settings.kinds import Kind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class About:
    """What the table says of one setting. `group` decides which commands take it; secrets have no flag."""

    kind: Kind
    help: str
    group: str
    flag: bool = True


def setting(default: T, kind: Kind, group: str, text: str, flag: bool = True) -> T:
    """A field of the table."""
    about = About(kind, text, group, flag)
    return field(default=default, metadata={"about": about})
