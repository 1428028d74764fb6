"""JSON Schemas of Python types, as cards carry them."""

from __future__ import annotations

from typing import Any

import msgspec

_REF = "#/$defs/"


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type, its top spelt out; what that refers to stands under `$defs`. Empty where the
    type has none.
    """
    try:
        schema = msgspec.json.schema(kind)
    except (TypeError, RecursionError):
        return {}
    name = str(schema.get("$ref", "")).removeprefix(_REF)
    definitions = schema.get("$defs", {})
    if name not in definitions:
        return dict(schema)
    top = dict(definitions[name])
    others = {key: value for key, value in definitions.items() if key != name or _refers(definitions, name)}
    return {**top, "$defs": others} if others else top


def told(error: msgspec.ValidationError, root: str) -> str:
    """The words of a checker, without any value that it quotes: `Expected ... - at inputs.text`."""
    # msgspec quotes the value only in "Invalid enum value 'x'", "Invalid value 'x'" and where a pattern is
    # not met.
    text, _, path = str(error).partition(" - at ")
    place = path.strip("`").replace("$", root, 1)
    safe = (
        text
        if text.startswith(("Expected `", "Object missing required field"))
        else "a value is not allowed here"
    )
    return f"{safe} - at {place}" if place else safe


def _refers(found: Any, name: str) -> bool:
    """Whether anything within refers to `name`: a type that holds itself."""
    if isinstance(found, dict):
        return found.get("$ref") == _REF + name or any(_refers(value, name) for value in found.values())
    return isinstance(found, list) and any(_refers(value, name) for value in found)
