"""How often the cache had an answer, as a metric."""

from __future__ import annotations

from typing import Literal

from streams import metrics

Kind = Literal["answer", "step"]
Outcome = Literal["hit", "miss", "shared", "unavailable"]
"""`shared` is an answer that was waited for; each look-up counts once, when its outcome is known."""

_KINDS: tuple[Kind, ...] = ("answer", "step")
_OUTCOMES: tuple[Outcome, ...] = ("hit", "miss", "shared", "unavailable")
_COUNTERS = {(kind, outcome): metrics.CACHE.labels(kind, outcome) for kind in _KINDS for outcome in _OUTCOMES}


def count(kind: Kind, outcome: Outcome, times: int = 1) -> None:
    """Count `times` look-ups that ended so."""
    _COUNTERS[kind, outcome].inc(times)
