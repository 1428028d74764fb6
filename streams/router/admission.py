"""A record of `requests` into a request with an id, a digest, a deadline and its place in the log."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from schemas import codec, headers, ids
from schemas.bounds import DEFAULT_DEADLINE_MS
from schemas.errors import Malformed
from schemas.headers import Headers
from schemas.messages import Format, Request, RequestInfo, Verdict
from schemas.peek import peek_id, peek_tenant
from streams.delivery.records import Record
from streams.tracing.ids import admitted as traced


class Admitted(msgspec.Struct, frozen=True):
    """A request as it was read. `id` is the caller's, or derived if not `named`; `scope` has the tenant;
    `traceparent` is the caller's, or derived."""

    request: Request
    id: str
    named: bool
    scope: str
    digest: str
    fmt: Format
    headers: Headers
    traceparent: str
    accepted: int
    place: str


def admit(record: Record, trace_sample: float = 0.0) -> Admitted:
    """Read a record. `trace_sample` is the share of requests that are traced where no caller says it.

    Raises:
        Malformed: bytes that are no request.
    """
    value = record.value or b""
    known = headers.read(record.headers)
    fmt = codec.format_of(known.content_type, value)
    request = codec.decode_request(value, fmt)
    named = request.id is not None
    request_id = derived_id(record) if request.id is None else request.id
    scope = ids.scoped(request.tenant, request_id)
    return Admitted(
        request=request,
        id=request_id,
        named=named,
        scope=scope,
        digest=codec.digest_of(request),
        fmt=fmt,
        headers=known,
        traceparent=traced(known.traceparent, scope, record.timestamp, trace_sample),
        accepted=record.timestamp,
        place=f"{record.topic}/{record.partition}/{record.offset}",
    )


def derived_id(record: Record) -> str:
    """The id of a request that names none."""
    return ids.derived(record.topic, record.partition, record.offset, record.timestamp)


def info_of(
    admitted: Admitted, verdict: Verdict, task: str | None, deadline_ms: int | None, as_id: str | None = None
) -> RequestInfo:
    """What the aggregator must know. `deadline_ms` is the task's default, `as_id` an id to answer under."""
    request, known = admitted.request, admitted.headers
    allowed = request.deadline_ms or deadline_ms or DEFAULT_DEADLINE_MS
    return RequestInfo(
        id=as_id or admitted.id,
        accepted=admitted.accepted,
        deadline=admitted.accepted + allowed,
        task=task,
        tenant=request.tenant,
        reply_to=request.reply_to,
        reply_format=admitted.fmt,
        privacy=verdict,
        digest=admitted.digest,
        traceparent=admitted.traceparent,
        tracestate=known.tracestate,
    )


def info_of_unreadable(record: Record, trace_sample: float = 0.0) -> RequestInfo:
    """What can be read of a record that is no request, so that its caller gets an answer.

    Raises:
        Malformed: no id can be read.
    """
    value = record.value or b""
    request_id = peek_id(value, record.headers)
    if request_id is None:
        raise Malformed("no id can be read")
    known = headers.read(record.headers)
    tenant = peek_tenant(value, record.headers)
    scope = ids.scoped(tenant, request_id)
    return RequestInfo(
        id=request_id,
        tenant=tenant,
        accepted=record.timestamp,
        deadline=record.timestamp + DEFAULT_DEADLINE_MS,
        reply_format=codec.format_of(known.content_type, value),
        # Of the bytes: without one, the mended request under the same id was taken for this one again.
        digest=blake2b(value, digest_size=16).hexdigest(),
        traceparent=traced(known.traceparent, scope, record.timestamp, trace_sample),
        tracestate=known.tracestate,
    )
