"""The two formats: which one a record is in, and decoders for both."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from schemas.messages import Format

_BOM = b"\xef\xbb\xbf"


class Head(msgspec.Struct):
    """The few keys that can be read where the rest cannot."""

    v: Any = None
    type: Any = None
    id: Any = None
    tenant: Any = None


def format_of(content_type: str | None, raw: bytes) -> Format:
    """The format by the `content-type` header; without one (or an unknown one), a first byte `{` means
    JSON.
    """
    if content_type:
        kind = content_type.partition(";")[0].strip().lower()
        if kind.endswith("json"):
            return "json"
        if kind.endswith("msgpack"):
            return "msgpack"
    first = raw[:1]
    if first == b"{":
        return "json"
    if first in (b" ", b"\t", b"\r", b"\n", _BOM[:1]):
        start = raw[:256].removeprefix(_BOM).lstrip()
        return "json" if start[:1] == b"{" else "msgpack"
    return "msgpack"


@lru_cache(maxsize=64)
def decoder(kind: Any, fmt: Format) -> Callable[[bytes], Any]:
    """The decoder of `kind` (a type, a union of types or Any), made once."""
    if fmt == "msgpack":
        return msgspec.msgpack.Decoder(kind).decode
    decode_json = msgspec.json.Decoder(kind).decode
    return lambda raw: decode_json(raw[3:] if raw[:1] == b"\xef" and raw.startswith(_BOM) else raw)


def read_head(raw: bytes, fmt: Format) -> Head | None:
    """The head of a record that may be no message; None where it is not even a map of that format."""
    try:
        head: Head = decoder(Head, fmt)(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return head
