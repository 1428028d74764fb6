"""The records a caller writes and reads: requests out, results in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas import codec, headers, ids, topics
from schemas.errors import SchemaError
from schemas.messages import Format, Message, Request, Result

SOURCE = "edgeway/send"
IN_FLIGHT = 2000


class Ready(NamedTuple):
    """A request as it will be written. `scoped` is its id inside Edgeway."""

    scoped: str
    id: str
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


def ready(
    request: Request,
    fmt: Format,
    new_id: str,
    source: str = SOURCE,
    traceparent: str | None = None,
    tracestate: str | None = None,
) -> Ready:
    """The record of `request`, under `new_id` where it has no id. The last three are for its headers.

    Raises:
        SchemaError: it cannot be written in `fmt`, or is too large for a record.
    """
    if request.id is None:
        request = msgspec.structs.replace(request, id=new_id)
    request_id = request.id or new_id
    value = codec.encode(request, fmt)
    scoped = ids.scoped(request.tenant, request_id)
    made = headers.build("request", request_id, source, fmt, traceparent, tracestate)
    return Ready(scoped, request_id, scoped.encode(), value, made)


def read_result(record: Any) -> Result | None:
    """The Result in a record; None where it is none."""
    raw = record.value or b""
    try:
        return codec.decode(raw, Result, codec.format_of(headers.read(record.headers).content_type, raw))
    except SchemaError:
        return None


class Sender:
    """Sends records with a bounded number in flight, and knows which were not acknowledged."""

    def __init__(self, producer: AIOKafkaProducer, partitions: int, topic: str = topics.REQUESTS) -> None:
        self._producer = producer
        self._partitions = partitions
        self._topic = topic
        self._pending: dict[asyncio.Future[Any], str] = {}
        self.acknowledged = 0
        self._silent_since: float | None = None
        self.unknown: list[str] = []
        """Ids of records whose fate is unknown: refused, or not acknowledged in time."""

    async def send(self, record: Ready) -> None:
        """Hand over one record; waits where too many are in flight."""
        while len(self._pending) >= IN_FLIGHT:
            await asyncio.wait(self._pending, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)
        partition = topics.partition_for(record.key, self._partitions)
        if self._silent_since is None:
            self._silent_since = asyncio.get_running_loop().time()
        try:
            future = await self._producer.send(
                self._topic, record.value, record.key, partition=partition, headers=record.headers
            )
        except KafkaError:
            self.unknown.append(record.id)
            return
        self._pending[future] = record.id
        future.add_done_callback(self._done)

    def _done(self, future: asyncio.Future[Any]) -> None:
        record_id = self._pending.pop(future, None)
        if record_id is None:
            return
        if future.cancelled() or future.exception() is not None:
            self.unknown.append(record_id)
        else:
            self.acknowledged += 1
            self._silent_since = asyncio.get_running_loop().time() if self._pending else None

    def silence_s(self) -> float:
        """For how long records have been handed over and none was acknowledged, in seconds."""
        since = self._silent_since
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    @property
    def unacknowledged(self) -> list[str]:
        """Ids of all records that have no acknowledgement so far."""
        return [*self.unknown, *self._pending.values()]

    async def finish(self, timeout_s: float) -> None:
        """Wait for the acknowledgements; what has none by then counts as unknown."""
        if self._pending:
            await asyncio.wait(list(self._pending), timeout=timeout_s)
            await asyncio.sleep(0)
        self.unknown += self._pending.values()
        self._pending.clear()


@dataclass(slots=True)
class Awaited:
    """Ids whose results are awaited. The first Result of an id is the answer; further ones are counted."""

    open: dict[str, str]
    answered: set[str]
    duplicates: int = 0
    given: set[str] = field(default_factory=set)
    """Those whose ids the caller chose: they may have been used, and answered, before."""
    digests: dict[str, set[str]] = field(default_factory=dict)
    """What was asked under an id that the caller chose."""
    conflicts: dict[str, str] = field(default_factory=dict)
    """The derived id under which a conflict of such an id is told, and the id."""

    @classmethod
    def nothing(cls) -> Awaited:
        """Nothing awaited yet."""
        return cls({}, set())

    def expect(self, record: Ready, *, given: bool = False) -> None:
        """Await the answer to `record`, whose id is the caller's own where `given`."""
        digest = _digest_of(record) if given else None
        if digest is not None:
            self.digests.setdefault(record.scoped, set()).add(digest)
            tenant, request_id = ids.unscoped(record.scoped)
            self.conflicts[ids.scoped(tenant, ids.conflicting(request_id, digest))] = record.scoped
        if record.scoped not in self.answered:
            self.open[record.scoped] = record.id
            if given:
                self.given.add(record.scoped)

    def may_be_old(self) -> bool:
        """Whether an id is open that may have been answered before it was sent."""
        return not self.given.isdisjoint(self.open)

    def take_earlier(self, records: Iterable[Any]) -> list[Result]:
        """The answers among `records`, results older than the requests: of ids that the caller chose, and
        of the content that was asked: its own answer, or the conflict that it was told before."""
        found = []
        for record in records:
            key = (record.key or b"").decode("utf-8", "replace")
            scoped = self.conflicts.get(key, key)
            result = read_result(record) if scoped in self.given and scoped in self.open else None
            if result is not None and ids.scoped(result.tenant, result.id) == key:
                found += self._answered(key, scoped, result)
        return found

    def take(self, records: Iterable[Any]) -> list[Result]:
        """The first answers among `records`."""
        found = []
        for record in records:
            # The key is the scoped id, so results of others are not even decoded.
            scoped = (record.key or b"").decode("utf-8", "replace")
            if scoped not in self.open and scoped not in self.answered and "~" not in scoped:
                continue
            result = read_result(record)
            if result is None:
                continue
            key = ids.scoped(result.tenant, result.id)
            scoped = self._asked(key, result)
            if scoped in self.answered:
                self.duplicates += 1
            elif scoped in self.open:
                found += self._answered(key, scoped, result)
        return found

    def _answered(self, key: str, scoped: str, result: Result) -> list[Result]:
        """`result`, found under `key`, where it answers `scoped`; not what other content under its id got."""
        asked = self.digests.get(scoped)
        if key == scoped and asked is not None and result.digest is not None and result.digest not in asked:
            return []
        self.answered.add(scoped)
        # A conflict comes under a derived id: the caller knows its own.
        return [msgspec.structs.replace(result, id=self.open.pop(scoped))]

    def _asked(self, scoped: str, result: Result) -> str:
        """The awaited id that `result` answers: an `id_conflict` comes under a derived id."""
        if result.error is None or result.error.code != "id_conflict" or scoped in self.open:
            return scoped
        if scoped in self.conflicts:
            return self.conflicts[scoped]
        head = result.id.rpartition("~")[0]
        tenant = result.tenant
        for candidate in self.open:
            known_tenant, request_id = ids.unscoped(candidate)
            is_like = known_tenant == tenant and head and request_id[: len(head)] == head
            if is_like and candidate not in self.digests:
                return candidate
        return scoped


def _digest_of(record: Ready) -> str | None:
    """The digest of what the router will read; None where it will refuse it."""
    fmt = codec.format_of(headers.read(record.headers).content_type, record.value)
    try:
        return codec.digest_of(codec.decode_request(record.value, fmt))
    except SchemaError:
        return None


def to_json(message: Message) -> str:
    """One line of JSON: bytes as base64, what JSON has no word for as null."""
    return msgspec.json.encode(message).decode("utf-8", "replace")


def error_count(results: Sequence[Result]) -> int:
    """How many of `results` are errors."""
    return sum(result.status == "error" for result in results)
