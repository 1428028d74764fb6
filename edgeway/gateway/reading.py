"""A call's body and headers to the request that is sent."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request as Http

from edgeway.gateway.multipart import MOST_INLINE, FormReader, Part, add, check_inline, fields_of, file_value
from edgeway.gateway.problems import of_schema, refused
from edgeway.gateway.uploads import Uploads
from edgeway.roles.bodies import Held, each_chunk, read_body
from schemas.claims import INLINE_BYTES, as_value
from schemas.codec import decode_request
from schemas.errors import SchemaError
from schemas.limits import MAX_RECORD_BYTES
from schemas.messages import Format, Request
from workers.http.calls import DEADLINE, KEY, check_encoding, deadline_of, key_of, kind_of, too_large, wire_of
from workers.http.forms import Wire
from workers.http.problems import Refused

BODY_S = 10.0
FORM_S = 60.0
"""A form may take so long to arrive: it may be much larger than other bodies."""


class Asked(NamedTuple):
    """A request as it will be sent, the format it came in, and that of the answer."""

    request: Request
    fmt: Format
    wire: Wire


async def read_request(http: Http, held: Held, uploads: Uploads, caller: str | None) -> Asked:
    """The request in a body of JSON, msgpack or form data, with what the headers say; it has an id.

    Raises:
        Refused: it cannot be read. The words quote nothing of it.
    """
    content_type = http.headers.get("content-type", "")
    check_encoding(http.headers.get("content-encoding"))
    try:
        if content_type.lower().startswith("multipart/form-data"):
            body, fmt = await _form(http, held, uploads, caller, content_type), "msgpack"
        else:
            fmt = format_of_body(content_type)
            uploads.check_length(http.headers.get("content-length"), MAX_RECORD_BYTES)
            body = await read_body(http, held, most=MAX_RECORD_BYTES, within_s=BODY_S, too_large=too_large)
        request = with_headers(_decoded(body, fmt), http.headers)
    except SchemaError as error:
        raise of_schema(error) from None
    wire = wire_of("msgpack" if fmt == "msgpack" and body_is_msgpack(content_type) else "json", accept(http))
    return Asked(request, "json" if fmt == "json" else "msgpack", wire)


def with_headers(request: Request, headers: Mapping[str, str]) -> Request:
    """`request` with the id and the deadline of the headers, and an id in any case.

    Raises:
        Malformed: they differ from what it says.
    """
    return msgspec.structs.replace(
        request,
        id=key_of(headers.get(KEY), request.id) or uuid.uuid4().hex,
        deadline_ms=deadline_of(headers.get(DEADLINE), request.deadline_ms),
    )


def accept(http: Http) -> str:
    """The Accept header."""
    return http.headers.get("accept", "")


def body_is_msgpack(content_type: str) -> bool:
    """Whether the caller speaks msgpack."""
    return "msgpack" in content_type.lower()


def is_form_of_curl(content_type: str) -> bool:
    """Whether `curl -d` was not told what its body is."""
    return content_type.lower().partition(";")[0].strip() == "application/x-www-form-urlencoded"


def format_of_body(content_type: str) -> str:
    """`json` or `msgpack`. What `curl -d` calls its body without being told is read as JSON.

    Raises:
        Refused: 415.
    """
    if is_form_of_curl(content_type):
        return "json"
    kind = kind_of(content_type)
    if kind not in ("json", "msgpack"):
        raise Refused(
            "invalid_request",
            "a request is sent as application/json, application/msgpack or multipart/form-data",
            status=415,
            title="Wrong content type",
        )
    return kind


def _decoded(body: bytes, fmt: str) -> Request:
    if not body.strip():
        raise refused(
            "malformed", 'the body is empty; send a request, such as {"task": "...", "text": "..."}'
        )
    return decode_request(body, "json" if fmt == "json" else "msgpack")


async def _form(http: Http, held: Held, uploads: Uploads, caller: str | None, content_type: str) -> bytes:
    uploads.check_length(http.headers.get("content-length"), uploads.most_bytes)
    reader = FormReader(content_type)
    await each_chunk(
        http, held, reader.feed, most=uploads.most_bytes, within_s=FORM_S, too_large=uploads.too_large
    )
    found, files = fields_of(reader.parts())
    # Read before anything is kept: objects would be left of requests that are refused.
    named = decode_request(msgspec.msgpack.encode(found), "msgpack").tenant
    inputs = await _files(files, uploads, caller if caller is not None else named)
    if not inputs.keys().isdisjoint(found):
        raise refused("malformed", "a file has the name of another part, or of a key of the request")
    return msgspec.msgpack.encode({**found, **inputs})


async def _files(files: list[tuple[str, Part]], uploads: Uploads, tenant: str | None) -> dict[str, Any]:
    """Every file as an input: as it is where it is small, else by claim check."""
    if not uploads.stores:
        check_inline(part for _, part in files)
    inputs: dict[str, Any] = {}
    inline = 0
    for name, part in files:
        size = len(part.body)
        if uploads.stores and (size > INLINE_BYTES or inline + size > MOST_INLINE):
            claim = await uploads.put(bytes(part.body), part.content_type, tenant)
            add(inputs, name, as_value(claim))
        else:
            inline += size
            add(inputs, name, file_value(part))
    return inputs
