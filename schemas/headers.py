"""Record headers: the CloudEvents 1.0 Kafka binding in binary mode, and W3C trace context."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from schemas.ids import MAX_ID_BYTES
from schemas.messages import Format

CONTENT_TYPE = "content-type"
CONTENT_TYPES: dict[Format, str] = {"msgpack": "application/msgpack", "json": "application/json"}
TYPE_PREFIX = "edgeway."
_MAX_VALUE_BYTES = 1024
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


class Headers(NamedTuple):
    """What a record's headers say; None where absent or unreadable. `ce_time` is RFC 3339 text."""

    content_type: str | None = None
    ce_id: str | None = None
    ce_type: str | None = None
    ce_source: str | None = None
    ce_time: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None


_PLACES = {
    name.replace("_", "-") if name == "content_type" else name: i for i, name in enumerate(Headers._fields)
}
_LIMITS = [{"ce_id": MAX_ID_BYTES, "tracestate": 512}.get(name, _MAX_VALUE_BYTES) for name in Headers._fields]
_TRACE_PLACE = _PLACES["traceparent"]
_NOTHING = Headers()


def build(
    message_type: str,
    id: str,  # noqa: A002
    source: str,
    fmt: Format = "msgpack",
    traceparent: str | None = None,
    tracestate: str | None = None,
    time_ms: int | None = None,
) -> list[tuple[str, bytes]]:
    """Headers of one record. `message_type` is the struct's tag (`request`), `source` the role
    (`edgeway/router`).
    """
    found = [*_constant(message_type, source, fmt), ("ce_id", id.encode("utf-8", "replace"))]
    if time_ms is not None:
        found.append(("ce_time", _time(time_ms)))
    if traceparent is not None:
        found.append(("traceparent", traceparent.encode("ascii", "replace")))
        if tracestate is not None:
            found.append(("tracestate", tracestate.encode("ascii", "replace")))
    return found


def read(headers: Iterable[tuple[str, bytes | None]]) -> Headers:
    """What `headers` say. Odd bytes, overlong values and malformed trace parents read as absent; the first of
    a name counts.
    """
    if not headers:
        return _NOTHING
    found: list[str | None] = [None] * len(_PLACES)
    for name, value in headers:
        place = _PLACES.get(name)
        if place is None:
            place = _PLACES.get(name.lower())
        if place is not None and value and found[place] is None:
            found[place] = _text(place, value)
    return Headers(*found)


def _text(place: int, value: bytes) -> str | None:
    if len(value) > _LIMITS[place]:
        return None
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if place == _TRACE_PLACE and not _TRACEPARENT.fullmatch(text):
        return None
    return text


@lru_cache(maxsize=256)
def _constant(message_type: str, source: str, fmt: Format) -> tuple[tuple[str, bytes], ...]:
    return (
        (CONTENT_TYPE, CONTENT_TYPES[fmt].encode()),
        ("ce_specversion", b"1.0"),
        ("ce_type", f"{TYPE_PREFIX}{message_type}".encode()),
        ("ce_source", source.encode("utf-8", "replace")),
    )


def _time(time_ms: int) -> bytes:
    seconds, ms = divmod(time_ms, 1000)
    return b"%b.%03dZ" % (_second(seconds), ms)


@lru_cache(maxsize=16)
def _second(seconds: int) -> bytes:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
