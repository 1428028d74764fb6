"""When a call to a remote service is made again: pure."""

from __future__ import annotations

import math
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

FIRST_S = 0.1
"""The first pause where the service names none; each later one may be twice as long."""
LONGEST_S = 5.0
"""The longest such pause."""
SPREAD = 0.1
"""Those told to come back at the same time come spread over so much of the wait, at most SPREAD_S later."""
SPREAD_S = 1.0
_LONGEST_NUMBER = 10


class Happened(NamedTuple):
    """How an attempt ended: see `Trouble` for `free`, `passing` and `after_s`."""

    free: bool
    passing: bool
    after_s: float | None = None


class Policy(NamedTuple):
    """At most `attempts` in all. `repeatable`: a call that may have been carried out may be made again, as
    its service answers a key once, or as it costs nothing.
    """

    attempts: int = 3
    repeatable: bool = False


def pause_s(happened: Happened, attempt: int, left_s: float, policy: Policy, chance: float) -> float | None:
    """How long to wait before the next attempt, None where there must be none.

    `attempt` counts from 1; `left_s` is what is left of the call's time; `chance` in [0, 1) spreads those who
    wait. A pause that the service asked for is never cut short, and a pause always ends in time.
    """
    if attempt >= policy.attempts or not happened.passing:
        return None
    if not (happened.free or policy.repeatable):
        return None
    if happened.after_s is None:
        # "Full jitter": anything up to the doubled bound, so that those who failed together part.
        pause = min(LONGEST_S, FIRST_S * 2.0 ** (attempt - 1)) * chance
    else:
        pause = spread_s(happened.after_s, chance)
    return pause if pause < left_s else None


def spread_s(after_s: float, chance: float) -> float:
    """A wait of at least `after_s`, and a little more by `chance`."""
    return after_s + min(SPREAD_S, SPREAD * after_s) * chance


def retry_after_s(text: str | None, now_s: float) -> float | None:
    """The wait in seconds that a Retry-After asks for, None where it says nothing that can be read.

    Whole seconds or an HTTP date (RFC 9110, section 10.2.3); a date that has passed is 0.
    """
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        # More digits than this are centuries.
        return float(text) if len(text) <= _LONGEST_NUMBER else math.inf
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    try:
        return max(0.0, date.timestamp() - now_s)
    except (OverflowError, ValueError):
        return None
