"""Results too large for a record: the output goes to the object store, then the result with its claim."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from schemas.errors import Malformed
from schemas.messages import Failure, Format, Result
from schemas.values import all_finite
from streams.aggregator.effects import Answer
from streams.aggregator.publisher import Publisher
from streams.claims import ClaimError, Objects, StoreAway
from streams.claims.values import JSON, object_of
from streams.delivery.clock import Clock
from streams.delivery.lane import Lane
from streams.delivery.records import Output

log = logging.getLogger(__name__)

MOST_AT_ONCE = 64
WAIT_S = 5.0
LEAST_WAIT_S = 0.2
PAST_MS = 500
"""An output may be written for so long past the deadline: its answer is due a second after it."""


class Oversized:
    """Writes such results for one aggregator. Until a result is acknowledged the offsets behind it stay open:
    after a crash the next owner gives the answer."""

    def __init__(self, objects: Objects, publisher: Publisher, clock: Clock) -> None:
        self._objects = objects
        self._publisher = publisher
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def write(self, lane: Lane, offsets: Sequence[int], answers: Sequence[Answer]) -> None:
        """Write `answers`, then finish `offsets`."""
        if len(self._tasks) >= MOST_AT_ONCE:
            text = "too many large outputs are being written at once; ask for less at a time"
            withheld = [_withheld(answer, text) for answer in answers]
            lane.settle(offsets, self._outputs(withheld, lane.partition))
            return
        task = asyncio.create_task(self._write(lane, tuple(offsets), answers), name="large results")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, timeout_s: float) -> None:
        """Let what is under way end within the time, then end it."""
        if self._tasks:
            _, left = await asyncio.wait(set(self._tasks), timeout=timeout_s)
            for task in left:
                task.cancel()

    async def rest(self) -> None:
        """Wait until nothing is under way."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _write(self, lane: Lane, offsets: Sequence[int], answers: Sequence[Answer]) -> None:
        kept = await asyncio.gather(*(self._kept(answer) for answer in answers))
        lane.settle(offsets, self._outputs(kept, lane.partition))

    def _outputs(self, answers: Sequence[Answer], partition: int) -> list[Output]:
        return [output for answer in answers for output in self._publisher.answer(answer, partition)]

    async def _kept(self, answer: Answer) -> Answer:
        request, result = answer.request, answer.result
        left_s = (request.deadline + PAST_MS - self._clock.now()) / 1000.0
        try:
            async with asyncio.timeout(max(LEAST_WAIT_S, min(WAIT_S, left_s))):
                return answer._replace(
                    result=await self._claimed(result, request.reply_format, request.tenant)
                )
        except (ClaimError, Malformed) as error:
            return _withheld(answer, f"the output is too large for a record and could not be kept: {error}")
        except TimeoutError:
            text = "the output is too large for a record, and the object store took too long to keep it"
            return _withheld(answer, text)
        except Exception as error:
            log.exception("a large output could not be kept")
            return _withheld(answer, f"the output could not be kept ({type(error).__name__})")

    async def _claimed(self, result: Result, fmt: Format, tenant: str | None) -> Result:
        store = self._objects.local
        if store is None:
            raise StoreAway("there is no object store; give --objects")
        wanted = JSON if fmt == "json" and await asyncio.to_thread(all_finite, result.output) else None
        data, content_type = await asyncio.to_thread(object_of, result.output, wanted)
        claim = await store.put(data, content_type=content_type, tenant=tenant)
        return msgspec.structs.replace(result, output=None, claim=claim)


def _withheld(answer: Answer, text: str) -> Answer:
    failure = Failure(code="result_too_large", message=text)
    result = msgspec.structs.replace(
        answer.result, status="error", output=None, confidence=None, error=failure, claim=None
    )
    return answer._replace(result=result)
