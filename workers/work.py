"""A subtask in a worker's hands."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from schemas.cards import Card
from schemas.messages import Subtask
from streams.delivery import Outgoing
from workers.backends import Answer, Backend, Row


class Origin(Protocol):
    """Where works come from and their answers go: a lane of Kafka, or somebody who asks over HTTP."""

    alive: bool
    """False where nobody waits for the answers any more."""

    def settle(self, offsets: Sequence[int], outputs: Sequence[Outgoing]) -> None:
        """The works at `offsets` are answered by `outputs`, which are in the same order."""


@dataclass(slots=True)
class Work:
    """One subtask, where it came from, and what the batcher must know.

    `appended` is the broker's append time in ms, `arrived` a steady clock's; `size` in bytes; `limit` the
    largest batch; `nonce` names its payment, once one has begun.
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


def kin_of_work(backend: Backend, work: Work) -> Hashable:
    """The kin of a work that waits while its backend is replaced; its own where the new one refuses it, so
    that it fails alone.
    """
    try:
        return backend.kin(work.row)
    except Exception:  # noqa: BLE001 - a backend's `kin` may raise anything; its run tells the caller what
        return ("alone", id(work))
