"""The exchange over Kafka."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from edgeway import kafka
from edgeway.client_records import ready
from edgeway.errors import ExchangeClosed, KafkaUnreachable, TopicsWrong
from edgeway.exchange.answers import Answers, Wanted, conflict_key, decoded
from edgeway.exchange.expected import KEEP_MS, Expected
from edgeway.exchange.following import Following
from edgeway.exchange.listening import Listeners
from edgeway.exchange.ports import Event, Health, Sent
from edgeway.exchange.progress import Progress
from edgeway.exchange.remembered import Remembered
from edgeway.exchange.writing import Writer
from schemas import codec, headers, ids
from schemas.errors import SchemaError
from schemas.messages import Cancel, Format, Request, Result
from schemas.topics import CANCELLATIONS, JOINS, REQUESTS, RESULTS, partition_for
from streams.delivery import BrokerClock, Unavailable
from streams.delivery.drivers.aiokafka_follower import AiokafkaFollower
from streams.delivery.drivers.aiokafka_reader import AiokafkaReader
from streams.delivery.drivers.aiokafka_sink import AiokafkaSink
from streams.settings import Settings, client_options

log = logging.getLogger(__name__)

MiB = 1024 * 1024
IN_FLIGHT = 2000
MOST_WAITING = 20_000
MOST_LISTENING = 1000
HEALTHY_S = 10.0
POLL_S = 0.25
STUCK_S = 20.0


class KafkaExchange:
    """An Exchange on Kafka, to be entered.

    It reads all of `results`, without a group, on one connection. With `remember_s` it is entered once the
    answers of the last `remember_s` are read and remembers them all, at most `remember_bytes`; with 0 it
    starts at the end and keeps the answers of its own requests alone. `source` is the CloudEvents source of
    what it writes (`edgeway/gateway`).

    Raises, when entered:
        KafkaUnreachable: no broker answers.
        TopicsWrong: a topic is missing.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        source: str,
        remember_s: float = 0,
        remember_bytes: int = 128 * MiB,
        in_flight: int = IN_FLIGHT,
        most_waiting: int = MOST_WAITING,
        most_listening: int = MOST_LISTENING,
    ) -> None:
        self._settings = settings
        self._source = source
        self._options = {**client_options(settings), "client_id": source.replace("/", "-")}
        self._keep_ms = int(remember_s * 1000) or KEEP_MS
        self._clock = BrokerClock()
        self._expected = Expected()
        self._remembered = Remembered(remember_bytes)
        self._answers = Answers(self._remembered, self._expected, most_waiting, all_of_them=remember_s > 0)
        since = int(time.time() * 1000 - remember_s * 1000) if remember_s > 0 else None
        self._results = Following(lambda: AiokafkaFollower(self._options, RESULTS), since)
        self._listeners = Listeners(
            lambda: AiokafkaFollower(self._options, JOINS, fetch_wait_ms=100), self._clock, most_listening
        )
        self._progress = Progress(self._listeners, self._answers, self._clock)
        self._in_flight = in_flight
        self._look_backs = asyncio.Semaphore(4)
        self._writer: Writer | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        await kafka.partition_counts(self._settings, REQUESTS, RESULTS)
        self._writer = Writer(
            AiokafkaSink(self._options),
            self._clock,
            self._settings.bootstrap,
            self._in_flight,
            self._settings.send_timeout_s,
        )
        try:
            await self._writer.start()
            await self._results.start()
            await self._catch_up()
        except Unavailable as error:
            await self._stop()
            raise KafkaUnreachable(self._settings.bootstrap, str(error)) from error
        except BaseException:
            await self._stop()
            raise
        self._task = asyncio.get_running_loop().create_task(self._read(), name="answers")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def send(
        self,
        request: Request,
        *,
        traceparent: str | None = None,
        tracestate: str | None = None,
        fmt: Format = "msgpack",
    ) -> Sent:
        """See Exchange.send."""
        writer = self._open()
        record = ready(request, fmt, uuid.uuid4().hex, self._source, traceparent, tracestate)
        # JSON has fewer kinds of values: what the router reads, not what was given, makes the digest.
        read = codec.decode_request(record.value, fmt) if fmt == "json" else request
        sent = Sent(record.scoped, record.id, codec.digest_of(read))
        is_new = self._expected.sent_at(record.key) is None
        # Before it is written: its answer may be read before its acknowledgement.
        self._expected.add(
            record.key, conflict_key(sent), self._clock.now(), answered=record.key in self._remembered
        )
        try:
            await writer.write(REQUESTS, record.key, record.value, record.headers, record.id)
        except (KafkaUnreachable, TopicsWrong, SchemaError):
            if is_new:
                self._expected.remove(record.key)
            raise
        return sent

    async def answer(self, sent: Sent | str, timeout_s: float) -> Result:
        """See Exchange.answer."""
        self._open()
        wanted = Wanted(sent)
        found = self._answers.find(wanted)
        if found is not None:
            return found
        future = self._answers.wait(wanted)
        try:
            async with asyncio.timeout(timeout_s):
                return await future
        finally:
            self._answers.leave(wanted)

    def known(self, key: str) -> Result | None:
        """See Exchange.known."""
        return self._answers.known(key.encode())

    def is_open(self, key: str) -> bool:
        """See Exchange.is_open."""
        return self._expected.is_open(key.encode())

    async def earlier(self, sent: Sent | str, since_ms: int) -> Result | None:
        """See Exchange.earlier."""
        self._open()
        wanted = Wanted(sent)
        for key in wanted.keys:
            result = await self._first(key, since_ms)
            if result is not None and wanted.is_met_by(result, key):
                return result
        return None

    async def _first(self, raw: bytes, since_ms: int) -> Result | None:
        """The first Result under a key, from the log."""
        reader = AiokafkaReader(self._options)
        partition = partition_for(raw, self._results.partitions)
        try:
            async with self._look_backs:
                async for records in reader.read(RESULTS, partition, since_ms):
                    for record in records:
                        result = decoded(raw, record.value or b"") if record.key == raw else None
                        if result is not None:
                            return result
        except Unavailable as error:
            raise KafkaUnreachable(self._settings.bootstrap, str(error)) from error
        return None

    def events(
        self, sent: Sent | str, since_ms: int | None = None, *, timeout_s: float | None = None
    ) -> AsyncIterator[Event]:
        """See Exchange.events."""
        self._open()
        key = sent if isinstance(sent, str) else sent.key
        return self._progress.follow(sent, since_ms, self._expected.sent_at(key.encode()), timeout_s)

    async def cancel(self, request_id: str, tenant: str | None = None) -> None:
        """See Exchange.cancel."""
        writer = self._open()
        value = codec.encode(Cancel(id=request_id, tenant=tenant))
        made = headers.build("cancel", request_id, self._source)
        await writer.write(CANCELLATIONS, ids.scoped(tenant, request_id).encode(), value, made, request_id)

    @property
    def is_healthy(self) -> bool:
        """See Exchange.is_healthy."""
        return (
            self._task is not None
            and not self._task.done()
            and self._writer is not None
            and not self._writer.is_broken
            and self._results.silent_s() < HEALTHY_S
        )

    @property
    def has_failed(self) -> bool:
        """Whether it was ended by an error, and reads no more."""
        return self._task is not None and self._task.done() and not self._closed

    def health(self) -> Health:
        """See Exchange.health."""
        follower = self._results.follower
        return Health(
            ok=self.is_healthy,
            silent_s=self._results.silent_s(),
            lag=0 if follower is None else follower.lag(),
            waiting=self._answers.waiting,
            open=self._expected.open,
            remembered=len(self._remembered),
            remembered_bytes=self._remembered.bytes,
        )

    def _open(self) -> Writer:
        if self._closed or self._writer is None:
            raise ExchangeClosed
        return self._writer

    async def _catch_up(self) -> None:
        """Read what was there at the start."""
        last = time.monotonic()
        while True:
            records = await self._results.poll(POLL_S)
            self._answers.take(records)
            follower = self._results.follower
            if follower is not None and await follower.is_caught_up():
                return
            if records:
                last = time.monotonic()
            elif time.monotonic() - last > STUCK_S:
                raise Unavailable(f"the past of {RESULTS} could not be read: nothing came for {STUCK_S:g} s")
            await asyncio.sleep(0)

    async def _read(self) -> None:
        """Take answers for ever."""
        try:
            while True:
                self._answers.take(await self._results.poll(POLL_S))
                now = self._clock.now()
                self._expected.forget(now)
                self._remembered.forget(now - self._keep_ms)
                await asyncio.sleep(0)
        finally:
            # Also where it fails: nobody may wait for what cannot come.
            self._answers.close()

    async def _stop(self) -> None:
        self._closed = True
        self._answers.close()
        await self._listeners.close()
        if self._task is not None:
            self._task.cancel()
            (ended,) = await asyncio.gather(self._task, return_exceptions=True)
            if isinstance(ended, Exception):
                log.error("the reader of results had failed", exc_info=ended)
        await self._results.stop()
        if self._writer is not None:
            await self._writer.stop()
