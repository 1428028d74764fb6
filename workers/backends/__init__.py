"""Backends: what can infer. One file each; `workers.backends.registry` finds them by kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from schemas.cards import Card
from schemas.messages import Failure
from schemas.rules import Rules

_encode = msgspec.msgpack.Encoder(order="sorted").encode


class Row(NamedTuple):
    """What one subtask asks."""

    inputs: dict[str, Any]
    params: dict[str, Any]


class Call(NamedTuple):
    """Which subtask a row is of, until when (`time.monotonic()`) an answer is worth waiting for, and what the
    service is told as traceparent."""

    subtask: str
    until: float
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a backend says to one row: an output, or an error.

    `confidence` in [0, 1]; `cost` in the currency of the prices, None = the card's cost per call; `usage`
    counts what was used (`tokens`, `images`).
    """

    output: Any = None
    confidence: float | None = None
    cost: float | None = None
    usage: dict[str, float] = field(default_factory=dict)
    error: Failure | None = None


@runtime_checkable
class Backend(Protocol):
    """One capability on one side."""

    @property
    def card(self) -> Card: ...

    async def load(self) -> None:
        """Make ready and warm up; awaited once before any `infer`.

        A service elsewhere that is away is no reason to raise: it may come back (see Waits).

        Raises:
            LoadError: it cannot be made ready.
        """

    def kin(self, row: Row) -> Hashable:
        """Rows of equal kin may share a batch."""

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        """The answers, one a row, in order. Blocks: it is called in a thread, one call at a time for each
        thread.

        Where it raises, the rows are tried again one by one, so that a bad row fails alone; ValueError is
        `bad_input`, anything else `backend_error`.
        """

    def close(self) -> None:
        """Let go of what `load` took. No `infer` runs or follows."""


@runtime_checkable
class RemoteBackend(Backend, Protocol):
    """A backend that asks elsewhere: it is told the subtasks, which make its calls idempotent and bound them
    in time.
    """

    def infer_calls(self, rows: Sequence[Row], calls: Sequence[Call]) -> list[Answer]:
        """As `infer`, with one call a row."""


@runtime_checkable
class OneByOne(Backend, Protocol):
    """A backend that may run its rows one after the other."""

    @property
    def one_by_one(self) -> bool:
        """Whether it does: a batch then saves little, and its first answer waits for its last."""


@runtime_checkable
class Computes(Protocol):
    """A backend that knows what computes for it."""

    @property
    def provider(self) -> str:
        """For example `CPUExecutionProvider`; empty before it is loaded."""

    def gpu(self) -> float | None:
        """The share in [0, 1] of the last while that the GPU was at work; None where there is none to ask.
        Never waits."""


@runtime_checkable
class Waits(Protocol):
    """A backend that is served before what it asks elsewhere is there: until then it refuses its rows."""

    @property
    def waits_for(self) -> str:
        """What it still waits for and why, in words for people; empty where it is ready."""


@runtime_checkable
class Reachable(Protocol):
    """A backend that learns whether the service that it asks elsewhere is there."""

    def reachable(self) -> bool | None:
        """By its last answers; None: not known, or never asked. While it is False rows are refused. Never
        waits, and asks nothing.
        """


@runtime_checkable
class RulesFollower(Protocol):
    """A backend that reads the rules."""

    def prepare(self, rules: Rules) -> Callable[[], None]:
        """Look at new rules; what is given makes the backend follow them, once everybody agrees.

        Raises:
            WorkerError: rules that it cannot follow.
        """


def kin_of(row: Row) -> Hashable:
    """The kin of backends without shapes: the same input names and equal params."""
    inputs, params = row
    names = tuple(inputs) if len(inputs) == 1 else tuple(sorted(inputs))
    return (names, _encode(params)) if params else names
