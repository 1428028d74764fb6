"""Plans, subtasks and kept partials into records."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from schemas import codec, headers, ids, topics
from schemas.messages import Partial, Plan, RequestInfo, Side
from streams.delivery.records import Cleared, Outgoing, Output
from streams.privacy.clearance import clear
from streams.router.plan import Planned, Sent
from streams.tracing import PLAN, within

SOURCE = "edgeway/router"
_NONE: Mapping[str, Partial] = {}


def outputs_of(planned: Planned, kept: Mapping[str, Partial] = _NONE) -> list[Output]:
    """The plan's record and its subtasks'. `kept` are answers from the cache, by the id of the subtask that
    they make needless.

    Raises:
        Malformed: a message that cannot be written; TooLarge where it is more than a record holds.
        UnknownTopic: a capability that makes no topic.
        Forbidden: a cloud subtask under a high verdict. A bug, never a state: the request fails closed.
    """
    plan = planned.plan
    return [plan_record(plan), *[_step_record(sent, plan.request, kept) for sent in planned.first]]


def plan_record(plan: Plan) -> Outgoing:
    """The record of a plan on `joins`, keyed by scoped id."""
    info = plan.request
    scope = ids.scoped(info.tenant, info.id)
    parent = within(info.traceparent, scope, PLAN)
    return Outgoing(
        topics.JOINS,
        scope.encode(),
        codec.encode(plan),
        headers.build("plan", info.id, SOURCE, traceparent=parent, tracestate=info.tracestate),
    )


def _step_record(sent: Sent, info: RequestInfo, kept: Mapping[str, Partial]) -> Output:
    partial = kept.get(sent.subtask.id) if kept else None
    return _subtask_record(sent) if partial is None else _partial_record(partial, info)


def _subtask_record(sent: Sent) -> Output:
    subtask = sent.subtask
    value = codec.encode(subtask)
    record = Outgoing(
        _topic(sent.side, subtask.capability),
        subtask.id.encode(),
        value,
        headers.build(
            "subtask", subtask.id, SOURCE, traceparent=subtask.traceparent, tracestate=subtask.tracestate
        ),
    )
    return record if sent.side == "local" else Cleared(clear(sent.verdict, value), record)


def _partial_record(partial: Partial, info: RequestInfo) -> Outgoing:
    return Outgoing(
        topics.JOINS,
        ids.scoped(info.tenant, info.id).encode(),
        codec.encode(partial),
        headers.build(
            "partial", partial.subtask, SOURCE, traceparent=info.traceparent, tracestate=info.tracestate
        ),
    )


@lru_cache(maxsize=4096)
def _topic(side: Side, capability: str) -> str:
    return topics.capability_topic(side, capability)
