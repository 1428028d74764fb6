"""What an HTTP endpoint may answer, as an Answer: pure."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.bounds import MAX_MONEY
from schemas.errors import ErrorCode
from workers.backends import Answer

MAX_ANSWER_BYTES = 1024 * 1024

_OURS = frozenset({400, 406, 409, 411, 413, 414, 415, 422})
"""What the caller's inputs may be to blame for; other 4xx speak of addresses, keys and quotas."""
_WORDS = {
    401: "the key that the URL carries is refused",
    402: "it wants to be paid first",
    403: "the key that the URL carries is refused",
    404: "there is no such endpoint; look at fallback_url",
    405: "it takes no POST; look at fallback_url",
    408: "it gave up waiting",
    410: "there is no such endpoint any more; look at fallback_url",
    425: "too early",
    429: "too many calls",
    503: "it is overloaded or under repair",
    504: "its own backend gave no answer",
}


class Trouble(Exception):
    """An answer that cannot be used. The text follows the host's name, and quotes nothing of the answer."""


def refusal_of(status: int) -> tuple[ErrorCode, str] | None:
    """What a status says instead of an answer, None for one of success."""
    if 200 <= status < 300:
        return None
    if status in _OURS:
        return "bad_input", "it refuses these inputs"
    if 300 <= status < 400:
        return "backend_error", "a redirect, which is not followed; put the new address in fallback_url"
    return "backend_error", _WORDS.get(status, "it failed" if status >= 500 else "it refuses the call")


def answer_of(body: bytes) -> Answer:
    """The answer in a body of JSON.

    An object with `output` is read as output, `confidence`, `cost` and `usage`; of anything else the whole
    body is the output, and a `confidence` in it counts.

    Raises:
        Trouble: no JSON, or a confidence, cost or usage that is none.
    """
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Trouble("answered something else than JSON") from error
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
