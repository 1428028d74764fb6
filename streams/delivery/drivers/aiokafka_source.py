"""The Source on aiokafka: one consumer in a group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka import errors as kafka
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.protocol.group import LeaveGroupRequest
from aiokafka.structs import OffsetAndMetadata

from streams.delivery.driver import AssignmentListener
from streams.delivery.drivers.aiokafka_client import NOT_OWNER, Options, within
from streams.delivery.errors import NotOwner, TwinTookOver, Unavailable
from streams.delivery.records import Committed, Place, Record

log = logging.getLogger(__name__)


class AiokafkaSource:
    """One consumer: no deserializers, no automatic commits, from the earliest record, one assignor.

    `slot` makes the member static. `fetch_wait_ms` bounds how long a broker keeps a fetch that finds nothing.
    """

    def __init__(
        self,
        options: Options,
        topics: Sequence[str],
        group: str,
        *,
        slot: str | None = None,
        session_ms: int = 6000,
        heartbeat_ms: int = 500,
        rebalance_ms: int = 10_000,
        fetch_wait_ms: int = 500,
        fetch_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        self._topics = list(topics)
        self._slot = slot
        self._consumer: Any = AIOKafkaConsumer(
            **options,
            group_id=group,
            group_instance_id=slot,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            # One JoinGroup is sent for each configured assignor.
            partition_assignment_strategy=(StickyPartitionAssignor,),
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=heartbeat_ms,
            rebalance_timeout_ms=rebalance_ms,
            fetch_max_wait_ms=fetch_wait_ms,
            max_partition_fetch_bytes=fetch_bytes,
            metadata_max_age_ms=30_000,
        )

    async def start(self, listener: AssignmentListener) -> None:
        """Join the group.

        Raises:
            Unavailable: no broker answers.
        """
        self._consumer.subscribe(self._topics, listener=_Listener(listener))
        await within(30.0, self._consumer.start(), "joining the group")

    async def poll(self, wait_s: float, most: int) -> Mapping[Place, Sequence[Record]]:
        found = await self._consumer.getmany(timeout_ms=int(wait_s * 1000), max_records=most)
        return {Place(*place): records for place, records in found.items()}

    async def commit(self, offsets: Mapping[Place, Committed], wait_s: float) -> None:
        wanted = {TopicPartition(*place): (offer.offset, offer.note) for place, offer in offsets.items()}
        try:
            await within(wait_s, self._consumer.commit(wanted), "committing")
        except NOT_OWNER as error:
            cause = error.__cause__ or error.__context__ or error
            if self._slot is not None and isinstance(cause, kafka.UnknownMemberIdError):
                # aiokafka's commits carry no instance id, so a twin does not fence us: the group just does
                # not know us any
                # more, and joining again would throw the twin out.
                raise TwinTookOver(f"slot {self._slot} belongs to another process now") from error
            raise NotOwner(str(cause) or type(cause).__name__) from error
        except kafka.KafkaError as error:
            raise Unavailable(f"committing: {error or type(error).__name__}") from error

    async def committed(self, places: Iterable[Place], wait_s: float) -> Mapping[Place, Committed]:
        wanted = [TopicPartition(*place) for place in places]
        found = await within(
            wait_s, self._consumer._coordinator.fetch_committed_offsets(wanted), "reading committed offsets"
        )
        nothing = OffsetAndMetadata(-1, "")
        return {Place(*tp): Committed(*found.get(tp, nothing)) for tp in wanted}

    async def ends(self, places: Iterable[Place], wait_s: float) -> Mapping[Place, int]:
        wanted = [TopicPartition(*place) for place in places]
        found = await within(wait_s, self._consumer.end_offsets(wanted), "reading end offsets")
        return {Place(*place): offset for place, offset in found.items()}

    async def beginnings(self, places: Iterable[Place], wait_s: float) -> Mapping[Place, int]:
        wanted = [TopicPartition(*place) for place in places]
        found = await within(wait_s, self._consumer.beginning_offsets(wanted), "reading first offsets")
        return {Place(*place): offset for place, offset in found.items()}

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(TopicPartition(*place), offset)

    def pause(self, places: Iterable[Place]) -> None:
        self._consumer.pause(*[TopicPartition(*place) for place in places])

    def resume(self, places: Iterable[Place]) -> None:
        self._consumer.resume(*[TopicPartition(*place) for place in places])

    async def leave(self) -> None:
        if self._slot is None:
            return
        coordinator = self._consumer._coordinator
        request = LeaveGroupRequest(coordinator.group_id, coordinator.member_id)
        try:
            await within(2.0, coordinator._send_req(request), "leaving the group")
        except (Unavailable, kafka.KafkaError) as error:
            log.warning(
                "the group was not told that slot %s leaves (%s); it waits for the session to end",
                self._slot,
                error,
            )

    async def stop(self, wait_s: float) -> None:
        try:
            # stop() hangs where all brokers are down.
            await asyncio.wait_for(self._consumer.stop(), wait_s)
        except TimeoutError:
            log.warning("the consumer did not stop within %.1f s", wait_s)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, listener: AssignmentListener) -> None:
        self._listener = listener

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        await self._listener.revoked(frozenset(Place(*tp) for tp in revoked))

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        await self._listener.assigned(frozenset(Place(*tp) for tp in assigned))
