"""The id of a record that cannot be decoded, so that its caller gets an answer. Best effort, bounded work."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

import msgspec

from schemas import headers as headers_module
from schemas.bounds import Tenant
from schemas.errors import Malformed
from schemas.formats import format_of, read_head
from schemas.ids import check_id
from schemas.limits import MAX_RECORD_BYTES, token

_SCAN_BYTES = 64 * 2**10
_MAX_TOKENS = 10_000
_JSON_PIECE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}\[\]:]', re.DOTALL)


def peek_id(raw: bytes, headers: Iterable[tuple[str, bytes | None]] | None) -> str | None:
    """The id in `raw` where its head can be read, else the `ce_id` header, else one found in the damaged
    bytes.

    The head comes first: answered under another id, the caller who waits for its own would wait in vain.
    """
    known = headers_module.read(headers or ())
    fmt = format_of(known.content_type, raw)
    if len(raw) <= 2 * MAX_RECORD_BYTES:
        head = read_head(raw, fmt)
        if head is not None and _valid(head.id):
            return str(head.id)
    if _valid(known.ce_id):
        return known.ce_id
    found = _json_id(raw[:_SCAN_BYTES]) if fmt == "json" else _msgpack_id(raw[:_SCAN_BYTES])
    return found if _valid(found) else None


def peek_tenant(raw: bytes, headers: Iterable[tuple[str, bytes | None]] | None) -> str | None:
    """The tenant in the head of `raw`; None where the head cannot be read, or names none that is valid."""
    if len(raw) > 2 * MAX_RECORD_BYTES:
        return None
    head = read_head(raw, format_of(headers_module.read(headers or ()).content_type, raw))
    try:
        return None if head is None else msgspec.convert(head.tenant, Tenant | None)
    except msgspec.ValidationError:
        return None


def _valid(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf-8")
        check_id(value)
    except (Malformed, UnicodeEncodeError):
        return False
    return True


def _json_id(raw: bytes) -> str | None:
    """The text after the first `"id":` of the outermost object."""
    depth = 0
    before = b""
    awaited = False
    end = 0
    for match in islice(_JSON_PIECE.finditer(raw), _MAX_TOKENS):
        piece = match.group()
        if piece in b"{[":
            depth += 1
        elif piece in b"}]":
            depth -= 1
        elif piece == b":":
            awaited = depth == 1 and before == b'"id"'
            before, end = piece, match.end()
            continue
        elif awaited:
            # What follows an id that is a number is the next key: no id, and the same in every such record.
            return None if raw[end : match.start()].strip() else _text(piece)
        before, awaited = piece, False
    return None


def _text(piece: bytes) -> str | None:
    try:
        return msgspec.json.decode(piece, type=str)
    except (msgspec.MsgspecError, ValueError):
        return None


def _msgpack_id(raw: bytes) -> str | None:
    """The text after the key `id` of the outermost map."""
    if not raw or not (0x80 <= raw[0] < 0x90 or raw[0] in (0xDE, 0xDF)):
        return None
    at = token(raw, 0).end
    steps = 0
    while at < len(raw) and steps < _MAX_TOKENS:
        is_id = raw[at : at + 3] == b"\xa2id"
        at = token(raw, at).end
        pending = 1
        start = at
        while pending and at < len(raw) and steps < _MAX_TOKENS:
            found = token(raw, at)
            at = found.end
            pending += found.children - 1
            steps += 1
        if is_id:
            return _packed_text(raw[start:at])
    return None


def _packed_text(raw: bytes) -> str | None:
    try:
        return msgspec.msgpack.decode(raw, type=str)
    except (msgspec.MsgspecError, ValueError):
        return None
