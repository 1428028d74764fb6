"""What is written instead of a record that Kafka will never accept, so that its request is still answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from schemas import codec, headers, ids
from schemas.errors import ErrorCode, SchemaError
from schemas.messages import Failure, Partial, Subtask
from schemas.topics import DEAD_LETTERS, JOINS, parse_capability_topic
from streams.delivery import Outgoing, Output, Undeliverable


def instead_of(record: Outgoing, error: Undeliverable) -> Sequence[Output]:
    """For a subtask an error partial; for a record on `joins`, a dead letter (its request then ends at its
    deadline).

    Nothing for a copy of a result to a `reply_to` topic: the answer itself is on `results`.
    """
    try:
        parse_capability_topic(record.topic)
        subtask = codec.decode(record.value, Subtask)
        request = ids.parse_subtask_id(subtask.id).request
    except SchemaError:
        return (
            ()
            if record.topic != JOINS
            else (Outgoing(DEAD_LETTERS, record.key, record.value, record.headers),)
        )
    failure = Failure(code=cast("ErrorCode", error.code), message=str(error))
    partial = Partial(subtask=subtask.id, deadline=subtask.deadline, error=failure)
    about = headers.build("partial", subtask.id, "edgeway/outlet")
    return (Outgoing(JOINS, request.encode(), codec.encode(partial), about),)
