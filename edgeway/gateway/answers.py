"""Results to responses, and what is said of a request that is not answered yet."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from edgeway.gateway.problems import of_result
from schemas.messages import Result
from workers.http.forms import JSON, MSGPACK, Reply, Wire

RETRY_S = 1
_FIELDS = Result.__struct_fields__


class Answer(Result, frozen=True, kw_only=True, omit_defaults=False, tag="result"):
    """A Result of which every field is written: callers need not know the defaults."""


def reply_of(result: Result, wire: Wire) -> Reply:
    """The response that tells the answer to its caller: an error is a problem document."""
    return of_result(result) if result.status == "error" else shown(result, wire)


def shown(result: Result, wire: Wire) -> Reply:
    """The whole Result, whatever its status; bytes in JSON are base64."""
    answer = Answer(**{name: getattr(result, name) for name in _FIELDS})
    if wire == "msgpack":
        return Reply(200, MSGPACK, msgspec.msgpack.encode(answer))
    return Reply(200, JSON, msgspec.json.encode(answer))


def still_open(request_id: str, where: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """202: the answer will be at `where`."""
    body = msgspec.json.encode({"id": request_id, "status": "open", "location": where})
    return Reply(202, JSON, body, (("Location", where), ("Retry-After", str(RETRY_S)), *headers))


def location(request_id: str, tenant: str | None, until_ms: int | None, part: str = "") -> str:
    """Where the answer to a request will be, or a `part` of it. `until_ms`, by when it is answered, lets a
    replica that was not asked know that it is open; None where that is not known."""
    query: dict[str, Any] = {"until": until_ms} if until_ms is not None else {}
    query |= {"tenant": tenant} if tenant is not None else {}
    path = f"/requests/{quote(request_id, safe='')}{'/' if part else ''}{part}"
    return f"{path}{'?' if query else ''}{urlencode(query)}"


def capability_reply(result: Result, capability: str, wire: Wire) -> Reply:
    """The answer of one capability, as a worker's own door gives it, and what routing says of it."""
    if result.status == "error":
        return of_result(result)
    step = next(iter(result.timings), "")
    timings, model = result.timings.get(step), result.models.get(step)
    body: dict[str, Any] = {
        "id": result.id,
        "capability": capability,
        "output": result.output,
        "confidence": result.confidence,
        "cost": result.cost,
        "model": model,
        "timings": {
            "queue_ms": round(timings.queue_ms, 3) if timings else 0.0,
            "service_ms": round(timings.service_ms, 3) if timings else 0.0,
            "total_ms": round(timings.total_ms, 3) if timings else 0.0,
        },
        "approximate": result.approximate,
        "warnings": result.warnings,
        "cached": result.cached,
        "decisions": result.decisions,
    }
    if result.claim is not None:
        body["claim"] = result.claim
    if wire == "msgpack":
        return Reply(200, MSGPACK, msgspec.msgpack.encode(body))
    return Reply(200, JSON, msgspec.json.encode(body))
