"""Requests from the lines of a JSONL file and from flags: pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from schemas import codec
from schemas.errors import SchemaError
from schemas.messages import Request


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no request, and why. The line itself is not quoted: it may be private."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """What the flags of `send` say. `pairs` are KEY=VALUE, values in JSON where they parse as it."""

    task: str | None = None
    query: str | None = None
    text: str | None = None
    pairs: Sequence[str] = ()
    inputs: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)


def parse_line(number: int, raw: bytes) -> Request | BadLine | None:
    """The request of one line; None for an empty one."""
    line = raw.strip().removeprefix(b"\xef\xbb\xbf")
    if not line:
        return None
    try:
        request = codec.decode_request(line, "json")
    except SchemaError as exc:
        return BadLine(number, str(exc))
    if request.task is None and request.query is None:
        return BadLine(number, "neither task nor query; give one of them")
    return request


def request_of(ask: Ask) -> Request:
    """The request of the flags.

    Raises:
        ValueError: they make none; the text says which and why.
    """
    if ask.task is None and ask.query is None:
        raise ValueError("what is asked? give --task NAME, --query PHRASE, or --file FILE")
    inputs: dict[str, Any] = {}
    if ask.inputs is not None:
        try:
            said = json.loads(ask.inputs)
        except ValueError as exc:
            raise ValueError(f"--inputs is no JSON: {exc}") from exc
        if not isinstance(said, dict):
            raise ValueError('--inputs is no JSON object; give for example \'{"text": "where is my card"}\'')
        inputs |= said
    for pair in ask.pairs:
        name, mark, value = pair.partition("=")
        if not name or not mark:
            raise ValueError(f"--input {pair!r} is no NAME=VALUE")
        inputs[name] = _value(value)
    if ask.text is not None:
        inputs["text"] = ask.text
    given = {key: value for key, value in ask.fields.items() if value is not None}
    raw = msgspec.msgpack.encode({"task": ask.task, "query": ask.query, "inputs": inputs, **given})
    try:
        return codec.decode_request(raw, "msgpack")
    except SchemaError as exc:
        raise ValueError(str(exc)) from exc


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
