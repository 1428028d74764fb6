"""Objects as values, by their content type, and values as objects. Pure."""

from __future__ import annotations

import mimetypes
import re
from typing import Any

import msgspec

from schemas.errors import Malformed
from schemas.limits import json_memory, msgpack_memory
from schemas.values import check_value, least_size
from streams.claims.errors import ObjectTooLarge, ObjectUnreadable
from streams.claims.ports import MAX_OBJECT_BYTES

BYTES = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
MSGPACK = "application/msgpack"
MOST_MEMORY = 256 * 1024 * 1024
"""What an object of values (JSON, msgpack) may take once decoded."""

_TYPE = re.compile(r"([a-z0-9.+-]{1,64})/([a-z0-9.+-]{1,64})(?:; ?charset=([a-z0-9-]{1,20}))?", re.IGNORECASE)
_NAMES = mimetypes.MimeTypes(filenames=())
_OTHERS = (BYTES, TEXT, JSON, MSGPACK, "application/ld+json", "text/markdown", "image/webp", "image/avif")
_KNOWN = frozenset((*_OTHERS, "image/heic", "audio/wav", "audio/flac", "audio/ogg")).union(
    *(names.values() for names in _NAMES.types_map)
)
_MSGPACK = frozenset((MSGPACK, "application/x-msgpack", "application/vnd.msgpack"))
_ERRORS = (msgspec.MsgspecError, UnicodeError, ValueError, TypeError, OverflowError, RecursionError)


def plain_type(content_type: str | None) -> str | None:
    """`content_type` where it is one and nothing else."""
    found = _TYPE.fullmatch(content_type) if content_type else None
    return found[0].lower() if found else None


def known_type(content_type: str | None) -> str | None:
    """`content_type` where it is one that everybody knows: a text of the caller's that nobody has examined
    may stand there as well."""
    found = _TYPE.fullmatch(content_type) if content_type and content_type != TEXT else None
    kind = f"{found[1]}/{found[2]}".lower() if found else content_type
    return kind if kind in _KNOWN else None


def value_of(data: bytes, content_type: str | None) -> Any:
    """What an object holds: a text where it is `text/*`, the value in JSON or msgpack, else its bytes.

    Raises:
        ObjectUnreadable: it is not what its content type says.
        ObjectTooLarge: its values would take more than MOST_MEMORY.
    """
    found = _TYPE.fullmatch(content_type or "")
    kind = f"{found[1]}/{found[2]}".lower() if found else ""
    try:
        if kind.startswith("text/"):
            return data.decode((found[3] if found else None) or "utf-8")
        if kind == JSON or kind.endswith("+json"):
            return _checked(data, msgspec.json.decode, json_memory)
        if kind in _MSGPACK:
            return _checked(data, msgspec.msgpack.decode, msgpack_memory)
    except LookupError as error:
        raise ObjectUnreadable("an object is a text in an unknown charset; write utf-8") from error
    except _ERRORS as error:
        raise ObjectUnreadable(f"an object is no {kind} ({type(error).__name__})") from None
    return data


def object_of(value: Any, content_type: str | None = None) -> tuple[bytes, str]:
    """`value` as an object, and its content type: that given where it fits the value, else one of the four.

    Raises:
        ObjectTooLarge: more than MAX_OBJECT_BYTES.
        Malformed: a value that no reader could decode.
    """
    given = plain_type(content_type)
    if least_size(value, MAX_OBJECT_BYTES) > MAX_OBJECT_BYTES:
        raise ObjectTooLarge(f"a value takes more than the {MAX_OBJECT_BYTES} bytes of an object")
    if isinstance(value, bytes):
        return value, BYTES if given is None or _is_value(given) else given
    if isinstance(value, str):
        return value.encode(), given if given and given.startswith(
            "text/"
        ) and "charset" not in given else TEXT
    check_value(value, "an object")
    try:
        if given is not None and (given == JSON or given.endswith("+json")):
            return msgspec.json.encode(value), given
        return msgspec.msgpack.encode(value), MSGPACK
    except _ERRORS as error:
        raise Malformed(f"a value cannot be written as an object ({type(error).__name__})") from None


def _is_value(kind: str) -> bool:
    return kind.startswith("text/") or kind == JSON or kind.endswith("+json") or kind in _MSGPACK


def _checked(data: bytes, decode: Any, memory: Any) -> Any:
    if memory(data, MOST_MEMORY) > MOST_MEMORY:
        raise ObjectTooLarge("an object holds too many values; send numbers as bytes, or less at once")
    value = decode(data)
    check_value(value, "an object")
    return value
