"""What an HTTP endpoint may answer, as an Answer: pure."""

from __future__ import annotations

from typing import Any

from schemas.bounds import MAX_MONEY
from workers.backends import Answer
from workers.backends.remote_faults import Trouble
from workers.backends.remote_wire import json_of


def answer_of(body: bytes) -> Answer:
    """The answer in a body of JSON.

    An object with `output` is read as output, `confidence`, `cost` and `usage`; of anything else the whole
    body is the output, and a `confidence` in it counts.

    Raises:
        Trouble: no JSON, or a confidence, cost or usage that is none.
    """
    said = json_of(body)
    if not isinstance(said, dict):
        return Answer(said)
    if "output" not in said:
        sure = said.get("confidence")
        return Answer(said, sure if _within(sure, 1.0) else None)
    sure, cost, usage = said.get("confidence"), said.get("cost"), said.get("usage") or {}
    if sure is not None and not _within(sure, 1.0):
        raise Trouble("answered a confidence that is not within 0 and 1")
    if cost is not None and not _within(cost, MAX_MONEY):
        raise Trouble("answered a cost that is no amount of money")
    if not isinstance(usage, dict) or not all(_within(count, 1e15) for count in usage.values()):
        raise Trouble("answered a usage that maps no names to numbers")
    return Answer(said["output"], sure, cost, usage)


def _within(value: Any, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
