"""What the aggregator writes: results, dispatches, checkpoints. Whatever an output holds, its request gets
an answer."""

from __future__ import annotations

import logging
from collections.abc import Container

import msgspec

from schemas import headers
from schemas.claims import INLINE_BYTES
from schemas.codec import encode
from schemas.errors import ErrorCode, Malformed, TooLarge, UnknownTopic
from schemas.ids import subtask_id
from schemas.messages import Failure, Format, RequestInfo, Result, Subtask
from schemas.topics import JOINS, RESULTS, capability_topic, reply_topic
from schemas.values import least_size
from streams.aggregator.clearing import Load, claimed_load, load_for_cloud, must_be_examined
from streams.aggregator.effects import Answer
from streams.aggregator.join import Dispatch, Join
from streams.claims import NO_OBJECTS, ClaimError, Objects
from streams.claims.loading import holds_claims
from streams.delivery.records import Cleared, Outgoing, Output
from streams.privacy.clearance import Forbidden, clear
from streams.tracing import RESULT, of_subtask, within

SOURCE = "edgeway/aggregator"
log = logging.getLogger(__name__)


class Publisher:
    """Encodes for one aggregator. `objects` is where large payloads lie; `replies` are the topics that a
    `reply_to` may name; set it anew when rules change."""

    def __init__(
        self, replies: Container[str] = frozenset(), source: str = SOURCE, objects: Objects = NO_OBJECTS
    ) -> None:
        self._objects = objects
        self.replies = replies
        self._source = source

    def is_oversized(self, answer: Answer) -> bool:
        """Whether the output is too large for a record, and there is a store for it."""
        result = answer.result
        if self._objects.local is None or result.output is None or result.error is not None:
            return False
        if least_size(result.output, INLINE_BYTES) <= INLINE_BYTES:
            return False
        try:
            encode(result, answer.request.reply_format)
        except TooLarge:
            return True
        except Malformed:
            return False
        return False

    def answer(self, answer: Answer, partition: int) -> list[Output]:
        """The result for `results`, and a copy for the caller's own topic where that is allowed."""
        request, result = answer.request, answer.result
        copy_to = self._copy_to(request)
        if request.reply_to is not None and copy_to is None:
            warning = (
                f"reply_to {request.reply_to!r} is not listed in the rules; the answer is on {RESULTS} alone"
            )
            result = msgspec.structs.replace(result, warnings=(*result.warnings, warning))
        fmt = request.reply_format
        value = _written(result, fmt)
        key = answer.key.encode()
        parent = within(request.traceparent, answer.key, RESULT)
        found = headers.build("result", result.id, self._source, fmt, parent, request.tracestate)
        outputs: list[Output] = [Outgoing(RESULTS, key, value, found, partition)]
        if copy_to is not None:
            outputs.append(Outgoing(copy_to, key, value, found))
        return outputs

    def must_examine(self, join: Join, dispatch: Dispatch) -> bool:
        """Whether `subtask` examines what is to be sent, which takes up to some ms."""
        step = join.steps[dispatch.step].step
        return step.attempts[dispatch.attempt].side == "cloud" and (
            must_be_examined(join.plan, step) or holds_claims(dispatch.inputs)
        )

    async def examined(self, join: Join, dispatch: Dispatch) -> Output | Failure:
        """As `subtask`, for a dispatch that must be examined; what it claims is read, and copied to the
        cloud's store."""
        if not holds_claims(dispatch.inputs):
            return self.subtask(join, dispatch)
        step = join.steps[dispatch.step].step
        try:
            load = await claimed_load(join.plan, step, dispatch.inputs, self._objects)
        except ClaimError as error:
            return Failure(code="no_placement", message=f"cloud is closed to this request: {error}")
        return self._record(join, dispatch, load)

    def subtask(self, join: Join, dispatch: Dispatch) -> Output | Failure:
        """The subtask of a dispatch; a failure where it must not or cannot be sent."""
        plan, step = join.plan, join.steps[dispatch.step].step
        if step.attempts[dispatch.attempt].side == "local":
            load = Load(dispatch.inputs, plan.params, plan.request.privacy)
        else:
            load = load_for_cloud(plan, step, dispatch.inputs)
        return self._record(join, dispatch, load)

    def _record(self, join: Join, dispatch: Dispatch, load: Load) -> Output | Failure:
        request, step = join.plan.request, join.steps[dispatch.step].step
        attempt = step.attempts[dispatch.attempt]
        span = of_subtask(step.name, attempt.side, dispatch.attempt)
        subtask = Subtask(
            id=subtask_id(join.id, step.name, attempt.side, dispatch.attempt),
            capability=attempt.capability,
            deadline=request.deadline,
            inputs=load.inputs,
            params=load.params,
            trigger=dispatch.trigger,
            tenant=request.tenant,
            max_batch=step.max_batch,
            max_cost=attempt.max_cost,
            traceparent=within(request.traceparent, join.id, span),
            # What a caller's tracer writes there has not been examined.
            tracestate=None if attempt.side == "cloud" else request.tracestate,
        )
        try:
            topic = capability_topic(attempt.side, attempt.capability)
            value = encode(subtask)
            found = headers.build(
                "subtask", subtask.id, self._source, "msgpack", subtask.traceparent, subtask.tracestate
            )
            record = Outgoing(topic, subtask.id.encode(), value, found)
            return record if attempt.side == "local" else Cleared(clear(load.verdict, value), record)
        except Forbidden as error:
            return Failure(code="no_placement", message=f"{attempt.side} is closed to this request: {error}")
        except UnknownTopic as error:
            return Failure(code="unknown_capability", message=str(error))
        except Malformed as error:
            return Failure(code=_code(error, "too_large", "bad_input"), message=f"subtask not sent: {error}")

    def checkpoint(self, join: Join, partition: int) -> Output | None:
        """The join written again; None where it cannot be, so that its old records must go on to hold it."""
        try:
            value = encode(join.checkpoint())
        except Malformed as error:
            log.warning(
                "an open join cannot be checkpointed and pins its partition until it is answered: %s", error
            )
            return None
        request = join.plan.request
        found = headers.build(
            "checkpoint", request.id, self._source, "msgpack", request.traceparent, request.tracestate
        )
        return Outgoing(JOINS, join.id.encode(), value, found, partition)

    def _copy_to(self, request: RequestInfo) -> str | None:
        if request.reply_to is None:
            return None
        try:
            topic = reply_topic(request.reply_to)
        except UnknownTopic:
            return None
        return topic if topic in self.replies else None


def _written(result: Result, fmt: Format) -> bytes:
    """The record of `result`; without its output, and with the error, where that cannot be written."""
    try:
        return encode(result, fmt)
    except Malformed as error:
        code = _code(error, "result_too_large", "bad_output")
        more = "; an object store (--objects) takes larger ones" if code == "result_too_large" else ""
        failure = Failure(code=code, message=f"output left out: {error}{more}")
    stripped = msgspec.structs.replace(
        result, status="error", output=None, confidence=None, error=failure, claim=None
    )
    try:
        return encode(stripped, fmt)
    except Malformed:
        # What remains is ours: ids, a code and words that passed a decoder before.
        bare = Result(
            id=result.id,
            status="error",
            error=failure,
            tenant=result.tenant,
            task=result.task,
            digest=result.digest,
        )
        return encode(bare, fmt)


def _code(error: Malformed, too_large: ErrorCode, otherwise: ErrorCode) -> ErrorCode:
    return too_large if isinstance(error, TooLarge) else otherwise
