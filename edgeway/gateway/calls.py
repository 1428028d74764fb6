"""One call: who makes it, what it holds, and what its response says beside the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from starlette.requests import Request as Http
from starlette.responses import Response
from starlette.routing import Route

from edgeway.gateway.lobby import Seat
from edgeway.gateway.tracing import Entered
from workers.http.forms import Reply
from workers.http.problems import Refused

REQUEST_ID = "x-request-id"
_MOST_ID = 128
_ONCE = ("Authorization", "Content-Type", "Idempotency-Key", "Edgeway-Deadline-Ms")


@dataclass(slots=True)
class Call:
    """A call that was let in. `caller` is the tenant of its token, `id` that of the request once it is
    known."""

    http: Http
    caller: str | None
    seat: Seat
    id: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    trace: Entered | None = None


Work = Callable[[Call], Awaitable[Reply | Response]]


def any_method(path: str, handle: Callable[[Http], object]) -> Route:
    """A route that leaves it to `handle` which methods it takes, those that nobody knows among them."""
    route = Route(path, handle)
    route.methods = None
    return route


def correlation(http: Http, request_id: str | None) -> str | None:
    """What `X-Request-Id` says in the response: the caller's own word, or the id of the request."""
    given = http.headers.get(REQUEST_ID, "").strip()
    if given and given.isascii() and given.isprintable() and len(given) <= _MOST_ID:
        return given
    if request_id is not None and request_id.isascii() and request_id.isprintable():
        return request_id
    return None


def response_of(reply: Reply, headers: dict[str, str]) -> Response:
    """The response that says `reply`."""
    more = {"X-Content-Type-Options": "nosniff", **headers, **dict(reply.headers)}
    return Response(reply.body, reply.status, more, reply.media_type)


def check_head(http: Http, methods: Sequence[str]) -> None:
    """Refuse a call of which two things are said, and a method that a path does not take (none: any).

    Raises:
        Refused: 400, 405.
    """
    for name in _ONCE:
        if len(http.headers.getlist(name)) > 1:
            # A proxy may add one, and which of the two counts must not be left to chance.
            raise Refused("invalid_request", f"the header {name} stands twice; send it once")
    if methods:
        check_method(http, *methods)


def check_method(http: Http, *methods: str) -> None:
    """Refuse a method that a path does not take.

    Raises:
        Refused: 405.
    """
    if http.method not in methods and not (http.method == "HEAD" and "GET" in methods):
        shown = ", ".join(methods)
        raise Refused(
            "invalid_request",
            f"this path takes {shown}",
            status=405,
            title="Wrong method",
            headers=(("Allow", shown),),
        )
