"""Requests that are answered by an error of the aggregator's own. Pure."""

from __future__ import annotations

import msgspec

from schemas.ids import conflicting, scoped
from schemas.messages import Failure, Plan, RequestInfo
from streams.aggregator.join import Join

OVERLOADED = Failure(
    code="overloaded", message="too many requests are open; send fewer at a time, or try again later"
)
CANCELLED = Failure(
    code="cancelled", message="its caller cancelled it; ask again under another id for an answer"
)


def same(digest: str | None, other: str | None) -> bool:
    """Whether two digests may be of one content; an unknown one conflicts with none."""
    return digest is None or other is None or digest == other


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
