"""Partials to responses."""

from __future__ import annotations

import msgspec

from schemas.messages import Partial
from workers.http.forms import JSON, MSGPACK, Reply, Wire
from workers.http.problems import of_partial


def reply_of(partial: Partial, key: str, capability: str, wire: Wire, total_ms: float) -> Reply:
    """The response that tells `partial`, the answer to the call `key`; bytes in JSON are base64."""
    if partial.error is not None:
        return of_partial(partial, key, capability)
    body = {
        "id": key,
        "capability": capability,
        "output": partial.output,
        "confidence": partial.confidence,
        "cost": partial.cost,
        "usage": partial.usage,
        "model": partial.model,
        "timings": {
            "queue_ms": round(partial.timings.queue_ms, 3),
            "service_ms": round(partial.timings.service_ms, 3),
            "total_ms": round(total_ms, 3),
        },
    }
    if wire == "msgpack":
        return Reply(200, MSGPACK, msgspec.msgpack.encode(body))
    return Reply(200, JSON, msgspec.json.encode(body))
