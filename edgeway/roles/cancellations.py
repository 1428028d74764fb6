"""The cancellations that a process knows of: one follower for all of its roles."""

from __future__ import annotations

import logging
from collections.abc import Callable

from edgeway.roles.followers import Follower
from edgeway.roles.process import Process
from schemas.errors import SchemaError
from schemas.topics import CANCELLATIONS
from streams.cancelled import TTL_MS, Cancelled, cancelled_key
from streams.delivery import Record

log = logging.getLogger(__name__)

OnCancel = Callable[[str, int], None]
"""Told the scoped id and the append time (ms) of each cancellation, on the event loop."""


class _Intake:
    def __init__(self) -> None:
        self.cancelled = Cancelled()
        self.listeners: list[OnCancel] = []

    def take(self, record: Record) -> None:
        try:
            key = cancelled_key(record.value or b"")
        except SchemaError as error:
            log.warning(
                "%s/%d offset %d cancels nothing: %s", record.topic, record.partition, record.offset, error
            )
            return
        self.cancelled.add(key, record.timestamp)
        for listener in self.listeners:
            listener(key, record.timestamp)


def follow_cancellations(process: Process, on_cancel: OnCancel | None = None) -> Cancelled:
    """The cancelled requests of the last 10 min, kept up to date from before the first record is read.

    Every role of a process gets the same set. `on_cancel` is called for each cancellation, also for those
    of the last 10 min while the process starts.
    """
    known: _Intake | None = process.shared.get("cancellations")
    if known is None:
        known = process.shared["cancellations"] = _Intake()
        intake, clock = known, process.clock

        def reached(ago_ms: float) -> None:
            intake.cancelled.expire(int(clock.now() - ago_ms))

        follower = Follower(process, CANCELLATIONS, clock.now() - TTL_MS, intake.take, reached)
        process.before.append(follower.start)
        process.after.append(follower.stop)
    if on_cancel is not None:
        known.listeners.append(on_cancel)
    return known.cancelled
