"""A subtask in a worker's hands."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from schemas.cards import Card
from schemas.messages import Failure, Subtask
from streams.delivery import Outgoing, Record
from workers.backends import Answer, Backend, Row
from workers.faults import told
from workers.sizes import weight


class Origin(Protocol):
    """Where works come from and their answers go: a lane of Kafka, or somebody who asks over HTTP."""

    alive: bool
    """False where nobody waits for the answers any more."""

    def settle(self, offsets: Sequence[int], outputs: Sequence[Outgoing]) -> None:
        """The works at `offsets` are answered by `outputs`, which are in the same order."""


@runtime_checkable
class Patient(Origin, Protocol):
    """An origin that nobody else will answer: it is told where the worker drops what waits."""

    def lost(self) -> None: ...


@dataclass(slots=True)
class Work:
    """One subtask, where it came from, and what the batcher must know.

    `appended` is the broker's append time in ms, `arrived` a steady clock's; `limit` the
    largest batch; `size` is about what it holds in memory; `nonce` names its payment, once one has begun.
    """

    lane: Origin
    offset: int
    appended: int
    subtask: Subtask
    join: bytes
    row: Row
    key: Hashable
    size: int
    limit: int
    arrived: float
    nonce: str = ""


class Run(NamedTuple):
    """A batch and its answers: the `card` of the backend that ran it, `began` on the broker's clock,
    `service_ms` for the batch as a whole.

    `ran` is False where the model was not asked.
    """

    works: list[Work]
    answers: list[Answer]
    card: Card
    began: int
    service_ms: float
    ran: bool = True


def work_of(
    origin: Origin, subtask: Subtask, row: Row, backend: Backend, *, offset: int, appended: int, join: bytes
) -> Work:
    """A work that has just arrived, for `backend`, whose `kin` may raise anything."""
    size = weight(row.inputs) + (weight(row.params) if row.params else 0)
    return Work(
        lane=origin,
        offset=offset,
        appended=appended,
        subtask=subtask,
        join=join,
        row=row,
        key=backend.kin(row),
        size=size,
        limit=limit_of(backend.card, subtask),
        arrived=time.monotonic() * 1000.0,
    )


def taken(
    origin: Origin, record: Record, subtask: Subtask, join: bytes, backend: Backend, inputs: dict[str, Any]
) -> Work | Failure:
    """The work of a record with these inputs; a failure where `backend` cannot say of what kind it is."""
    row, at = Row(inputs, subtask.params), record.timestamp
    try:
        return work_of(origin, subtask, row, backend, offset=record.offset, appended=at, join=join)
    except Exception as error:  # noqa: BLE001 - a backend's `kin` may raise anything
        return told(error, subtask.capability)


def limit_of(card: Card, subtask: Subtask) -> int:
    """The largest batch that a subtask may be in."""
    most, own = card.max_batch, subtask.max_batch
    return most if own is None else max(1, min(most, own))


def kin_of_work(backend: Backend, work: Work) -> Hashable:
    """The kin of a work that waits while its backend is replaced; its own where the new one refuses it, so
    that it fails alone.
    """
    try:
        return backend.kin(work.row)
    except Exception:  # noqa: BLE001 - a backend's `kin` may raise anything; its run tells the caller what
        return ("alone", id(work))
