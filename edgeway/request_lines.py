"""Requests from the lines of a JSONL file and from flags: pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from schemas import codec, ids
from schemas.bounds import MAX_DEADLINE_MS, MAX_TASK, MAX_TOPIC, TENANT, TENANT_WORDS
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
        return BadLine(number, f"{exc}{hint_of(line)}")
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
    _check_flags(ask)
    inputs: dict[str, Any] = {}
    if ask.inputs is not None:
        try:
            said = json.loads(ask.inputs)
        except (ValueError, RecursionError) as exc:
            why = "nested too deep" if isinstance(exc, RecursionError) else exc
            raise ValueError(f"--inputs is no JSON: {why}") from exc
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


def hint_of(line: bytes) -> str:
    """The end of an error about a line that looks like a part of a JSON text that goes over several, or like
    an array."""
    return "; a file holds one JSON object a line" if line[:1] in b'["]}' or line == b"{" else ""


def _check_flags(ask: Ask) -> None:
    """What the decoder would refuse too, but without the flag's name."""
    texts = {"task": ask.task, "query": ask.query, "text": ask.text, "inputs": ask.inputs, **ask.fields}
    flags = [("--" + name.replace("_", "-"), value) for name, value in texts.items()]
    for flag, value in [*flags, *(("--input", pair) for pair in ask.pairs)]:
        if isinstance(value, str) and not _is_utf8(value):
            raise ValueError(f"{flag} is no UTF-8 text")
    given = ask.fields
    deadline, tenant, request_id = given.get("deadline_ms"), given.get("tenant"), given.get("id")
    if deadline is not None and not 1 <= deadline <= MAX_DEADLINE_MS:
        raise ValueError(f"--deadline-ms {deadline}: give 1 to {MAX_DEADLINE_MS} (10 minutes)")
    if tenant is not None and not re.match(TENANT, tenant):
        raise ValueError(f"--tenant {tenant!r}: give {TENANT_WORDS}")
    if request_id is not None:
        try:
            ids.check_id(request_id, "--id")
        except SchemaError as exc:
            raise ValueError(str(exc)) from exc
    for name, value, longest in (
        ("task", ask.task, MAX_TASK),
        ("reply-to", given.get("reply_to"), MAX_TOPIC),
    ):
        if value is not None and not 1 <= len(value) <= longest:
            raise ValueError(f"--{name}: give 1 to {longest} characters")


def _is_utf8(text: str) -> bool:
    # Bytes of an argument that are no UTF-8 come as lone surrogates.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
