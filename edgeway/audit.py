"""Which requests of a window have no answer: the pure part of `edgeway audit`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from schemas import codec, headers, ids
from schemas.bounds import DEFAULT_DEADLINE_MS, MAX_DEADLINE_MS
from schemas.errors import SchemaError
from schemas.messages import Failure, Format, Plan, Request, RequestInfo, Result
from schemas.peek import peek_tenant
from streams.delivery.records import Record


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of the log. Times in ms on the broker's clock; `scoped` is the id inside Edgeway."""

    scoped: str
    accepted: int
    deadline: int
    partition: int
    offset: int
    fmt: Format
    request: Request
    digest: str | None = None

    @property
    def id(self) -> str:
        """The id under which it is answered."""
        return ids.unscoped(self.scoped)[1]


class Ledger:
    """Requests without an answer so far. Give it the requests of the window first, then the results.

    `requests` = answered + open (waiting or unanswered) + `repeated` (the same again, answered once) +
    `unreadable`.
    """

    def __init__(self) -> None:
        self._open: dict[str, Asked] = {}
        self._aliases: dict[str, str] = {}
        self.requests = 0
        self.repeated = 0
        self.unreadable = 0
        self.answered = 0

    def request(self, record: Record) -> None:
        """Count one record of `requests`; one from which no id can be read is only in the dead letters."""
        self.requests += 1
        asked = asked_of(record)
        if asked is None:
            self.unreadable += 1
            return
        first = self._open.setdefault(asked.scoped, asked)
        if first is asked:
            return
        # Each record counts once: one with other content under the same id gets an answer of its own.
        if first.digest is not None and asked.digest not in (None, first.digest):
            self._conflict(first, asked)
        else:
            self.repeated += 1

    def result(self, record: Record) -> None:
        """Strike out the request that one record of `results` answers."""
        scoped = answered_id(record)
        if scoped is None:
            return
        if self._open.pop(self._aliases.get(scoped, scoped), None) is not None:
            self.answered += 1

    def _conflict(self, first: Asked, other: Asked) -> None:
        """Await the `id_conflict` of a repeated id with other content: its id has the digest of whichever was
        noticed second."""
        tenant = other.request.tenant
        names = [
            ids.scoped(tenant, ids.conflicting(other.id, asked.digest or "")) for asked in (other, first)
        ]
        if names[0] in self._open:
            self.repeated += 1
            return
        self._open[names[0]] = replace(other, scoped=names[0])
        self._aliases |= dict.fromkeys(names[1:], names[0])

    def unanswered(self, now: int, grace_ms: int) -> list[Asked]:
        """Requests whose deadline is more than `grace_ms` past at `now`, oldest first."""
        late = [asked for asked in self._open.values() if asked.deadline + grace_ms < now]
        return sorted(late, key=lambda asked: (asked.accepted, asked.partition, asked.offset))

    def waiting(self, now: int, grace_ms: int) -> int:
        """How many requests have no answer but time left."""
        return len(self._open) - len(self.unanswered(now, grace_ms))


def asked_of(record: Record) -> Asked | None:
    """The request in `record`, its id derived as the router does; None where no id can be read."""
    raw = record.value or b""
    fmt: Format = "json"
    digest = None
    try:
        fmt = codec.format_of(headers.read(record.headers).content_type, raw)
        request = codec.decode_request(raw, fmt)
        digest = codec.digest_of(request)
    except SchemaError:
        peeked = codec.peek_id(raw, record.headers)
        if peeked is None:
            return None
        request = Request(id=peeked, tenant=peek_tenant(raw, record.headers))
    request_id = request.id or ids.derived(record.topic, record.partition, record.offset, record.timestamp)
    allowed = min(
        request.deadline_ms if request.deadline_ms is not None else DEFAULT_DEADLINE_MS, MAX_DEADLINE_MS
    )
    return Asked(
        ids.scoped(request.tenant, request_id),
        record.timestamp,
        record.timestamp + allowed,
        record.partition,
        record.offset,
        fmt,
        request,
        digest,
    )


def answered_id(record: Record) -> str | None:
    """The scoped id that a record of `results` answers; None where it is no Result."""
    raw = record.value or b""
    try:
        fmt = codec.format_of(headers.read(record.headers).content_type, raw)
        result = codec.decode(raw, Result, fmt)
    except SchemaError:
        return None
    return ids.scoped(result.tenant, result.id)


def answer(asked: Asked) -> Plan:
    """The plan that makes the aggregator, which alone writes results, answer `asked` with an error."""
    request = asked.request
    tenant, request_id = request.tenant, asked.id
    failure = Failure(
        code="unanswered", message="no answer was found after the deadline; send the request again"
    )
    result = Result(
        id=request_id, tenant=tenant, task=request.task, status="error", error=failure, digest=asked.digest
    )
    info = RequestInfo(
        id=request_id,
        tenant=tenant,
        task=request.task,
        reply_to=request.reply_to,
        accepted=asked.accepted,
        deadline=asked.deadline,
        reply_format=asked.fmt,
        digest=asked.digest,
    )
    return Plan(request=info, rules="", answer=result)
