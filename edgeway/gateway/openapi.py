"""The gateway as an OpenAPI 3.1 document, from the rules and the cards of what runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeway.gateway.openapi_parts import (
    EVENTS,
    KEY,
    PREFER,
    RESPONSES,
    SCHEMAS,
    TRACE,
    UNTIL,
    WHO,
    WHOLE,
    problems,
)
from schemas.bounds import DEFAULT_DEADLINE_MS, MAX_DEADLINE_MS
from schemas.cards import Card
from schemas.rules import Rules
from workers.http.openapi import example
from workers.http.paths import full

_DEADLINE = {
    "name": "Edgeway-Deadline-Ms",
    "in": "header",
    "description": "An answer is worth waiting for so long; else what the body or the rules say holds.",
    "schema": {"type": "integer", "minimum": 1, "maximum": MAX_DEADLINE_MS},
}
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The request's id: its Idempotency-Key, or what its answer or Location says.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128},
}
_LAST_EVENT = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last event that was read: the stream goes on from there.",
    "schema": {"type": "string"},
}

_AWAY = problems("400", "401", "403", "404", "503")


def document(
    rules: Rules, version: str, *, token: bool, cards: Sequence[Card] = (), upload_bytes: int
) -> dict[str, Any]:
    """The document; `token` where calls need a bearer token."""
    known = {(card.side, card.capability): card for card in cards}
    paths = {"/route": {"post": _route(rules, upload_bytes)}, **_requests()}
    for name in rules.capabilities:
        paths[full(name)] = {"post": _capability(full(name), known.get(name))}
    bearer = {"bearer": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Edgeway gateway",
            "version": version,
            "description": "Requests to Edgeway, which decides for each step whether it runs at the edge or "
            "in the cloud. docs/gateway.md tells more.",
        },
        "paths": paths,
        "components": {"schemas": SCHEMAS, **({"securitySchemes": bearer} if token else {})},
        **({"security": [{"bearer": []}]} if token else {}),
    }


def _route(rules: Rules, upload_bytes: int) -> dict[str, Any]:
    tasks = sorted(rules.tasks)
    body = {"$ref": "#/components/schemas/Request"}
    return {
        "operationId": "route",
        "summary": "Send a request and wait for its answer",
        "description": "Tasks of the rules: " + (", ".join(tasks) or "none") + ".",
        "parameters": [KEY, _DEADLINE, PREFER, *TRACE],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": body,
                    "example": {"task": tasks[0] if tasks else "TASK", "text": "..."},
                },
                "application/msgpack": {"schema": body},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "description": "Texts are keys of the request or inputs, files are inputs, the part "
                        f"`request` is a whole request in JSON. At most {upload_bytes} bytes.",
                        "properties": {"request": {"type": "string"}},
                        "additionalProperties": {"type": "string"},
                    }
                },
            },
        },
        "responses": {
            "200": _result("The answer, `ok` or `partial`", {"text/event-stream": EVENTS}),
            "202": RESPONSES["open"],
            **problems("400", "401", "402", "403", "404", "408", "409", "413", "415", "422", "429", "500"),
            **problems("502", "503", "504"),
        },
    }


def _requests() -> dict[str, Any]:
    events = {
        "200": {"description": "Events until the result", "content": {"text/event-stream": EVENTS}},
        **_AWAY,
    }
    text = {"schema": {"type": "string"}}
    report = {
        "description": "HTML where it is accepted, else Markdown",
        "content": {"text/html": text, "text/markdown": text},
    }
    output = {
        "description": "A claimed output in its own content type, of a value msgpack; else JSON, or msgpack "
        "where that is accepted",
        "content": {
            "application/json": {"schema": True},
            "application/msgpack": {},
            "application/octet-stream": {},
        },
    }
    waits = {"202": RESPONSES["open"], **_AWAY}
    return {
        "/requests/{id}": {"get": _get_result(), "delete": _cancel()},
        "/requests/{id}/events": _below("events", "What happens to a request, as it happens", events),
        "/requests/{id}/report": _below(
            "report", "The answer as a page or Markdown", {"200": report, **waits}
        ),
        "/requests/{id}/output": _below(
            "output",
            "The output alone, also where it is too large for a record",
            {"200": output, **waits, **problems("502")},
        ),
    }


def _get_result() -> dict[str, Any]:
    return {
        "operationId": "result",
        "summary": "The answer to a request sent before, of the last 10 minutes",
        "parameters": [_ID, WHO, UNTIL, PREFER],
        "responses": {
            "200": _result("The answer, also where it is an error"),
            "202": RESPONSES["open"],
            **_AWAY,
        },
    }


def _cancel() -> dict[str, Any]:
    return {
        "operationId": "cancel",
        "summary": "Cancel what has not started",
        "parameters": [_ID, WHO, UNTIL],
        "responses": {
            "200": _result("It was answered before; nothing is cancelled"),
            "202": RESPONSES["cancelling"],
            **_AWAY,
        },
    }


def _below(name: str, summary: str, responses: dict[str, Any]) -> dict[str, Any]:
    parameters = [_ID, WHO, UNTIL, *([_LAST_EVENT] if name == "events" else [])]
    return {
        "get": {"operationId": name, "summary": summary, "parameters": parameters, "responses": responses}
    }


def _capability(path: str, card: Card | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if card is not None and "$defs" not in card.input_schema:
        schema = {"type": "object", **card.input_schema}
    body = {"anyOf": [schema, WHOLE]}
    content: dict[str, Any] = {
        "application/json": {"schema": body, "example": example(schema)},
        "application/msgpack": {"schema": body},
    }
    names = schema.get("properties", {})
    if "text" in names or card is None:
        content["text/plain"] = {"schema": {"type": "string"}}
    if "image" in names or card is None:
        content["image/*"] = {"schema": {"type": "string", "format": "binary"}}
    deadline = {**_DEADLINE, "schema": {**_DEADLINE["schema"], "default": DEFAULT_DEADLINE_MS}}  # type: ignore[dict-item]
    return {
        "operationId": path.strip("/").replace("/", "."),
        "summary": (card.description if card else "")
        or f"One step on {path.split('/')[1]}, with every constraint",
        "parameters": [KEY, deadline, PREFER, *TRACE],
        "requestBody": {"required": True, "content": content},
        "responses": {
            "200": RESPONSES["capability"],
            "202": RESPONSES["open"],
            **problems("400", "401", "402", "403", "404", "408", "409", "413", "415", "422", "429", "500"),
            **problems("502", "503", "504"),
        },
    }


def _result(text: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    schema = {"schema": {"$ref": "#/components/schemas/Result"}}
    return {
        "description": text,
        "content": {"application/json": schema, "application/msgpack": schema, **(more or {})},
    }
