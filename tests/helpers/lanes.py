"""A lane, records and a clock for tests of agents without Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from schemas import codec
from schemas.messages import Failure, Partial, Subtask


@dataclass
class FakeRecord:
    value: bytes | None
    offset: int = 0
    key: bytes | None = None
    timestamp: int = 1_000_000
    topic: str = "local.vision.digits"
    partition: int = 0
    headers: Sequence[tuple[str, bytes]] = ()


@dataclass
class FakeLane:
    """Remembers what was settled and failed; a dead one is deaf, as the real one."""

    topic: str = "local.vision.digits"
    partition: int = 0
    epoch: int = 1
    start: int = 0
    end: int = 0
    alive: bool = True
    writing_bytes: int = 0
    settled: list[int] = field(default_factory=list)
    calls: list[list[int]] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    failed: list[tuple[int, Failure]] = field(default_factory=list)

    def settle(self, offsets: Iterable[int], outputs: Sequence[Any] = ()) -> None:
        if self.alive:
            self.calls.append(list(offsets))
            self.settled.extend(self.calls[-1])
            self.outputs.extend(outputs)

    def fail(self, record: FakeRecord, failure: Failure) -> None:
        if self.alive:
            self.failed.append((record.offset, failure))

    def partials(self) -> dict[int, Partial]:
        """The partials by the offset that they settled."""
        found = [codec.decode(output.value, Partial) for output in self.outputs]
        return dict(zip(self.settled, found, strict=True))


@dataclass
class FakeClock:
    ms: int = 1_000_000

    def now(self) -> int:
        return self.ms


def subtask(number: int = 0, **fields: Any) -> Subtask:
    """A subtask with everything that it needs."""
    base = Subtask(id=f"r{number}/step/local/0", capability="vision/digits", deadline=1_030_000)
    return msgspec.structs.replace(base, **fields)


def record(work: Subtask, offset: int = 0, **fields: Any) -> FakeRecord:
    return FakeRecord(codec.encode(work), offset, key=work.id.encode(), **fields)
