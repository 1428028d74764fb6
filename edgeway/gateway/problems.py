"""Refusals and error results as `application/problem+json` (RFC 9457): the one table of statuses."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.errors import ErrorCode, SchemaError
from schemas.messages import Result
from workers.http.forms import Reply
from workers.http.problems import MEDIA_TYPE, Refused

STATUSES: dict[ErrorCode, tuple[int, str]] = {
    "malformed": (400, "The body cannot be read"),
    "unsupported_version": (400, "The body cannot be read"),
    "invalid_request": (400, "The request cannot be used"),
    "over_budget": (402, "The budget does not allow the request"),
    "unknown_task": (404, "No such task"),
    "unknown_capability": (404, "No such capability"),
    "id_conflict": (409, "The id is in use for another request"),
    "cancelled": (409, "The request was cancelled"),
    "too_large": (413, "The request is too large"),
    "bad_input": (422, "The capability refuses these inputs"),
    "object_missing": (422, "Something that the inputs name is not there"),
    "decomposer_failed": (500, "The request could not be split"),
    "merge_failed": (500, "The outputs could not be merged"),
    "handler_error": (500, "The request failed"),
    "killed_its_process": (500, "The request failed"),
    "result_too_large": (500, "The answer is too large"),
    "internal": (500, "The request failed"),
    "backend_error": (502, "The model failed"),
    "bad_output": (502, "The model failed"),
    "no_placement": (503, "Nothing may or can run this now"),
    "overloaded": (503, "Too much at once"),
    "deadline_exceeded": (504, "No answer by the deadline"),
    "unanswered": (504, "No answer by the deadline"),
}
"""HTTP status and title of every error code; `docs/gateway.md` shows the same table."""
_RETRY_S = {"overloaded": 1, "no_placement": 5}


class FieldRefused(Refused):
    """A request of which one field cannot be used."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__("invalid_request", f"{field}: {why}")
        self.field = field


def refused(code: ErrorCode, detail: str, *, retry_after_s: float | None = None, **more: Any) -> Refused:
    """A refusal with the status and title of `code`; `more` as `Refused` takes it."""
    status, title = STATUSES[code]
    return Refused(code, detail, retry_after_s=retry_after_s, **{"status": status, "title": title, **more})


def of_schema(error: SchemaError) -> Refused:
    """The refusal of what is no request, or too large for one."""
    return refused(error.code, str(error))


def unready(detail: str, *, close: bool = False) -> Refused:
    """503: the same will work in a moment, there or at another replica."""
    headers = (("Connection", "close"),) if close else ()
    return refused("overloaded", detail, title="Not ready", retry_after_s=1.0, headers=headers)


def of_refusal(error: Refused, request_id: str | None = None) -> Reply:
    """The response to what was not sent, or whose answer is not known."""
    headers = error.headers
    if error.retry_after_s is not None:
        headers = (*headers, ("Retry-After", str(max(1, round(error.retry_after_s)))))
    more = {"field": error.field} if isinstance(error, FieldRefused) else {}
    if request_id is not None:
        more["id"] = request_id
    return _reply(error.status, error.title, error.code, str(error), more, headers)


def of_result(result: Result) -> Reply:
    """The response to a request whose answer is an error; `result` in it is the whole answer."""
    failure = result.error
    assert failure is not None
    status, title = STATUSES[failure.code]
    retry = _RETRY_S.get(failure.code)
    headers = () if retry is None else (("Retry-After", str(retry)),)
    more = {"id": result.id, "result": result}
    return _reply(status, title, failure.code, failure.message, more, headers)


def _reply(
    status: int,
    title: str,
    code: str,
    detail: str,
    more: dict[str, Any],
    headers: tuple[tuple[str, str], ...],
) -> Reply:
    body = {
        "type": f"urn:edgeway:error:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        **more,
    }
    return Reply(status, MEDIA_TYPE, msgspec.json.encode(body), headers)
