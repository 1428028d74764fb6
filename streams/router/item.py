"""A request on its way through the router."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.messages import Failure, Partial, Result
from streams.delivery import Lane, Output, Record
from streams.router.admission import Admitted
from streams.router.opened import Opened
from streams.router.plan import Planned
from streams.router.planner import Considered, Found
from streams.router.repeats import Standing

NOT_KEPT: Mapping[str, Partial] = {}


class Item:
    """One request. `planned` is set once it has a plan or an answer; `waits` while it waits for that of an
    equal request; `kept` are answers of its steps from the cache, by subtask id; `older` is an answer to an
    equal request that may stand in; `opened` is what its claims stand for, and `failure` why they stand for
    nothing."""

    __slots__ = (
        "admitted",
        "considered",
        "failure",
        "found",
        "kept",
        "lane",
        "older",
        "opened",
        "outputs",
        "planned",
        "record",
        "standing",
        "waits",
    )

    def __init__(self, admitted: Admitted, record: Record, lane: Lane) -> None:
        self.admitted = admitted
        self.record = record
        self.lane = lane
        self.standing: Standing = "first"
        self.found: Found | None = None
        self.considered: Considered | None = None
        self.planned: Planned | None = None
        self.kept = NOT_KEPT
        self.opened: Opened | None = None
        self.failure: Failure | None = None
        self.older: Result | None = None
        self.waits = False
        self.outputs: list[Output] = []
