"""Answers as records for `joins`."""

from __future__ import annotations

from collections.abc import Sequence

from schemas import codec, headers
from schemas.cards import Card
from schemas.errors import Malformed, TooLarge
from schemas.ids import parse_subtask_id
from schemas.messages import Failure, Model, Partial, Subtask, Timings
from schemas.peek import peek_id
from schemas.topics import JOINS
from streams.delivery import Outgoing, Record
from workers.backends import Answer

LONGEST_DEADLINE_MS = 600_000
"""The most that a request may ask for: the deadline of an answer to a subtask whose own cannot be read."""


def cost_of(answer: Answer, card: Card) -> float:
    """What the answer cost: as the backend says, else by the card's prices; an error then cost nothing."""
    if answer.cost is not None:
        return answer.cost
    if answer.error is not None:
        return 0.0
    return card.cost_per_call + card.cost_per_token * answer.usage.get("tokens", 0.0)


class Partials:
    """Writes partials; `source` is the worker's name in their headers."""

    def __init__(self, source: str) -> None:
        self._source = source

    def answered(
        self, subtask: Subtask, join: bytes, answer: Answer, card: Card, timings: Timings
    ) -> Outgoing:
        """The record of an answer. One that cannot be written is an error (`bad_output`, `too_large`)."""
        partial = Partial(
            subtask=subtask.id,
            deadline=subtask.deadline,
            output=answer.output if answer.error is None else None,
            confidence=answer.confidence if answer.error is None else None,
            cost=cost_of(answer, card),
            usage=answer.usage,
            model=Model(name=card.model, version=card.version),
            timings=timings,
            error=answer.error or _objection(answer, card),
        )
        try:
            value = codec.encode(partial)
        except TooLarge as error:
            value = self._without_output(
                partial, Failure(code="too_large", message=f"{card.capability}: {error}")
            )
        except Malformed as error:
            value = self._without_output(
                partial, Failure(code="bad_output", message=f"{card.capability}: {error}")
            )
        return self._record(subtask, join, value)

    def failed(self, subtask: Subtask, join: bytes, failure: Failure) -> Outgoing:
        """The record of a subtask that reached no model."""
        return self._record(
            subtask, join, codec.encode(Partial(subtask=subtask.id, deadline=subtask.deadline, error=failure))
        )

    def refused(self, record: Record, failure: Failure) -> Sequence[Outgoing]:
        """The error answer to a record that is no subtask, where its key or bytes tell the subtask's id."""
        for subtask_id in (_key_text(record), _peeked(record)):
            if subtask_id is None:
                continue
            try:
                join = parse_subtask_id(subtask_id).request.encode()
                partial = Partial(
                    subtask=subtask_id, deadline=record.timestamp + LONGEST_DEADLINE_MS, error=failure
                )
                value = codec.encode(partial)
            except ValueError:
                continue
            return (Outgoing(JOINS, join, value, headers.build("partial", subtask_id, self._source)),)
        return ()

    def _without_output(self, partial: Partial, failure: Failure) -> bytes:
        return codec.encode(
            Partial(
                subtask=partial.subtask,
                deadline=partial.deadline,
                cost=partial.cost,
                model=partial.model,
                timings=partial.timings,
                error=failure,
            )
        )

    def _record(self, subtask: Subtask, join: bytes, value: bytes) -> Outgoing:
        found = headers.build(
            "partial", subtask.id, self._source, "msgpack", subtask.traceparent, subtask.tracestate
        )
        return Outgoing(JOINS, join, value, found)


def _objection(answer: Answer, card: Card) -> Failure | None:
    """Why an answer cannot be believed, None for a sound one."""
    if answer.confidence is not None and not 0.0 <= answer.confidence <= 1.0:
        return Failure(code="bad_output", message=f"{card.capability}: the confidence is not within 0 and 1")
    return None


def _key_text(record: Record) -> str | None:
    try:
        return record.key.decode() if record.key else None
    except UnicodeDecodeError:
        return None


def _peeked(record: Record) -> str | None:
    return peek_id(record.value or b"", record.headers)
