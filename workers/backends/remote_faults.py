"""What can go wrong between a worker and a service that it asks, and what each failure costs: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from schemas.errors import ErrorCode
from schemas.messages import Failure
from workers.backends import Answer
from workers.backends.remote_retries import retry_after_s

_OURS = frozenset({400, 406, 409, 411, 413, 414, 415, 422})
"""What the caller's inputs may be to blame for; other 4xx speak of addresses, keys and quotas."""
_SOON = frozenset({408, 425, 429})
"""4xx that say: not now."""
GATEWAY = frozenset({502, 503, 504})
"""What gateways say of a service that did not answer them: the call may have been carried out."""

_DIGITS = 12
_WORDS = {
    401: "the key is missing or refused",
    402: "it wants to be paid first",
    403: "the key is missing or refused, or may not do this",
    404: "there is no such endpoint; look at its URL",
    405: "it takes no POST; look at its URL",
    408: "it gave up waiting",
    410: "there is no such endpoint any more; look at its URL",
    425: "too early",
    429: "too many calls",
    502: "what is behind it failed",
    503: "it is overloaded or under repair",
    504: "what is behind it gave no answer",
}


class Trouble(Exception):
    """A call without a usable answer.

    The text follows the service's name, and quotes neither payload nor key. `code` is what the caller is
    told. `free` says that the call was surely not carried out, and so costs nothing; where it is False nobody
    knows, and the call's upper bound counts as spent. `passing`: the service may do better in a moment;
    `after_s` is when, where it said so. `there`: the service answered, seems to be away, or None where the
    trouble says nothing of that.
    """

    def __init__(
        self,
        text: str,
        *,
        code: ErrorCode = "backend_error",
        free: bool = False,
        passing: bool = False,
        after_s: float | None = None,
        there: bool | None = None,
    ) -> None:
        super().__init__(text)
        self.code: ErrorCode = code
        self.free = free
        self.passing = passing
        self.after_s = after_s
        self.there = there

    def answer(self, capability: str, service: str = "") -> Answer:
        """The answer to the row: its cost is 0 where the call is free, else left open."""
        text = " ".join(word for word in (f"{capability}:", service, str(self)) if word)
        return Answer(error=Failure(code=self.code, message=text), cost=0.0 if self.free else None)


class Refusal(NamedTuple):
    """What a service says in the body of a refusal: `final` that asking again is of no use."""

    text: str
    code: ErrorCode = "backend_error"
    final: bool = True


def trouble_of(
    status: int, headers: Mapping[str, str], now_s: float, said: Refusal | None = None
) -> Trouble | None:
    """The trouble that a status speaks of, None for one of success.

    `headers` by lower-case name; `now_s` (seconds since 1970) is for a Retry-After that names a date; `said`
    is what the body adds. A 3xx here is a redirect that is not followed.
    """
    if 200 <= status < 300:
        return None
    text = f"answered {status}: {said.text if said else _words(status)}"
    if status in _OURS:
        return Trouble(text, code=said.code if said else "bad_input", free=True, there=True)
    after_s = _after_s(headers, now_s)
    final = said is not None and said.final
    return Trouble(
        text,
        code=said.code if said else "backend_error",
        # A 503 that names a time comes from whoever did not take the call; any other from who knows where.
        free=status < 500 or (status == 503 and after_s is not None),
        passing=not final and (status in _SOON or status in GATEWAY),
        after_s=after_s if status in (429, 503) else None,
        there=status not in GATEWAY,
    )


def _after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """The wait that the headers ask for; `retry-after-ms`, where a service sends it, is the finer one."""
    fine = headers.get("retry-after-ms", "").strip()
    if fine.isascii() and fine.isdigit():
        return float(fine[:_DIGITS]) / 1000
    return retry_after_s(headers.get("retry-after"), now_s)


def _words(status: int) -> str:
    if 300 <= status < 400:
        return "a redirect, which is not followed; put the new address in its place"
    usual = "it failed" if status >= 500 else "it refuses these inputs"
    return _WORDS.get(status, usual if status in _OURS or status >= 500 else "it refuses the call")
