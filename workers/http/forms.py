"""What a call and a response are, whatever serves them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from workers.backends import Row

Wire = Literal["json", "msgpack"]
JSON, MSGPACK = "application/json", "application/msgpack"


class Call(NamedTuple):
    """What a request asks of a capability. `size` is that of the body in bytes, `digest` its hash."""

    row: Row
    id: str | None
    deadline_ms: int
    max_batch: int | None
    size: int
    digest: bytes
    wire: Wire
    """The format that the answer should have."""
    traceparent: str | None = None


class Reply(NamedTuple):
    """A whole response."""

    status: int
    media_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
