"""Requests that are answered by an error of the aggregator's own. Pure."""

from __future__ import annotations

import msgspec

from schemas.ids import conflicting, parse_subtask_id, scoped, unscoped
from schemas.messages import Checkpoint, Failure, Plan, RequestInfo
from streams.aggregator.join import Join

OVERLOADED = Failure(
    code="overloaded", message="too many requests are open; send fewer at a time, or try again later"
)


def same(digest: str | None, other: str | None) -> bool:
    """Whether two digests may be of one content; an unknown one conflicts with none."""
    return digest is None or other is None or digest == other


def unknown(key: str, now: int) -> RequestInfo:
    """A request of which only the scoped id is known."""
    tenant, request_id = unscoped(key)
    return RequestInfo(id=request_id, tenant=tenant, accepted=now, deadline=now)


def conflict_key(request: RequestInfo, digest: str | None) -> str:
    """The scoped id under which the content of `digest` is refused where the id of `request` is another's."""
    return scoped(request.tenant, conflicting(request.id, digest or ""))


def conflict_of(plan: Plan, now: int) -> Join:
    """A repeated id with other content: refused under an id of its own, which the same content always
    gets."""
    request = plan.request
    other = conflicting(request.id, request.digest or "")
    message = f"its id stands for another request already; choose a new one (this is answered as {other})"
    renamed = msgspec.structs.replace(
        plan,
        request=msgspec.structs.replace(request, id=other),
        answer=None,
        cache=None,
        stand_in=None,
    )
    join = Join(renamed, now)
    join.refuse(Failure(code="id_conflict", message=message))
    return join


def rightful(refused: Join, checkpoint: Checkpoint, at: int) -> Join:
    """The join of `checkpoint` in the place of `refused`, which stands under its id for other content: it
    inherits all records, so that none is finished before it is answered itself."""
    join = Join.restore(checkpoint, at)
    for partial in refused.partials.values():
        join.take(partial, parse_subtask_id(partial.subtask), at)
    join.offsets, join.size, join.checkpoint_at = refused.offsets, refused.size, refused.checkpoint_at
    refused.is_over = True
    return join
