"""Requests to calls.

The body is a JSON (or msgpack) object. Either its keys are the inputs, `{"text": "..."}`, or it is
`{"inputs": {...}}` with nothing beside it but `params`, `deadline_ms`, `id` and `max_batch`. A text body is
the input `text`, an image the input `image`.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any

import msgspec

from schemas.bounds import DEFAULT_DEADLINE_MS, MAX_DEADLINE_MS
from schemas.errors import Malformed, SchemaError, TooLarge
from schemas.ids import MAX_ID_BYTES, check_id
from schemas.limits import MAX_RECORD_BYTES, check_size
from schemas.values import all_finite, check_value
from streams.tracing import parse
from workers.backends import Row
from workers.backends.json_schema import told
from workers.http.forms import MSGPACK, Call, Wire
from workers.http.problems import Refused

DEADLINE = "edgeway-deadline-ms"
KEY = "idempotency-key"

_JSON_TYPES = ("", "application/json", "text/json")
_MSGPACK_TYPES = (MSGPACK, "application/x-msgpack", "application/vnd.msgpack")
_TYPES = "application/json, application/msgpack, text/plain (input `text`) and image/* (input `image`)"
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-8 and UTF-16."""
_RESERVED = frozenset(("inputs", "params", "deadline_ms", "id", "max_batch"))


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    inputs: dict[str, Any] = {}
    params: dict[str, Any] = {}
    deadline_ms: Annotated[int, msgspec.Meta(ge=1, le=MAX_DEADLINE_MS)] | None = None
    id: str | None = None
    max_batch: Annotated[int, msgspec.Meta(ge=1)] | None = None


def check_length(text: str | None) -> None:
    """Refuse a body whose Content-Length is beyond what is read.

    Raises:
        Refused: too large, or no number.
    """
    if text is None:
        return
    if not (text.isascii() and text.isdigit()):
        raise Refused("malformed", "Content-Length is no number")
    if len(text) > 18 or int(text) > MAX_RECORD_BYTES:
        raise too_large()


def check_encoding(text: str | None) -> None:
    """Refuse a body that is compressed.

    Raises:
        Refused: 415.
    """
    if text is not None and text.strip().lower() not in ("", "identity"):
        detail = "a body is read uncompressed alone; send it without Content-Encoding"
        raise Refused("invalid_request", detail, status=415, title="Compressed")


def too_large() -> Refused:
    """The refusal of a body beyond what a record takes."""
    return Refused("too_large", f"a body has at most {MAX_RECORD_BYTES} bytes, as a record has; send less")


def kind_of(content_type: str | None) -> str:
    """The media type of the body: `json`, `msgpack`, `text` or `image`.

    Raises:
        Refused: 415, where it is none that is read.
    """
    kind, _, rest = (content_type or "").partition(";")
    kind = kind.strip().lower()
    if kind in _JSON_TYPES or kind.endswith("+json"):
        return "json"
    if kind in _MSGPACK_TYPES:
        return "msgpack"
    if kind == "text/plain":
        charset = rest.replace(" ", "").lower().partition("charset=")[2].strip('"')
        if charset in ("", "utf-8", "utf8", "us-ascii"):
            return "text"
        raise Refused("invalid_request", "a text is read as UTF-8 alone", status=415, title="Wrong charset")
    if kind.startswith("image/"):
        return "image"
    hint = " (curl: -H 'Content-Type: application/json')" if "urlencoded" in kind else ""
    raise Refused(
        "invalid_request",
        f"this content type is not read{hint}; send {_TYPES}",
        status=415,
        title="Wrong content type",
    )


