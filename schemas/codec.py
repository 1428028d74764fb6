"""Messages to bytes and back, in msgpack or JSON, with limits checked before memory is spent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NoReturn, TypeVar, overload

import msgspec

from schemas.bounds import TENANT_WORDS
from schemas.checks import check_message
from schemas.choices import choices_at, located
from schemas.errors import Malformed, TooLarge, UnsupportedVersion
from schemas.formats import decoder, format_of, read_head
from schemas.ids import check_id
from schemas.limits import FREE_MSGPACK, MAX_MEMORY, MAX_RECORD_BYTES, check_size
from schemas.messages import VERSION, Format, Message, Request
from schemas.peek import peek_id
from schemas.values import MAX_DEPTH, all_finite, all_fit

__all__ = [
    "MAX_DEPTH",
    "MAX_RECORD_BYTES",
    "decode",
    "decode_request",
    "digest_of",
    "encode",
    "format_of",
    "peek_id",
]

M = TypeVar("M", bound=Message)

_OWN_MEMORY = MAX_MEMORY + 2**19
# A plan holds its request and some more: whatever decode_request lets through must stay readable inside.

_READ_VERSIONS = (VERSION - 1, VERSION)
_REQUEST_KEYS = frozenset((*Request.__struct_encode_fields__, "type"))
_PRIVACY = re.compile(r"privacy([_\- ]?level)?", re.IGNORECASE)
# `Privacy` folded into the inputs would send to the cloud what its producer declared private.

_QUOTED = re.compile(r"'.*'", re.DOTALL)
_SURROGATE = "a text with half a surrogate pair, which is no character; send the whole pair or leave it out"
_ERRORS = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)
_PACK = msgspec.msgpack.Encoder().encode

_KINDS = {
    type(None): "null",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
}
_ENCODERS: dict[Format, Callable[[Any], bytes]] = {
    "msgpack": _PACK,
    "json": msgspec.json.Encoder().encode,
}
_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))
_NINETEEN = b"0" * 19
_CANONICAL = msgspec.msgpack.Encoder(order="deterministic").encode


def encode(message: Message, fmt: Format = "msgpack") -> bytes:
    """The record of `message`. JSON writes bytes as base64 text.

    Raises:
        Malformed: a value that no reader could decode: NaN or an infinity in JSON, a lone surrogate, an
            integer beyond 64 bits, another type than the builtin ones, too deep.
        TooLarge: more than MAX_RECORD_BYTES, or so many values that `decode` would refuse them.
    """
    check_message(message)
    try:
        raw = _ENCODERS[fmt](message)
        if fmt == "json":
            _check_integers(raw, message)
    except _ERRORS as error:
        raise Malformed(f"{_name(type(message))} cannot be written: {_reason(error)}") from None
    # The JSON encoder writes NaN as null without a word; only what holds a null needs the walk.
    if fmt == "json" and b"null" in raw and not all_finite(message):
        raise Malformed(
            f"{_name(type(message))} holds NaN or an infinity, which JSON cannot say; send msgpack or null"
        )
    if len(raw) > MAX_RECORD_BYTES:
        raise TooLarge(
            f"{_name(type(message))} takes {len(raw)} bytes; at most {MAX_RECORD_BYTES} fit a record"
        )
    # What is written and cannot be read is lost: nobody would be told.
    try:
        check_size(raw, fmt == "json", _OWN_MEMORY)
    except Malformed as error:
        raise TooLarge(str(error)) from None
    return raw


@overload
def decode(raw: bytes, kind: type[M], fmt: Format | None = None) -> M: ...
@overload
def decode(raw: bytes, kind: Any, fmt: Format | None = None) -> Any: ...
def decode(raw: bytes, kind: Any, fmt: Format | None = None) -> Any:
    """The message in `raw`; `kind` is a Message class or a union of some (`JoinEvent`). Without `fmt` it is
    sniffed.

    Raises:
        TooLarge: more than MAX_RECORD_BYTES.
        UnsupportedVersion: another version than VERSION - 1 or VERSION.
        Malformed: anything else that is no such message.
    """
    fmt = fmt or format_of(None, raw)
    if len(raw) > FREE_MSGPACK:
        check_size(raw, fmt == "json", _OWN_MEMORY)
    try:
        message = decoder(kind, fmt)(raw)
        if fmt == "json":
            _check_integers(raw, message)
    except _ERRORS as error:
        _refuse(raw, fmt, kind, error)
    if message.v not in _READ_VERSIONS:
        raise _unsupported(message.v)
    check_message(message)
    return message


def decode_request(raw: bytes, fmt: Format | None = None) -> Request:
    """A request as any producer may write it: unknown top-level keys fold into `inputs`, `privacy_level` is
    `privacy`.

    Raises: as `decode`.
    """
    fmt = fmt or format_of(None, raw)
    if len(raw) > FREE_MSGPACK:
        check_size(raw, fmt == "json", MAX_MEMORY)
    try:
        found = decoder(Any, fmt)(raw)
        if type(found) is not dict:
            raise Malformed(f"a request is a map, not {_KINDS.get(type(found), type(found).__name__)}")
        if not _REQUEST_KEYS.issuperset(found):
            found = _folded(found)
        request = msgspec.convert(found, Request)
        if fmt == "json":
            _check_integers(raw, found)
    except _ERRORS as error:
        _refuse(raw, fmt, Request, error)
    if request.v not in _READ_VERSIONS:
        raise _unsupported(request.v)
    if request.id is not None:
        check_id(request.id)
    check_message(request)
    return request


def digest_of(request: Request) -> str:
    """Digest of what is asked (32 hex digits): all but who asks, under which id, by when, and where the
    answer goes.
    """
    parts = (
        request.task,
        request.query,
        request.inputs,
        request.params,
        request.privacy,
        request.max_cost,
        request.claim,
    )
    # OpenSSL's sha256 takes half the time of blake2b for the 3 KB of an image.
    return sha256(_CANONICAL(parts)).hexdigest()[:32]


def _check_integers(raw: bytes, found: Any) -> None:
    """Refuses integers beyond 64 bits: JSON has them, but what is read must be writable in msgpack too."""
    if len(raw) <= FREE_MSGPACK:
        # 2 us for 784 numbers.
        _PACK(found)
    elif _NINETEEN in raw.translate(_DIGITS) and not all_fit(found):
        raise Malformed("an integer is beyond 64 bits; send it as text")


def _folded(found: dict[Any, Any]) -> dict[str, Any]:
    """`found` with its unknown keys moved into `inputs`; a name given in both places is ambiguous."""
    known: dict[str, Any] = {}
    loose: dict[str, Any] = {}
    for key, value in found.items():
        if type(key) is not str:
            raise Malformed("a request has a key that is no string")
        if key not in _REQUEST_KEYS and _PRIVACY.fullmatch(key) and key != "privacy_level":
            raise Malformed("a key is nearly `privacy`; write `privacy`, or move it into `inputs`")
        (known if key in _REQUEST_KEYS else loose)[key] = value
    level = loose.pop("privacy_level", None)
    if level is not None:
        if type(level) is not str or level.lower() not in ("high", "normal", "low"):
            raise Malformed("privacy_level is none of HIGH, NORMAL, LOW")
        # Declared twice, the stricter word counts.
        if level.lower() == "high" or "privacy" not in known:
            known["privacy"] = "high" if level.lower() == "high" else "normal"
    inputs = known.get("inputs") or {}
    if loose and type(inputs) is dict:
        if not loose.keys().isdisjoint(inputs):
            raise Malformed("a key stands both beside `inputs` and in it; give it once")
        known["inputs"] = {**inputs, **loose}
    return known


def _refuse(raw: bytes, fmt: Format, kind: Any, error: Exception) -> NoReturn:
    head = read_head(raw, fmt)
    if head is not None and type(head.v) is int and head.v not in _READ_VERSIONS:
        raise _unsupported(head.v) from None
    if isinstance(error, Malformed):
        raise error
    why = _SURROGATE if fmt == "json" and _has_lone_surrogate(raw, error) else _reason(error, kind)
    raise Malformed(f"not a {_name(kind)} in {fmt}: {why}") from None


def _unsupported(version: int) -> UnsupportedVersion:
    return UnsupportedVersion(
        f"message has version {version}; this build reads {_READ_VERSIONS[0]} to {VERSION}"
    )


def _has_lone_surrogate(raw: bytes, error: Exception) -> bool:
    """Whether that is the error: of half a pair at the end of a text the decoder says that input is
    missing."""
    if "surrogate" in str(error):
        return True
    if "truncated" not in str(error) or b"\\u" not in raw:
        return False
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _reason(error: Exception, kind: Any = None) -> str:
    """The words of a decoder, without any value that it quotes from the payload."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    if isinstance(error, UnicodeError):
        return "text that is no UTF-8 (a lone surrogate or odd bytes)"
    why = _QUOTED.sub("'...'", str(error))[:200]
    if kind is not None and why.startswith("Invalid enum value"):
        known = choices_at(kind, located(why)[1])
        return f"{why}; give one of {', '.join(known)}" if known else why
    if "matching regex" in why and why.endswith(".tenant`"):
        return why.replace("matching regex '...'", f"of {TENANT_WORDS}")
    return why


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind).replace("schemas.messages.", "").replace(
        "schemas.cards.", ""
    )
