"""What a request may do, as far as privacy goes: a judge's verdict, never below the declared level."""

from __future__ import annotations

import logging
from typing import Protocol

from schemas.messages import Request, Verdict
from streams.strangers import RAISED

log = logging.getLogger(__name__)

NORMAL = Verdict()
DECLARED_HIGH = Verdict(level="high", reasons=("declared",))
UNDECIDED = Verdict(level="high", reasons=("verdict_failed",))


class Judge(Protocol):
    """Anything that gives a verdict on a request. What it raises counts as `high`."""

    def __call__(self, request: Request, /) -> Verdict: ...


def declared(request: Request) -> Verdict:
    """The level that the request declares."""
    return NORMAL if request.privacy == "normal" else DECLARED_HIGH


def verdict_of(request: Request, judge: Judge = declared) -> Verdict:
    """The judge's verdict, never below the declared level; `high` where the judge fails (fail closed)."""
    try:
        verdict = judge(request)
    except KeyboardInterrupt:
        raise
    except RAISED as error:  # whatever a detector raises means local; its text may quote the payload
        log.error("the privacy verdict failed (%s); the request stays local", type(error).__name__)
        return UNDECIDED
    if verdict.level == "normal" and request.privacy != "normal":
        return DECLARED_HIGH
    return verdict
