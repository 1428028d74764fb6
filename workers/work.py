"""A subtask in a worker's hands."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from schemas.messages import Subtask
from streams.delivery import Lane
from workers.backends import Answer, Row


@dataclass(slots=True)
class Work:
    """One subtask, where it came from, and what the batcher must know.

    `appended` is the broker's append time in ms, `arrived` a steady clock's; `size` in bytes; `limit` the
    largest batch; `nonce` names its payment, once one has begun.
    """

    lane: Lane
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
    """A batch and its answers: `began` on the broker's clock, `service_ms` for the batch as a whole.

    `ran` is False where the model was not asked.
    """

    works: list[Work]
    answers: list[Answer]
    began: int
    service_ms: float
    ran: bool = True
