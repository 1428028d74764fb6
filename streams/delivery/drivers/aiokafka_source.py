"""The Source on aiokafka: one consumer in a group."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka import errors as kafka
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.protocol.group import JoinGroupRequest
from aiokafka.structs import OffsetAndMetadata

from streams.delivery.driver import AssignmentListener
from streams.delivery.drivers.aiokafka_client import NOT_OWNER, Options, ended, said, stopped, within
from streams.delivery.drivers.aiokafka_setbacks import PAUSE_S, Setbacks
from streams.delivery.errors import DeliveryError, NotOwner, TwinTookOver, Unavailable
from streams.delivery.records import Committed, Place, Record


class AiokafkaSource:
    """One consumer: no deserializers, no automatic commits, from the earliest record, one assignor.

    `slot` makes the member static; `exclusive` says that something else keeps other processes from using it:
    a member that the group does not know any more was then merely away for too long. `fetch_wait_ms` bounds
    how long a broker keeps a fetch that finds nothing. It is stopped once and not started again.
    """

    def __init__(
        self,
        options: Options,
        topics: Sequence[str],
        group: str,
        *,
        slot: str | None = None,
        exclusive: bool = False,
        session_ms: int = 6000,
        heartbeat_ms: int = 500,
        rebalance_ms: int = 10_000,
        fetch_wait_ms: int = 500,
        fetch_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        self._topics = list(topics)
        self._slot = slot
        self._has_twins = slot is not None and not exclusive
        self._joined = False
        self._twin = False
        self._setbacks = Setbacks()
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
        self._consumer.subscribe(self._topics, listener=_Listener(self, listener))
        await within(30.0, self._consumer.start(), "joining the group")

    async def poll(self, wait_s: float, most: int) -> Mapping[Place, Sequence[Record]]:
        """See Source.poll.

        Raises:
            Unavailable: one error after the other, and no record in between.
            DeliveryError: the consumer ended for good.
        """
        try:
            found = await self._consumer.getmany(timeout_ms=int(wait_s * 1000), max_records=most)
        except Exception as error:  # noqa: BLE001 - survived for a while, or raised again with what it means
            self._setbacks.bear(error, self._consumer)
            await asyncio.sleep(PAUSE_S)
            return {}
        if found:
            self._setbacks.over()
        return {Place(*place): records for place, records in found.items()}

    async def commit(self, offsets: Mapping[Place, Committed], wait_s: float) -> None:
        self.check()
        coordinator = self._consumer._coordinator
        member = (coordinator.member_id, coordinator.generation)
        if self._is_out():
            # Without a member id a commit passes as that of a tool, where the group is empty.
            raise NotOwner("the group has put us out")
        wanted = {TopicPartition(*place): (offer.offset, offer.note) for place, offer in offsets.items()}
        try:
            await within(wait_s, self._consumer.commit(wanted), "committing")
        except NOT_OWNER as error:
            cause = error.__cause__ or error.__context__ or error
            if self._has_twins and isinstance(cause, kafka.UnknownMemberIdError):
                # aiokafka's commits carry no instance id, so a twin does not fence us: the group just does
                # not know us any more, and joining again would throw the twin out.
                self._twin = True
                self.check()
            raise NotOwner(str(cause) or type(cause).__name__) from error
        except kafka.KafkaError as error:
            raise Unavailable(f"committing: {said(error)}") from error
        if member != (coordinator.member_id, coordinator.generation):
            raise NotOwner("the group rebalanced while the commit was under way")

    def check(self) -> None:
        if self._twin:
            raise TwinTookOver(f"slot {self._slot} belongs to another process now")
        if (cause := ended(self._consumer)) is not None:
            raise DeliveryError(f"the consumer ended: {said(cause)}") from cause
        try:
            self._consumer._coordinator.check_errors()
        except Exception as error:  # noqa: BLE001 - survived for a while, or raised again with what it means
            self._setbacks.bear(error, self._consumer)

    def note_joined(self) -> None:
        """The group gave us an assignment."""
        self._joined = True

    def note_twin(self) -> None:
        """A static member that the group does not know any more has a twin, also where it holds nothing
        that it could commit."""
        self._twin = self._twin or (self._has_twins and self._is_out())

    def _is_out(self) -> bool:
        return self._joined and self._consumer._coordinator.member_id == JoinGroupRequest.UNKNOWN_MEMBER_ID

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

    def end_seen(self, place: Place) -> int | None:
        try:
            found = self._consumer.highwater(TopicPartition(*place))
        except (AssertionError, kafka.IllegalStateError):
            return None  # no longer assigned
        return found if isinstance(found, int) else None

    def seek(self, place: Place, offset: int) -> None:
        self._consumer.seek(TopicPartition(*place), offset)

    def pause(self, places: Iterable[Place]) -> None:
        self._consumer.pause(*[TopicPartition(*place) for place in places])

    def resume(self, places: Iterable[Place]) -> None:
        self._consumer.resume(*[TopicPartition(*place) for place in places])

    async def leave(self) -> None:
        # aiokafka's own stop then sends the LeaveGroup that it omits for static members. Sent from here, the
        # next heartbeat would join again before the stop.
        if (coordinator := self._consumer._coordinator) is not None:
            coordinator._group_instance_id = None

    async def stop(self, wait_s: float) -> None:
        async def leaving() -> None:
            if self._twin:
                await self._never_join_again()
            await self._consumer.stop()

        await stopped(leaving, "the consumer", wait_s)

    async def _never_join_again(self) -> None:
        task = self._consumer._coordinator._coordination_task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, source: AiokafkaSource, listener: AssignmentListener) -> None:
        self._source = source
        self._listener = listener

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._source.note_twin()
        await self._listener.revoked(frozenset(Place(*tp) for tp in revoked))

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._source.note_joined()
        await self._listener.assigned(frozenset(Place(*tp) for tp in assigned))
