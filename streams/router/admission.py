"""A record of `requests` into a request with an id, a digest, a deadline and its place in the log."""

from __future__ import annotations

import msgspec

from schemas import codec, headers, ids
from schemas.headers import Headers
from schemas.messages import Format, Request, RequestInfo, Verdict
from streams.delivery.records import Record

DEFAULT_DEADLINE_MS = 30_000


class Admitted(msgspec.Struct, frozen=True):
    """A request as it was read. `id` is the caller's, or derived if not `named`; `scope` has the tenant."""

    request: Request
    id: str
    named: bool
    scope: str
    digest: str
    fmt: Format
    headers: Headers
    accepted: int
    place: str


def admit(record: Record) -> Admitted:
    """Read a record.

    Raises:
        Malformed: bytes that are no request.
    """
    value = record.value or b""
    known = headers.read(record.headers)
    fmt = codec.format_of(known.content_type, value)
    request = codec.decode_request(value, fmt)
    named = request.id is not None
    request_id = derived_id(record) if request.id is None else request.id
    return Admitted(
        request=request,
        id=request_id,
        named=named,
        scope=ids.scoped(request.tenant, request_id),
        digest=codec.digest_of(request),
        fmt=fmt,
        headers=known,
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
        traceparent=known.traceparent,
        tracestate=known.tracestate,
    )
