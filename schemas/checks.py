"""What each message must hold beside its types, checked before it is written and after it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schemas.bounds import MAX_MONEY
from schemas.cards import Heartbeat
from schemas.errors import Malformed
from schemas.messages import Checkpoint, Feedback, Message, Partial, Plan, Request, Result, Subtask
from schemas.values import INNER_DEPTH, check_value


def check_message(message: Message) -> None:
    """Refuses what no reader could decode again: odd free-form values, a confidence or cost out of bounds.

    Raises:
        Malformed: see `values.check_value`.
    """
    check = _CHECKS.get(type(message))
    if check is not None:
        check(message)


def _check_figures(confidence: float | None, cost: float) -> None:
    # Decoding refuses these too; the writer must learn it first, or the reader drops its record.
    kinds: tuple[type, ...] = (type(confidence), type(cost))
    if bool in kinds:
        raise Malformed("confidence and cost are numbers, no truth values")
    if confidence is not None and not 0 <= confidence <= 1:
        raise Malformed(f"confidence {confidence} lies outside 0 to 1")
    if not 0 <= cost <= MAX_MONEY:
        raise Malformed(f"cost {cost} lies outside 0 to {MAX_MONEY}")


def _check_request(message: Request) -> None:
    check_value(message.inputs, "inputs")
    if message.params:
        check_value(message.params, "params")


def _check_subtask(message: Subtask) -> None:
    check_value(message.inputs, "inputs", INNER_DEPTH)
    if message.params:
        check_value(message.params, "params", INNER_DEPTH)


def _check_plan(message: Plan) -> None:
    if message.inputs:
        check_value(message.inputs, "inputs", INNER_DEPTH)
    if message.params:
        check_value(message.params, "params", INNER_DEPTH)
    if message.merge is not None and message.merge.params:
        check_value(message.merge.params, "merge.params", INNER_DEPTH)
    for answer in (message.answer, message.stand_in):
        if answer is not None:
            _check_result(answer)


def _check_partial(message: Partial) -> None:
    _check_figures(message.confidence, message.cost)
    if message.output is not None:
        check_value(message.output, "output")


def _check_result(message: Result) -> None:
    _check_figures(message.confidence, message.cost)
    if message.output is not None:
        check_value(message.output, "output", INNER_DEPTH)


def _check_checkpoint(message: Checkpoint) -> None:
    _check_plan(message.plan)
    for partial in message.partials:
        _check_partial(partial)


def _check_feedback(message: Feedback) -> None:
    check_value(message.label, "label")


def _check_heartbeat(message: Heartbeat) -> None:
    for offer in message.offers:
        check_value(offer.card.input_schema, "input_schema", INNER_DEPTH)
        check_value(offer.card.output_schema, "output_schema", INNER_DEPTH)


_CHECKS: dict[type, Callable[[Any], None]] = {
    Request: _check_request,
    Subtask: _check_subtask,
    Plan: _check_plan,
    Partial: _check_partial,
    Result: _check_result,
    Checkpoint: _check_checkpoint,
    Feedback: _check_feedback,
    Heartbeat: _check_heartbeat,
}
