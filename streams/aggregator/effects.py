"""What passes between a table and whoever writes for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.messages import RequestInfo, Result
from streams.aggregator.join import Dispatch, Join


class Place(NamedTuple):
    """Where a record stands in the lane: its offset, append time in ms and size in bytes."""

    offset: int
    at: int
    size: int


class Answer(NamedTuple):
    """A result to publish under `key`, the scoped id."""

    key: str
    request: RequestInfo
    result: Result


@dataclass(slots=True)
class Effects:
    """What must be done: offsets finished once all of it is written, dispatches, answers, joins to write
    again; then, best effort, what `closed` joins leave behind, and the `unneeded` subtasks, whose
    reservations are free again. Answers that turn out `oversized` are written to the object store first."""

    finished: list[int] = field(default_factory=list)
    dispatches: list[tuple[Join, Dispatch]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    checkpoints: list[Join] = field(default_factory=list)
    closed: list[tuple[Join, Result]] = field(default_factory=list)
    unneeded: list[str] = field(default_factory=list)
    oversized: list[Answer] = field(default_factory=list)
