"""Errors that a member of a group survives: how many, and what it takes to go on."""

from __future__ import annotations

import logging
import time
from typing import Any

from aiokafka import errors as kafka

from streams.delivery.drivers.aiokafka_client import is_away, said
from streams.delivery.errors import DeliveryError, Unavailable

MOST = 80
PAUSE_S = 0.25
QUIET_S = 30.0
log = logging.getLogger(__name__)


class Setbacks:
    """Bears errors of a consumer's background tasks, at most MOST without a record or QUIET_S of peace in
    between: the process must end where trying again does not help.

    aiokafka hands them to whoever polls next and goes on once they were taken, with one exception: where its
    heartbeat or its reader of committed offsets ended, it hands out the same error for ever, and the group
    puts the member out. Both are started anew by joining again.
    """

    def __init__(self) -> None:
        self._count = 0
        self._last = 0.0

    def over(self) -> None:
        """Records came."""
        self._count = 0

    def bear(self, error: Exception, consumer: Any) -> None:
        """Return where the next poll may do better.

        Raises:
            Unavailable: there were too many.
            DeliveryError: the consumer ended for good.
        """
        coordinator = consumer._coordinator
        fallen = _has_failed(coordinator._heartbeat_task) or _has_failed(coordinator._commit_refresh_task)
        bearable = is_away(error) or (fallen and not isinstance(error, kafka.KafkaError))
        if coordinator._coordination_task.done() or not bearable:
            raise DeliveryError(f"the consumer ended: {said(error)}") from error
        now = time.monotonic()
        self._count = 1 if now - self._last > QUIET_S else self._count + 1
        self._last = now
        if self._count > MOST:
            raise Unavailable(f"polling: {self._count} errors in a row, the last: {said(error)}") from error
        log.warning(
            "the consumer goes on after %s: %s",
            type(error).__name__,
            said(error),
            exc_info=not is_away(error),
        )
        if fallen:
            coordinator.request_rejoin()


def _has_failed(task: Any) -> bool:
    return task is not None and task.done() and not task.cancelled() and task.exception() is not None
