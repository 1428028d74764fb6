"""What the gateway's OpenAPI document says in several places."""

from __future__ import annotations

from typing import Any

from edgeway.gateway.problems import STATUSES
from schemas.bounds import MAX_MONEY, TENANT
from schemas.messages import DEGRADED, MAX_DEADLINE_MS
from workers.http.problems import MEDIA_TYPE

_OBJECT: dict[str, Any] = {"type": "object"}
_TEXT = {"type": "string"}
_TENANT = {"type": "string", "pattern": TENANT.partition("(?!")[0], "maxLength": 64}
_MAYBE_TEXT = {"type": ["string", "null"]}
_MAYBE_ID = {"type": ["string", "null"], "minLength": 1, "maxLength": 128}
_MAYBE_DEADLINE = {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_DEADLINE_MS}
_PROBLEMS = {
    "400": "The request cannot be used; `field` names what is wrong with it where one field is",
    "401": "The bearer token is missing or wrong",
    "402": "The budget does not allow the request",
    "403": "The request is another tenant's, or comes from a page of another origin",
    "404": "No such request, task or capability",
    "408": "The body came too slowly",
    "409": "The id is in use for another request, or the request was cancelled",
    "413": "The body is too large",
    "415": "A content type that is not read",
    "422": "The capability refuses these inputs",
    "429": "The tenant's limit of requests a second, or of open ones; see Retry-After",
    "500": "The request failed",
    "502": "The model failed, or the output's store is away",
    "503": "Too much at once, Kafka is away, or the gateway starts or stops; see Retry-After",
    "504": "No answer by the deadline",
}

KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The id of the request: sent again with the same content it refers to the first one, "
    "which runs once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128},
}
PREFER = {
    "name": "Prefer",
    "in": "header",
    "description": "`respond-async`: 202 at once; `wait=N`: 202 where no answer came within N seconds.",
    "schema": {"type": "string", "examples": ["respond-async", "wait=5"]},
}
TRACE = [
    {
        "name": "traceparent",
        "in": "header",
        "description": "W3C trace context; the response says which one the request is carried out under.",
        "schema": {"type": "string", "examples": ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]},
    }
]
WHO = {
    "name": "tenant",
    "in": "query",
    "description": "The request's tenant where no token says so.",
    "schema": _TENANT,
}
UNTIL = {
    "name": "until",
    "in": "query",
    "description": "By when it is answered, in ms, as its Location says: a replica that it was "
    "not sent through then knows that it is open.",
    "schema": {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999},
}
WHOLE = {
    "type": "object",
    "description": "Inputs with what stands beside them.",
    "properties": {
        "inputs": _OBJECT,
        "params": _OBJECT,
        "deadline_ms": _MAYBE_DEADLINE,
        "id": _MAYBE_ID,
    },
    "required": ["inputs"],
    "additionalProperties": False,
}
_REQUEST = {
    "type": "object",
    "description": "`task` or `query` says what is asked; keys beside the known ones are inputs. Inputs "
    "whose names end in `_url` are http(s) URLs of hosts that the rules list, or data URLs.",
    "properties": {
        "id": _MAYBE_ID,
        "task": {"type": ["string", "null"], "minLength": 1, "maxLength": 128},
        "query": _MAYBE_TEXT,
        "inputs": _OBJECT,
        "params": _OBJECT,
        "privacy": {"enum": ["normal", "high"]},
        "deadline_ms": _MAYBE_DEADLINE,
        "max_cost": {"type": ["number", "null"], "minimum": 0, "maximum": MAX_MONEY},
        "tenant": {**_TENANT, "type": ["string", "null"]},
        "reply_to": {"type": ["string", "null"], "minLength": 1, "maxLength": 249},
    },
    "additionalProperties": True,
}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457. `code` is one of Edgeway's error codes; the words never quote the inputs.",
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "code": {"enum": sorted(STATUSES)},
        "id": _TEXT,
        "field": {"type": "string", "description": "The field that cannot be used"},
        "result": {"$ref": "#/components/schemas/Result"},
    },
    "required": ["type", "title", "status", "detail", "code"],
}
_RESULT = {
    "type": "object",
    "description": "`approximate` and `warnings` say where the answer is less than the best, `degraded` why; "
    "`decisions` say why each step ran where it ran. Bytes in JSON are base64.",
    "properties": {
        "type": {"const": "result"},
        "v": {"type": "integer"},
        "id": _TEXT,
        "status": {"enum": ["ok", "partial", "error"]},
        "output": True,
        "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "approximate": {"type": "boolean"},
        "warnings": {"type": "array", "items": _TEXT},
        "missing": {"type": "array", "items": _TEXT},
        "decisions": {"type": "array", "items": _OBJECT},
        "cost": {"type": "number", "minimum": 0},
        "timings": {"type": "object", "additionalProperties": _OBJECT},
        "models": {"type": "object", "additionalProperties": _OBJECT},
        "sides": {"type": "object", "additionalProperties": {"enum": ["local", "cloud"]}},
        "tenant": _MAYBE_TEXT,
        "task": _MAYBE_TEXT,
        "rules": _MAYBE_TEXT,
        "digest": _MAYBE_TEXT,
        "error": {"type": ["object", "null"]},
        "claim": {"type": ["object", "null"]},
        "privacy": {"type": ["object", "null"]},
        "cached": {"type": "boolean"},
        "age_ms": {"type": ["integer", "null"], "minimum": 0},
        "degraded": {"type": "array", "items": {"enum": list(DEGRADED)}},
    },
    "required": ["id", "status"],
}
_OPEN = {
    "type": "object",
    "properties": {"id": _TEXT, "status": {"const": "open"}, "location": _TEXT},
    "required": ["id", "status", "location"],
}
_CANCELLING = {
    "type": "object",
    "properties": {"id": _TEXT, "status": {"const": "cancelling"}},
    "required": ["id", "status"],
}
_CAPABILITY = {
    "type": "object",
    "description": "As a worker's own door answers, and what routing says of it.",
    "properties": {
        "id": _TEXT,
        "capability": _TEXT,
        "output": True,
        "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "cost": {"type": "number"},
        "model": {"type": ["object", "null"]},
        "timings": _OBJECT,
        "approximate": {"type": "boolean"},
        "warnings": {"type": "array", "items": _TEXT},
        "cached": {"type": "boolean"},
        "decisions": {"type": "array", "items": _OBJECT},
        "claim": _OBJECT,
    },
    "required": ["id", "capability", "output", "confidence", "cost", "timings", "approximate", "warnings"],
}
EVENTS: dict[str, Any] = {
    "schema": {
        "type": "object",
        "description": "Each event: `event` is accepted, planned, partial, escalated or result; `data` JSON.",
        "properties": {"id": _TEXT, "event": _TEXT, "data": _TEXT},
        "required": ["id", "event", "data"],
    }
}
SCHEMAS = {
    "Request": _REQUEST,
    "Result": _RESULT,
    "Problem": _PROBLEM,
    "Open": _OPEN,
    "Cancelling": _CANCELLING,
    "CapabilityAnswer": _CAPABILITY,
}


def _of(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}}


_RETRY = {
    "description": "Seconds until it is worth asking again",
    "schema": {"type": "integer", "minimum": 1},
}
RESPONSES: dict[str, Any] = {
    "open": {
        "description": "Not answered yet; ask again at `location`",
        "headers": {"Location": {"schema": _TEXT}, "Retry-After": _RETRY},
        "content": {"application/json": _of("Open")},
    },
    "cancelling": {
        "description": "What has not started will not be",
        "headers": {"Retry-After": _RETRY},
        "content": {"application/json": _of("Cancelling")},
    },
    "capability": {
        "description": "The answer; bytes in JSON are base64",
        "content": {
            "application/json": _of("CapabilityAnswer"),
            "application/msgpack": _of("CapabilityAnswer"),
            "text/event-stream": EVENTS,
        },
    },
}


def problems(*statuses: str) -> dict[str, Any]:
    """The responses of these statuses; every path may also answer 405."""
    content = {MEDIA_TYPE: _of("Problem")}
    headers = {"Retry-After": _RETRY}
    return {
        status: {
            "description": _PROBLEMS[status],
            "content": content,
            **({"headers": headers} if status in ("429", "503") else {}),
        }
        for status in statuses
    }
