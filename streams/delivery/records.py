"""What passes between the log and an agent: records in, batches, outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from streams.privacy.clearance import Clearance

if TYPE_CHECKING:
    from streams.delivery.lane import Lane

Header = tuple[str, bytes]


class Record(Protocol):
    """One record of the log; `timestamp` is the broker's append time in ms. aiokafka's ConsumerRecord is
    one."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[Header]: ...


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Committed(NamedTuple):
    """A committed offset and its note; offset -1 where nothing was ever committed."""

    offset: int
    note: str


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to be written. Without `partition` the key decides (schemas.topics.partition_for)."""

    topic: str
    key: bytes | None
    value: bytes
    headers: Sequence[Header] = ()
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """A record for a `cloud.*` topic with the clearance that privacy gave for exactly this value."""

    clearance: Clearance
    record: Outgoing


Output = Outgoing | Cleared


@dataclass(slots=True)
class Batch:
    """Records of one partition, in order, and the lane that they came by."""

    lane: Lane
    records: list[Record]


def size_of(record: Record) -> int:
    """The bytes of key and value."""
    return len(record.value or b"") + len(record.key or b"")


def bytes_of(output: Output) -> int:
    """The bytes of the value that is to be written."""
    return len(output.record.value if isinstance(output, Cleared) else output.value)
