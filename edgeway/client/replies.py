"""What the gateway's responses mean. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from edgeway.client.errors import GatewayRefused, Unauthorized, UnknownRequest
from edgeway.client.sse import ServerEvent
from edgeway.exchange.ports import Event
from schemas import codec
from schemas.errors import ERROR_CODES, SchemaError
from schemas.messages import Failure, Request, Result
from workers.backends.remote_retries import retry_after_s

MSGPACK = "application/msgpack"
_AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504))
_OF_REQUEST = frozenset((400, 402, 409, 413, 422))
_UNKNOWN = ("unknown_task", "unknown_capability")
_SHOWN = 300


class Open(NamedTuple):
    """Accepted and not answered yet: ask at `location`."""

    location: str


class Again(NamedTuple):
    """Not now: the same may work later, after `retry_after_s` where that was said."""

    refusal: GatewayRefused
    retry_after_s: float | None


Meaning = Result | Open | Again
"""What one response means, where it is no refusal for good."""


def meaning_of(
    status: int, headers: Mapping[str, str], body: bytes, now: datetime, asked: Request | None = None
) -> Meaning:
    """What a response means: to `POST /route` with the request that was `asked`, or to `/requests/{id}`.

    Names of headers in lower case. What the gateway refuses of a request before Kafka sees it, the router
    would have answered with an error: so it is one here too.

    Raises:
        GatewayRefused: it was refused, and would be again.
    """
    kind = headers.get("content-type", "")
    if status == 202:
        return Open(headers.get("location", ""))
    if status == 200:
        return _result(body, kind)
    problem = _problem(body, kind)
    if isinstance(problem.get("result"), dict):
        return _converted(problem["result"])
    code = problem.get("code")
    if asked is not None and code in ERROR_CODES and (status in _OF_REQUEST or code in _UNKNOWN):
        failure = Failure(code=code, message=str(problem.get("detail", "")))
        return Result(id=asked.id or "", status="error", tenant=asked.tenant, task=asked.task, error=failure)
    refusal = refusal_of(status, problem)
    # A proxy's 500 or 502 holds no problem; an Edgeway that has failed at a request says so in a result.
    if status in _AGAIN:
        return Again(refusal, retry_after_s(headers.get("retry-after"), now.timestamp()))
    raise refusal


def refusal_of(status: int, problem: Mapping[str, Any]) -> GatewayRefused:
    """The exception of a problem document."""
    kind = {401: Unauthorized, 403: Unauthorized, 404: UnknownRequest}.get(status, GatewayRefused)
    code = str(problem.get("code", "internal"))
    if kind is UnknownRequest and code == "invalid_request":
        kind = GatewayRefused
    detail = str(problem.get("detail") or problem.get("title") or "it did not say why")
    return kind(status, code, detail[:_SHOWN])


def event_of(server: ServerEvent) -> Event:
    """The event that a server-sent one is; its id begins with its time in ms.

    Raises:
        ValueError: it is none.
    """
    at = server.id.partition("-")[0]
    data = json.loads(server.data)
    if not isinstance(data, dict):
        raise ValueError(f"the event {server.name} of the stream holds no object")
    return Event(server.name, int(at) if at.isascii() and at.isdigit() else 0, data)  # type: ignore[arg-type]


def result_of(event: Event) -> Result:
    """The Result of the last event of a stream.

    Raises:
        ValueError: the event is another one.
    """
    if event.kind != "result":
        raise ValueError(f"the event {event.kind} holds no result; the last one of a stream does")
    return _converted(event.data)


def _converted(data: dict[str, Any]) -> Result:
    try:
        return msgspec.convert(data, Result)
    except msgspec.ValidationError as exc:
        raise GatewayRefused(200, "malformed", f"its answer cannot be read: {exc}") from exc


def _result(body: bytes, kind: str) -> Result:
    try:
        found: Result = codec.decode(body, Result, "msgpack" if "msgpack" in kind else "json")
    except SchemaError as exc:
        raise GatewayRefused(200, "malformed", f"its answer cannot be read: {exc}") from exc
    return found


def _problem(body: bytes, kind: str) -> dict[str, Any]:
    if "json" not in kind:
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
