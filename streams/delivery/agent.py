"""What an agent is, and how its failures are contained."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from schemas.messages import Failure
from streams.delivery.lane import Lane
from streams.delivery.records import Batch, Output, Record

log = logging.getLogger(__name__)

RETRY_AFTER_S = (0.1, 0.3)


class Agent(Protocol):
    """Turns records into outputs by settling them on their lane."""

    async def handle(self, batch: Batch) -> None:
        """Settle, absorb, fail or keep each record. An exception makes the runner try record by record."""

    def refuse(self, record: Record, failure: Failure) -> Sequence[Output]:
        """The error answer for a dead-lettered record, where an id can be read. Never raises."""

    def assigned(self, lane: Lane) -> None: ...
    def revoked(self, lane: Lane) -> None:
        """Drop all state of that lane."""


class Runner:
    """Runs an agent over batches; one record's failure touches no other."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def run(self, batch: Batch) -> None:
        if not batch.lane.alive:
            return
        try:
            await self.agent.handle(batch)
        except (Exception, asyncio.CancelledError) as error:  # user code may raise anything
            _raise_own_cancellation(error)
            log.exception("a batch of %s failed; trying its records one by one", batch.lane.topic)
            for record in batch.records:
                await self._alone(batch.lane, record)

    async def _alone(self, lane: Lane, record: Record) -> None:
        for pause in (*RETRY_AFTER_S, None):
            if not lane.alive or not lane.window.is_waiting(record.offset):
                return
            try:
                await self.agent.handle(Batch(lane, [record]))
            except (Exception, asyncio.CancelledError) as error:  # see above
                _raise_own_cancellation(error)
                if pause is None:
                    log.exception(
                        "%s/%d offset %d failed for good", lane.topic, lane.partition, record.offset
                    )
                    lane.fail(
                        record,
                        Failure(code="handler_error", message=f"the handler failed: {type(error).__name__}"),
                    )
                else:
                    await asyncio.sleep(pause)
            else:
                return


def _raise_own_cancellation(error: BaseException) -> None:
    # A handler that awaits something cancelled gets this error too; let through, it ended agents in silence.
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error
