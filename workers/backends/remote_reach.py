"""Whether a service elsewhere is there, by what calls and looks say: pure, times are seconds of any steady
clock.

A look asks the service something free. None is made before a call has failed as if the service were away, nor
after one was answered.
"""

from __future__ import annotations

import math
from typing import Literal

FIRST_S = 0.25
"""From the failure to the first look: a call that is answered meanwhile makes it needless."""
EVERY_S = 2.0
SPREAD = 0.25
"""Looks of many workers must not come together: each wait is so much shorter or longer, at random."""
LEAST_S = 0.5
"""Between looks where a call waits to know."""
DOUBT_S = 60.0
"""So long an answer to looks that says no is believed without a call that bears it out: it may be the place
that is asked which is broken, and not the service."""

Sight = Literal["there", "refuses", "gone"]
"""What a look found: the service answers; something else does for it, or too late; nobody takes the
connection."""


class Reach:
    """`known`: the service is there, is not, or nobody knows. `due`: when to look next, None: not at all."""

    __slots__ = ("_looked", "_since", "due", "known")

    def __init__(self) -> None:
        self.known: bool | None = None
        self.due: float | None = None
        self._looked = -math.inf
        self._since = 0.0

    def answered(self) -> None:
        """A call was answered, whatever it was told."""
        self.known, self.due = True, None

    def failed(self, now: float, chance: float) -> None:
        """A call failed as if the service were away; `chance` in [0, 1)."""
        if self.due is None:
            self.due = max(now + _spread(FIRST_S, chance), self._looked + _spread(EVERY_S, chance))

    def hasten(self, now: float) -> None:
        """A call waits to know."""
        if self.due is not None:
            self.due = min(self.due, max(now, self._looked + LEAST_S))

    def begin(self, now: float, chance: float) -> None:
        """A look begins."""
        self._looked = now
        self.due = now + _spread(EVERY_S, chance)

    def saw(self, sight: Sight, now: float) -> None:
        """A look ended. What it found counts for nothing where a call was answered meanwhile."""
        if self.due is None:
            return
        if sight == "there":
            self.answered()
        elif self.known is not False:
            self.known, self._since = False, now
        elif sight == "refuses" and now - self._since >= DOUBT_S:
            # Until the next look calls may try.
            self.known = None


def _spread(wait_s: float, chance: float) -> float:
    return wait_s * (1.0 - SPREAD + 2.0 * SPREAD * chance)