def read_call(kind: str, body: bytes, headers: Mapping[str, str]) -> Call:
    """The call in a request; `headers` by their names in small letters.

    Raises:
        Refused: it cannot be read. The words quote nothing of it.
    """
    try:
        asked = _asked(kind, body)
        key = key_of(headers.get(KEY), asked.id)
        deadline = deadline_of(headers.get(DEADLINE), asked.deadline_ms) or DEFAULT_DEADLINE_MS
        check_value(asked.inputs, "inputs")
        check_value(asked.params, "params")
        if kind == "msgpack" and not all_finite((asked.inputs, asked.params)):
            raise Malformed("inputs hold NaN or an infinity; send null, or leave it out")
    except TooLarge:
        raise too_large() from None
    except SchemaError as error:
        raise Refused(error.code, str(error)) from None
    return Call(
        row=Row(asked.inputs, asked.params),
        id=key,
        deadline_ms=deadline,
        max_batch=asked.max_batch,
        size=len(body),
        digest=sha256(kind.encode() + b"\0" + body).digest(),
        traceparent=_traceparent(headers.get("traceparent")),
        wire=wire_of(kind, headers.get("accept", "")),
    )


def _traceparent(text: str | None) -> str | None:
    context = parse(text)
    return None if context is None else str(context)


def _asked(kind: str, body: bytes) -> _Envelope:
    if kind == "text":
        try:
            return _Envelope(inputs={"text": body.decode()})
        except UnicodeDecodeError:
            raise Malformed("the text is no UTF-8") from None
    if kind == "image":
        return _Envelope(inputs={"image": body})
    found = _decoded(kind, body)
    if type(found) is not dict:
        raise Malformed('the body is an object, such as {"text": "..."}')
    if type(found.get("inputs")) is not dict:
        return _Envelope(inputs=found)
    if not _RESERVED.issuperset(found):
        raise Malformed(
            "beside `inputs` stand `params`, `deadline_ms`, `id` and `max_batch` alone; put inputs into it"
        )
    try:
        return msgspec.convert(found, _Envelope)
    except msgspec.ValidationError as error:
        raise Malformed(told(error, "body")) from None


def _decoded(kind: str, body: bytes) -> Any:
    check_size(body, kind == "json")
    if not body.strip():
        raise Malformed('the body is empty; send an object, such as {"text": "..."}')
    try:
        found = msgspec.json.decode(body) if kind == "json" else msgspec.msgpack.decode(body)
        # What is read must be writable: no integers beyond 64 bits, no half surrogate pairs.
        msgspec.msgpack.encode(found)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise Malformed(f"the body is no {kind} that can be read{_why(error, body)}") from None
    return found


def _why(error: Exception, body: bytes) -> str:
    words = str(error)
    where = words.partition("(byte ")[2].rstrip(")")
    if body.startswith(_MARKS):
        return ": it begins with a byte order mark; send UTF-8 without one"
    if where.isdigit():
        return f" at byte {where}"
    if isinstance(error, RecursionError):
        return ": it nests too deep"
    if isinstance(error, OverflowError) or "out of range" in words:
        return ": it holds a number beyond 64 bits"
    return ": it ends too early, or holds half a surrogate pair" if "truncated" in words else ""


def key_of(header: str | None, field: str | None) -> str | None:
    """The id of a call, from its Idempotency-Key or its body.

    Raises:
        Malformed: they differ, or it is no id.
    """
    # The header may be a quoted string, as its draft standard has it.
    given = _as_sent(header).strip().strip('"') if header is not None else None
    if given is not None and field is not None and given != field:
        raise Malformed("Idempotency-Key and `id` differ; give one of them")
    key = given if given is not None else field
    if key is None:
        return None
    if not key.isprintable():
        raise Malformed(f"a key has 1 to {MAX_ID_BYTES} printable characters")
    return check_id(key, "the key")


def _as_sent(header: str) -> str:
    """The text of a header, which was read as Latin-1; clients send UTF-8."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


def deadline_of(header: str | None, field: int | None) -> int | None:
    """The sooner deadline of header and body in ms, None where neither gives one.

    Raises:
        Malformed: the header is no deadline.
    """
    if header is None:
        return field
    text = header.strip()
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:18]) <= MAX_DEADLINE_MS):
        raise Malformed(f"Edgeway-Deadline-Ms is a whole number of ms from 1 to {MAX_DEADLINE_MS}")
    return int(text) if field is None else min(int(text), field)


def wire_of(kind: str, accept: str) -> Wire:
    """The format of the answer to a body of `kind`."""
    wanted = accept.lower()
    if "msgpack" in wanted:
        return "msgpack"
    return "msgpack" if kind == "msgpack" and "json" not in wanted else "json"
