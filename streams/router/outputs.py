"""Plans and subtasks into records."""

from __future__ import annotations

from functools import lru_cache

from schemas import codec, headers, ids, topics
from schemas.messages import Plan, Side, Verdict
from streams.delivery.records import Cleared, Outgoing, Output
from streams.privacy.clearance import clear
from streams.router.plan import Planned, Sent

SOURCE = "edgeway/router"


def outputs_of(planned: Planned) -> list[Output]:
    """The plan's record and its subtasks'.

    Raises:
        Malformed: a message that cannot be written; TooLarge where it is more than a record holds.
        UnknownTopic: a capability that makes no topic.
        Forbidden: a cloud subtask under a high verdict. A bug, never a state: the request fails closed.
    """
    verdict = planned.plan.request.privacy
    return [plan_record(planned.plan), *[_subtask_record(sent, verdict) for sent in planned.first]]


def plan_record(plan: Plan) -> Outgoing:
    """The record of a plan on `joins`, keyed by scoped id."""
    info = plan.request
    return Outgoing(
        topics.JOINS,
        ids.scoped(info.tenant, info.id).encode(),
        codec.encode(plan),
        headers.build("plan", info.id, SOURCE, traceparent=info.traceparent, tracestate=info.tracestate),
    )


def _subtask_record(sent: Sent, verdict: Verdict) -> Output:
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
    return record if sent.side == "local" else Cleared(clear(verdict, value), record)


@lru_cache(maxsize=4096)
def _topic(side: Side, capability: str) -> str:
    return topics.capability_topic(side, capability)
