"""What the outlet keeps of what is being written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from streams.delivery.records import Outgoing


@dataclass(slots=True)
class Ticket:
    """The writes of one settlement: `done` is called once, when all of them are acknowledged."""

    waiting: int
    done: Callable[[], None]

    def acknowledge(self) -> None:
        self.waiting -= 1
        if self.waiting == 0:
            self.done()


@dataclass(slots=True)
class Queue:
    items: deque[tuple[Outgoing, Ticket]] = field(default_factory=deque)
    sending: bool = False
