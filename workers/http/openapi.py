"""The capabilities of a worker as an OpenAPI 3.1 document, from their cards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from schemas.bounds import DEFAULT_DEADLINE_MS, MAX_DEADLINE_MS
from schemas.cards import Card
from workers.http.paths import full
from workers.http.problems import MEDIA_TYPE

_REF = "#/$defs/"
_OBJECT = {"type": "object"}
_PROBLEMS = {
    "400": "The body cannot be read",
    "401": "The bearer token is missing or wrong",
    "402": "The budget does not allow the call",
    "404": "No such capability; the detail lists those there are",
    "409": "The Idempotency-Key is in use for another call",
    "413": "The body is larger than a record may be",
    "415": "A content type that is not read",
    "422": "The capability refuses these inputs",
    "429": "The queue is full, or the calls come too fast; see Retry-After",
    "500": "The capability failed",
    "503": "The worker is not ready yet, or stops; see Retry-After",
    "504": "No answer by the deadline",
}
_MODEL = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "version": {"type": "string"}},
    "required": ["name", "version"],
}
_TIMINGS = {
    "type": "object",
    "description": "Milliseconds in the queue, in the model, and from the request's arrival to the answer.",
    "properties": {name: {"type": "number"} for name in ("queue_ms", "service_ms", "total_ms")},
}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457. `code` is one of Edgeway's error codes; the words never quote the inputs.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "id": {"type": "string"},
        "capability": {"type": "string"},
        "cost": {"type": "number"},
        "model": {"$ref": "#/components/schemas/Model"},
    },
    "required": ["type", "title", "status", "detail", "code"],
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A call with the key of one under way gets that one's answer; nothing is kept after it.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128},
}
_DEADLINE = {
    "name": "Edgeway-Deadline-Ms",
    "in": "header",
    "description": "An answer is worth waiting for so long.",
    "schema": {"type": "integer", "minimum": 1, "maximum": MAX_DEADLINE_MS, "default": DEFAULT_DEADLINE_MS},
}


def document(cards: Iterable[Card], version: str, *, token: bool) -> dict[str, Any]:
    """The document; `token` where calls need a bearer token."""
    cards = sorted(cards, key=lambda card: (card.capability, card.side))
    schemas: dict[str, Any] = {"Problem": _PROBLEM, "Model": _MODEL, "Timings": _TIMINGS}
    paths = {full((card.side, card.capability)): {"post": _operation(card, schemas)} for card in cards}
    bearer = {"bearer": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Edgeway worker",
            "version": version,
            "description": "Capabilities of this worker. Each also answers under the end of its path, as far "
            "as one alone has it: `/summarize` for `/local/nlp/summarize`.",
        },
        "paths": paths,
        "components": {"schemas": schemas, **({"securitySchemes": bearer} if token else {})},
        **({"security": [{"bearer": []}]} if token else {}),
    }


def example(schema: dict[str, Any]) -> dict[str, Any]:
    """Inputs that a person may begin with: what is required, and what has a default."""
    found: dict[str, Any] = {}
    required: Sequence[str] = schema.get("required", ())
    for name, about in schema.get("properties", {}).items():
        if isinstance(about, dict) and "default" in about:
            found[name] = about["default"]
        elif name in required:
            found[name] = _value(about)
    return found


def _operation(card: Card, schemas: dict[str, Any]) -> dict[str, Any]:
    slug = re.sub(r"[^A-Za-z0-9._-]", ".", f"{card.side}.{card.capability}")
    inputs = _moved({**_OBJECT, **card.input_schema}, slug, schemas)
    schemas[f"{slug}.inputs"] = inputs
    schemas[f"{slug}.output"] = _moved(card.output_schema, slug, schemas)
    text = str(card.input_schema.get("description") or card.description)
    facts = [
        f"{name}: {value}"
        for name, value in (
            ("Model", f"{card.model} {card.version}"),
            ("Licence", card.licence),
            ("Source", card.source),
            ("Quality", card.quality),
        )
        if value
    ]
    return {
        "operationId": slug,
        "summary": card.description or card.capability,
        "description": "\n\n".join((text, *facts)).strip(),
        "tags": [card.capability.partition("/")[0]],
        "parameters": [_KEY, _DEADLINE],
        "requestBody": {"required": True, "content": _body(slug, card)},
        "responses": {"200": _answer(slug), **_problems()},
    }


def _body(slug: str, card: Card) -> dict[str, Any]:
    plain = {"$ref": f"#/components/schemas/{slug}.inputs"}
    whole = {
        "type": "object",
        "description": "Inputs with what stands beside them.",
        "properties": {
            "inputs": plain,
            "params": _OBJECT,
            "deadline_ms": {"type": "integer", "minimum": 1, "maximum": MAX_DEADLINE_MS},
            "id": {"type": "string", "minLength": 1, "maxLength": 128},
            "max_batch": {"type": "integer", "minimum": 1},
        },
        "required": ["inputs"],
        "additionalProperties": False,
    }
    content: dict[str, Any] = {
        "application/json": {"schema": {"anyOf": [plain, whole]}, "example": example(card.input_schema)},
        "application/msgpack": {"schema": {"anyOf": [plain, whole]}},
    }
    names = card.input_schema.get("properties", {})
    if "text" in names:
        content["text/plain"] = {"schema": {"type": "string"}}
    if "image" in names:
        content["image/*"] = {"schema": {"type": "string", "format": "binary"}}
    return content


def _answer(slug: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "capability": {"type": "string"},
            "output": {"$ref": f"#/components/schemas/{slug}.output"},
            "confidence": {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}]},
            "cost": {"type": "number"},
            "usage": {"type": "object", "additionalProperties": {"type": "number"}},
            "model": {"$ref": "#/components/schemas/Model"},
            "timings": {"$ref": "#/components/schemas/Timings"},
        },
        "required": ["id", "capability", "output", "confidence", "cost", "model", "timings"],
    }
    content = {"application/json": {"schema": schema}, "application/msgpack": {"schema": schema}}
    return {"description": "The answer; bytes in JSON are base64", "content": content}


def _problems() -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": text, "content": content} for status, text in _PROBLEMS.items()}


def _moved(schema: dict[str, Any], slug: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """`schema` with its definitions moved to the components: in a whole document `#/$defs` is its root's."""
    for name, inner in schema.get("$defs", {}).items():
        schemas[f"{slug}.{name}"] = _pointed(inner, slug)
    moved: dict[str, Any] = _pointed({k: v for k, v in schema.items() if k != "$defs"}, slug)
    return moved


def _pointed(found: Any, slug: str) -> Any:
    if isinstance(found, dict):
        return {
            key: f"#/components/schemas/{slug}.{value.removeprefix(_REF)}"
            if key == "$ref" and isinstance(value, str) and value.startswith(_REF)
            else _pointed(value, slug)
            for key, value in found.items()
        }
    return [_pointed(each, slug) for each in found] if isinstance(found, list) else found


def _value(about: Any) -> Any:
    if not isinstance(about, dict):
        return None
    if choices := about.get("enum"):
        return choices[0]
    kinds = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "array": [], "object": {}}
    return kinds.get(str(about.get("type")))
