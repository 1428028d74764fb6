"""The `Prefer` header (RFC 7240): whether and how long a caller waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MOST_WAIT_S = 3600


class Preference(NamedTuple):
    """`wait_s` None: until the answer; 0: not at all. `applied` is what the response says of it."""

    wait_s: float | None = None
    applied: str | None = None


def preference_of(headers: Iterable[str]) -> Preference:
    """What the `Prefer` headers ask for; what cannot be read is ignored, as the standard has it."""
    asked: dict[str, str] = {}
    for header in headers:
        for part in header.split(","):
            name, _, value = part.partition(";")[0].partition("=")
            asked.setdefault(name.strip().lower(), value.strip().strip('"'))
    wait = asked.get("wait", "")
    if wait.isascii() and wait.isdigit():
        seconds = min(int(wait[:9]), MOST_WAIT_S)
        applied = f"wait={seconds}"
        return Preference(
            float(seconds), f"respond-async, {applied}" if "respond-async" in asked else applied
        )
    return Preference(0.0, "respond-async") if "respond-async" in asked else Preference()
