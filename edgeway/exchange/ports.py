"""What the front doors ask of the exchange: requests out, answers in, and what happens in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal, NamedTuple, Protocol

from schemas.messages import Format, Request, Result

EventKind = Literal["accepted", "planned", "partial", "escalated", "result"]


class Event(NamedTuple):
    """A step on the way to an answer. `at` is ms on the broker's clock; `data` can be written as JSON.

    | kind | data |
    |---|---|
    | accepted | id, tenant |
    | planned | task, deadline (ms since the epoch), rules, steps: list of {step, side, capability, rule, after, attempts: list of {side, capability, triggers}} |
    | partial | step, side, attempt, confidence (None where it has none), error (a code, or None), cached |
    | escalated | step, from, to (sides), trigger (weak, silent or failed), attempt |
    | result | the Result as builtin values; bytes are base64 text |

    No event but `result` holds anything of the inputs or outputs.
    """  # noqa: E501 - a table

    kind: EventKind
    at: int
    data: dict[str, Any]


class Sent(NamedTuple):
    """A request that was written. `key` is its scoped id (schemas.ids.scoped), `digest` its content's."""

    key: str
    id: str
    digest: str


class Health(NamedTuple):
    """How an exchange does. `silent_s` is how long ago the brokers last answered the reader of results;
    `lag` how many results it has not read yet, as far as is known."""

    ok: bool
    silent_s: float
    lag: int
    waiting: int
    open: int
    remembered: int
    remembered_bytes: int


class Exchange(Protocol):
    """Sends requests and gives their answers. Used from one event loop, between entering and closing it."""

    async def send(
        self,
        request: Request,
        *,
        traceparent: str | None = None,
        tracestate: str | None = None,
        fmt: Format = "msgpack",
    ) -> Sent:
        """Write `request` (under a new id where it has none) and wait until it is acknowledged.

        Raises:
            SchemaError: it cannot be written; nothing was.
            KafkaUnreachable: too many requests are unacknowledged already; nothing was written.
            TopicsWrong: the topic is missing; nothing was written.
            SendUnknown: no acknowledgement in time. It may have been written, or may still be: send it again
                under the same id, which cannot execute twice.
            ExchangeClosed: the exchange is closed, or was while this waited.
        """

    async def answer(self, sent: Sent | str, timeout_s: float) -> Result:
        """The first Result of an id. Of a Sent also the `id_conflict` that answers its content; the answer
        to other content under its id is none. A str is a scoped id, and takes any answer.

        Raises:
            TimeoutError: none came within `timeout_s`.
            ExchangeFull: too many wait already.
            ExchangeClosed: the exchange is closed, or was while this waited.
        """

    def known(self, key: str) -> Result | None:
        """The answer of a scoped id among those remembered: None also where it was forgotten."""

    def is_open(self, key: str) -> bool:
        """Whether a request was sent through here under this scoped id and has no answer so far."""

    async def earlier(self, sent: Sent | str, since_ms: int) -> Result | None:
        """The answer among those appended since `since_ms`, read from the log. Of a Sent also the conflict
        that its content had then, as with `answer`: a conflict too is answered once.

        For what is not remembered any more; reads a partition or two and takes up to seconds.

        Raises:
            KafkaUnreachable: no answer from Kafka.
        """

    def events(
        self, sent: Sent | str, since_ms: int | None = None, *, timeout_s: float | None = None
    ) -> AsyncIterator[Event]:
        """What happens to a request, from its acceptance; the last one is `result`, which `answer` gives.

        Where the request was not sent through here, `since_ms` is the append time from which to look for it
        (else the last minute). Ends without a result after `timeout_s`; None is 30 s beyond its deadline.

        Raises:
            ExchangeFull: too many listen already.
            ExchangeClosed: the exchange is closed, or was while this waited.
        """

    async def cancel(self, request_id: str, tenant: str | None = None) -> None:
        """Say that the answer is no longer wanted; what has not started is not started. Acknowledged when
        this returns. Its answer comes all the same: `cancelled`, or what it was already.

        Raises: as `send`.
        """

    @property
    def is_healthy(self) -> bool:
        """Whether answers are being read and requests can be written."""

    def health(self) -> Health:
        """Figures for `/healthz` and metrics."""
