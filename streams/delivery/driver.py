"""The two narrow Protocols behind which the Kafka client stands, and a third to read without a group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Protocol

from streams.delivery.records import Committed, Outgoing, Place, Record


class AssignmentListener(Protocol):
    """Told of rebalances. Neither call may raise; `revoked` may wait (within the drain budget), `assigned`
    may not."""

    async def revoked(self, places: frozenset[Place]) -> None: ...
    async def assigned(self, places: frozenset[Place]) -> None: ...


class Source(Protocol):
    """Batches of records out of a consumer group."""

    async def start(self, listener: AssignmentListener) -> None: ...
    async def poll(self, wait_s: float, most: int) -> Mapping[Place, Sequence[Record]]:
        """At most `most` records; empty after `wait_s`. Cancelled during a rebalance: nothing is lost by
        it."""

    async def commit(self, offsets: Mapping[Place, Committed], wait_s: float) -> None:
        """Commit.

        Raises:
            NotOwner: the partitions are no longer ours.
            TwinTookOver: another process runs under our static id.
            Unavailable: no answer within `wait_s`.
        """

    def check(self) -> None:
        """Raises what ended the consumer for good: a DeliveryError, TwinTookOver among them."""

    async def committed(self, places: Iterable[Place], wait_s: float) -> Mapping[Place, Committed]: ...
    async def ends(self, places: Iterable[Place], wait_s: float) -> Mapping[Place, int]: ...
    async def beginnings(self, places: Iterable[Place], wait_s: float) -> Mapping[Place, int]: ...
    def end_seen(self, place: Place) -> int | None:
        """The log's end as the last fetch told it; asks nobody."""

    def seek(self, place: Place, offset: int) -> None: ...
    def pause(self, places: Iterable[Place]) -> None: ...
    def resume(self, places: Iterable[Place]) -> None: ...
    async def leave(self) -> None:
        """Let the `stop` that follows give up a static membership for good, as an orderly scale-down does."""

    async def stop(self, wait_s: float) -> None: ...


class Sink(Protocol):
    """Acknowledged writes."""

    async def start(self) -> None: ...
    async def partitions(self, topic: str, wait_s: float) -> int:
        """How many partitions `topic` has; 0 where it does not exist.

        Raises:
            Unavailable: no answer within `wait_s`.
        """

    async def write(self, place: Place, records: Sequence[Outgoing], wait_s: float) -> tuple[int, int]:
        """Append as many of `records` as one batch holds, in order; (how many, append time in ms).

        Raises:
            Unavailable: unknown outcome.
            Undeliverable: the broker will never take this batch.
        """

    async def replace(self) -> None:
        """Throw the producer away and start a new one: after a fatal state or a silence."""

    async def stop(self, wait_s: float) -> None: ...


class Reader(Protocol):
    """Reads without a group."""

    def read(self, topic: str, partition: int, since_ms: int) -> AsyncIterator[list[Record]]:
        """Records from that append time (ms) to the end as it was at the call."""
