"""Records of the `capabilities` topic into a registry."""

from __future__ import annotations

from collections.abc import Iterable

from schemas import codec
from schemas.cards import Heartbeat
from schemas.errors import Malformed
from streams.delivery.records import Record
from streams.registry.registry import Registry


def observe_records(registry: Registry, records: Iterable[Record]) -> int:
    """Observe the heartbeats among `records` by their append times; the number of records that hold none."""
    strange = 0
    for record in records:
        try:
            beat = codec.decode(record.value or b"", Heartbeat)
        except Malformed:
            strange += 1
        else:
            registry.observe(beat, record.timestamp)
    return strange
