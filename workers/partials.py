"""Answers as records for `joins`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schemas import codec, headers
from schemas.bounds import MAX_DEADLINE_MS, MAX_MONEY
from schemas.cards import Card
from schemas.claims import INLINE_BYTES
from schemas.errors import ERROR_CODES, ErrorCode, Malformed, TooLarge
from schemas.ids import parse_subtask_id
from schemas.limits import MAX_RECORD_BYTES
from schemas.messages import Claim, Failure, Model, Partial, Subtask, Timings
from schemas.peek import peek_id
from schemas.rules_structs import Price
from schemas.topics import JOINS
from schemas.values import check_value, least_size
from streams.delivery import Outgoing, Record
from workers.backends import Answer
from workers.faults import FAULTS

_TOO_LARGE = f"the output takes more than the {MAX_RECORD_BYTES} bytes that fit a record"


def cost_of(answer: Answer, card: Card, price: Price | None = None, bound: float = 0.0) -> float:
    """What the answer cost: as the backend says, else by the rules' `price`, else by the card's.

    Where nobody knows it is `bound`, the most that it may cost: after an error other than `bad_input`, which
    refuses before anything is paid, or where tokens are charged and not counted.
    """
    if answer.cost is not None:
        return answer.cost
    if answer.error is not None:
        return 0.0 if answer.error.code == "bad_input" else bound
    per_call, per_token = card.cost_per_call, card.cost_per_token
    if price is not None:
        per_call, per_token = price.per_call, price.per_1k_tokens / 1000.0
    if per_token and bound and "tokens" not in answer.usage:
        return bound
    return per_call + per_token * answer.usage.get("tokens", 0.0)


class Partials:
    """Writes partials; `source` is the worker's name in their headers. `prices` are the rules'."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.prices: Mapping[str, Price] = {}

    def cost(self, subtask: Subtask, answer: Answer, card: Card) -> float:
        """What an answer cost, as its partial says it; the bound where the answer itself cannot say."""
        unknown = subtask.max_cost or card.cost_per_call
        try:
            cost = float(self._stated(subtask, answer, card))
        except (TypeError, ValueError, AttributeError, OverflowError):
            return unknown
        return cost if 0.0 <= cost <= MAX_MONEY else unknown

    def _stated(self, subtask: Subtask, answer: Answer, card: Card) -> float:
        return cost_of(answer, card, self.prices.get(f"{card.side}/{card.capability}"), subtask.max_cost)

    def answered(
        self,
        subtask: Subtask,
        join: bytes,
        answer: Answer,
        card: Card,
        timings: Timings,
        not_kept: str | None = None,
    ) -> Outgoing:
        """The record of an answer. One that cannot be written is an error (`bad_output`, `too_large`);
        `not_kept` says why no store has its output."""
        try:
            value = self._written(subtask, answer, card, timings)
        except TooLarge as error:
            why = str(error) if not_kept is None else f"{_TOO_LARGE} and could not be kept: {not_kept}"
            value = self._withheld(subtask, answer, card, timings, "too_large", why)
        except Malformed as error:
            value = self._withheld(subtask, answer, card, timings, "bad_output", str(error))
        except Exception as error:  # noqa: BLE001 - an answer may be of any make; its row alone must pay for it
            FAULTS.raised(error, card.capability)
            text = f"the answer cannot be written ({type(error).__name__}); see the worker's log"
            value = self._withheld(subtask, answer, card, timings, "bad_output", text)
        return self._record(subtask, join, value)

    def small(
        self, subtask: Subtask, join: bytes, answer: Answer, card: Card, timings: Timings
    ) -> Outgoing | None:
        """The record of an answer as `answered` gives it; None where its output is above INLINE_BYTES."""
        try:
            value = self._written(subtask, answer, card, timings)
        except TooLarge:
            return None
        except Exception:  # noqa: BLE001 - what is wrong with it is said and logged there
            return self.answered(subtask, join, answer, card, timings)
        if len(value) > INLINE_BYTES and answer.error is None:
            return None
        return self._record(subtask, join, value)

    def claimed(
        self, subtask: Subtask, join: bytes, answer: Answer, card: Card, timings: Timings, claim: Claim
    ) -> Outgoing:
        """The record of an answer whose output lies at `claim`.

        Raises:
            Malformed: one that cannot be written all the same.
        """
        return self._record(subtask, join, self._written(subtask, answer, card, timings, claim))

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
                # Its own deadline cannot be read: the longest there is.
                deadline = record.timestamp + MAX_DEADLINE_MS
                partial = Partial(subtask=subtask_id, deadline=deadline, error=failure)
                value = codec.encode(partial)
            except ValueError:
                continue
            return (Outgoing(JOINS, join, value, headers.build("partial", subtask_id, self._source)),)
        return ()

    def _written(
        self, subtask: Subtask, answer: Answer, card: Card, timings: Timings, claim: Claim | None = None
    ) -> bytes:
        objection = _objection(answer, card)
        failure = answer.error or objection
        if failure is not None and not (failure.code in ERROR_CODES and isinstance(failure.message, str)):
            raise Malformed("the error's code is none of Edgeway's, or its message no text")
        output = answer.output if failure is None and claim is None else None
        if output is not None and least_size(output, MAX_RECORD_BYTES) > MAX_RECORD_BYTES:
            check_value(output, "output")
            store = "--objects" if card.side == "local" else "--cloud-objects"
            raise TooLarge(f"{_TOO_LARGE}; a worker with an object store ({store}) answers by claim")
        return codec.encode(
            Partial(
                subtask=subtask.id,
                deadline=subtask.deadline,
                output=output,
                confidence=answer.confidence if failure is None else None,
                cost=self._stated(subtask, answer, card),
                usage=answer.usage if objection is None else {},
                model=Model(name=card.model, version=card.version),
                timings=timings,
                error=failure,
                claim=claim,
            )
        )

    def _withheld(
        self, subtask: Subtask, answer: Answer, card: Card, timings: Timings, code: ErrorCode, why: str
    ) -> bytes:
        failure = Failure(code=code, message=f"{card.capability}: {why}")
        FAULTS.refused(failure)
        return codec.encode(
            Partial(
                subtask=subtask.id,
                deadline=subtask.deadline,
                cost=self.cost(subtask, answer, card),
                model=Model(name=card.model, version=card.version),
                timings=timings,
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
    sure = answer.confidence
    if sure is not None and not 0.0 <= sure <= 1.0:
        return Failure(code="bad_output", message=f"{card.capability}: the confidence is not within 0 and 1")
    usage: dict[Any, Any] = answer.usage
    for name, count in usage.items():
        # The reader would refuse the whole record, and its request would wait in vain.
        if not isinstance(name, str) or isinstance(count, bool) or not isinstance(count, int | float):
            return Failure(code="bad_output", message=f"{card.capability}: usage maps names to numbers")
    return None


def _key_text(record: Record) -> str | None:
    try:
        return record.key.decode() if record.key else None
    except UnicodeDecodeError:
        return None


def _peeked(record: Record) -> str | None:
    return peek_id(record.value or b"", record.headers)
