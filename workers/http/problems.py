"""Refusals and errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from schemas.errors import ErrorCode
from schemas.messages import Partial
from workers.http.forms import Reply

MEDIA_TYPE = "application/problem+json"

_TITLES: dict[str, tuple[int, str]] = {
    "malformed": (400, "The body cannot be read"),
    "unsupported_version": (400, "The body cannot be read"),
    "invalid_request": (400, "The request cannot be used"),
    "bad_input": (422, "The capability refuses these inputs"),
    "object_missing": (422, "Something that the inputs name is not there"),
    "unknown_capability": (404, "No such capability"),
    "id_conflict": (409, "The key is in use for another call"),
    "deadline_exceeded": (504, "No answer by the deadline"),
    "over_budget": (402, "The budget does not allow the call"),
    "overloaded": (429, "Too much at once"),
    "too_large": (413, "The body is too large"),
}
_INTERNAL = (500, "The capability failed")


class Refused(Exception):
    """A request that reaches no model. The message goes to the caller: it quotes no payload.

    `status` where it is not that of the code; `retry_after_s` where the same may work later.
    """

    def __init__(
        self,
        code: ErrorCode,
        detail: str,
        *,
        status: int | None = None,
        title: str | None = None,
        retry_after_s: float | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.code = code
        known_status, known_title = _TITLES.get(code, _INTERNAL)
        self.status = known_status if status is None else status
        self.title = title or known_title
        self.retry_after_s = retry_after_s
        self.headers = headers


class Problem(NamedTuple):
    """What a problem document says beside type, title and status; None is left out."""

    code: str
    detail: str
    id: str | None = None
    capability: str | None = None
    cost: float | None = None
    model: Any = None


def of_refusal(error: Refused, key: str | None = None, capability: str | None = None) -> Reply:
    """The response to a request that reached no model."""
    headers = error.headers
    if error.retry_after_s is not None:
        headers = (*headers, ("Retry-After", str(max(1, round(error.retry_after_s)))))
    return _reply(error.status, error.title, Problem(error.code, str(error), key, capability), headers)


def of_partial(partial: Partial, key: str, capability: str) -> Reply:
    """The response to a call that ended in an error; what it cost all the same stands in it."""
    failure = partial.error
    assert failure is not None
    status, title = _TITLES.get(failure.code, _INTERNAL)
    if failure.code in ("too_large", "malformed"):
        # Here it is the output that fits no record, which is not the caller's fault.
        status, title = _INTERNAL
    headers = (("Retry-After", "1"),) if failure.code == "overloaded" else ()
    problem = Problem(failure.code, failure.message, key, capability, partial.cost or None, partial.model)
    return _reply(status, title, problem, headers)


def _reply(status: int, title: str, problem: Problem, headers: tuple[tuple[str, str], ...]) -> Reply:
    said = {name: value for name, value in problem._asdict().items() if value is not None}
    body = {"type": f"urn:edgeway:error:{problem.code}", "title": title, "status": status, **said}
    return Reply(status, MEDIA_TYPE, msgspec.json.encode(body), headers)
