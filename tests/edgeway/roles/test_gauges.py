"""How old, how many and how far behind: what a process shows of its inlets."""

from __future__ import annotations

from typing import Any

from prometheus_client import REGISTRY

from edgeway.roles.gauges import Gauges
from streams.delivery import Place
from streams.delivery.lane import Lane
from streams.delivery.suspects import Suspicion
from tests.helpers.delivery import LogRecord

GROUP = "edgeway.test-gauges"


class Inlet:
    """Two lanes of `in`, and none of `idle`."""

    def __init__(self) -> None:
        self.settings = self
        self.group = GROUP
        self.lanes = {number: self._lane(number) for number in range(2)}

    def _lane(self, number: int) -> Lane:
        return Lane(
            Place("in", number), 1, 0, 0, self, group=GROUP, refuse=lambda *_: (), suspicion=Suspicion()
        )

    def post(self, outputs: Any, done: Any) -> None:
        done()

    def lag(self) -> dict[str, int]:
        return {"in": 7}


def shown(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"edgeway_{name}", {"group": GROUP, **labels})


def test_the_age_of_the_oldest_record_is_that_of_all_lanes_and_falls_as_it_is_finished() -> None:
    inlet = Inlet()
    gauges = Gauges(inlet, ("in", "idle"))  # type: ignore[arg-type]
    for number, lane in inlet.lanes.items():
        at = 1_000 + 4_000 * number
        lane.take([LogRecord("in", number, 0, at, value=b"x" * 10)])
    gauges.show(9_000)
    assert shown("oldest_record_seconds", topic="in") == 8.0
    assert shown("oldest_record_seconds", topic="idle") == 0.0
    assert (shown("open_records"), shown("open_bytes")) == (2, 20)
    assert (shown("lag_records", topic="in"), shown("lag_records", topic="idle")) == (7, 0)
    inlet.lanes[0].settle([0])
    gauges.show(9_000)
    assert shown("oldest_record_seconds", topic="in") == 4.0
    inlet.lanes[1].settle([0])
    gauges.show(9_000)
    assert shown("oldest_record_seconds", topic="in") == 0.0
    assert (shown("open_records"), shown("open_bytes")) == (0, 0)
