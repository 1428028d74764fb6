"""The Sink on aiokafka: one idempotent producer, replaced when it is broken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import chain
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka import errors as kafka

from streams.delivery.drivers.aiokafka_client import Options, stopped, within
from streams.delivery.errors import Unavailable, Undeliverable
from streams.delivery.records import Outgoing, Place

log = logging.getLogger(__name__)

BATCH_BYTES = 512 * 1024
MOST_BYTES = 3 * 1024 * 1024

_REFUSED: dict[type[Exception], str] = {
    kafka.MessageSizeTooLargeError: "too_large",
    kafka.RecordListTooLargeError: "too_large",
    kafka.RecordTooLargeError: "too_large",
    kafka.InvalidTopicError: "unknown_capability",
    kafka.TopicAuthorizationFailedError: "unknown_capability",
    kafka.ClusterAuthorizationFailedError: "unknown_capability",
}


class AiokafkaSink:
    """`acks=all`, idempotent, no linger: batches form behind the request in flight."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._producer: Any = None

    async def start(self) -> None:
        """Connect.

        Raises:
            Unavailable: no broker answers.
        """
        producer: Any = AIOKafkaProducer(
            **self._options,
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            max_batch_size=BATCH_BYTES,
            max_request_size=MOST_BYTES,
            request_timeout_ms=30_000,
            metadata_max_age_ms=30_000,
        )
        try:
            await within(15.0, producer.start(), "starting the producer")
        except BaseException:
            await _discard(producer)
            raise
        self._producer = producer

    async def partitions(self, topic: str, wait_s: float) -> int:
        # partitions_for() waits without limit for a topic that does not exist.
        producer = self._started()
        try:
            found = await within(wait_s, producer.client.fetch_all_metadata(), "asking for metadata")
        except kafka.KafkaError as error:
            raise Unavailable(f"asking for metadata: {error}") from error
        return len(found.partitions_for_topic(topic) or ())

    async def write(self, place: Place, records: Sequence[Outgoing], wait_s: float) -> tuple[int, int]:
        producer = self._started()
        batch = producer.create_batch()
        count = 0
        for record in records:
            # Its Cython builder takes a list and nothing else.
            headers = record.headers if isinstance(record.headers, list) else list(record.headers)
            if batch.append(key=record.key, value=record.value, timestamp=None, headers=headers) is None:
                break
            count += 1
        if count == 0:
            raise Undeliverable("too_large", f"a record of {len(records[0].value)} bytes fits no batch")
        try:
            written = await within(wait_s, _append(producer, batch, place), "writing")
        except tuple(_REFUSED) as error:
            raise Undeliverable(_REFUSED[type(error)], f"{place.topic}: {type(error).__name__}") from error
        except kafka.KafkaError as error:
            # Fatal states of an idempotent producer (OutOfOrderSequenceNumber, InvalidProducerEpoch) are
            # for good.
            raise Unavailable(f"writing: {type(error).__name__}") from error
        except (Unavailable, asyncio.CancelledError):
            raise
        except Exception as error:
            # A sender that dies fails all it holds with whatever killed it: a KeyError, where a batch of a
            # producer that was thrown away came back to be sent again. Unhandled, it ended the whole role.
            raise Unavailable(f"writing: the client failed with {type(error).__name__}") from error
        return count, written.timestamp if written is not None else -1

    def _started(self) -> Any:
        if self._producer is None:
            raise Unavailable("the producer is being replaced")
        return self._producer

    async def replace(self) -> None:
        old, self._producer = self._producer, None
        if old is not None:
            await _discard(old)
        await self.start()

    async def stop(self, wait_s: float) -> None:
        if self._producer is not None:
            await stopped(self._producer.stop, "the producer", wait_s)


async def _append(producer: Any, batch: Any, place: Place) -> Any:
    # What send_batch gives is shielded: who stops waiting for it does not stop it from being written.
    return await (await producer.send_batch(batch, place.topic, partition=place.partition))


async def _discard(producer: Any) -> None:
    """End a producer without flushing: what it still holds is written again by its successor."""
    accumulator = producer._message_accumulator
    accumulator.fail_all(kafka.ProducerClosed())
    for batch in (*chain(*accumulator._batches.values()), *accumulator._pending_batches):
        for future in (batch.future, batch._drain_waiter):
            # Nobody may wait for these, and asyncio complains of errors that nobody saw.
            if future.done() and not future.cancelled():
                future.exception()
    try:
        async with asyncio.timeout(2.0):
            await producer.stop()
    except Exception as error:  # noqa: BLE001 - see below
        # Its stop gives what its sender died of, which may be anything: a KeyError ended the whole role.
        log.warning("a broken producer did not stop: %s", type(error).__name__)
        await producer.client.close()
