from __future__ import annotations

from streams.aggregator.join import Join
from streams.aggregator.timers import Timers
from tests.helpers.aggregation import T0, plan


def joins(count: int) -> dict[str, Join]:
    return {str(number): Join(plan(str(number)), T0) for number in range(count)}


def test_joins_come_out_when_they_are_due_the_earliest_first():
    known = joins(3)
    timers = Timers(known)
    for key, due in (("0", 30), ("1", 10), ("2", 20)):
        timers.set(known[key], due)
    assert timers.pop(9) is None
    assert [timers.pop(25).id, timers.pop(25).id, timers.pop(25)] == ["1", "2", None]


def test_an_earlier_time_overtakes_and_a_later_one_changes_nothing():
    known = joins(1)
    timers = Timers(known)
    timers.set(known["0"], 30)
    timers.set(known["0"], 40)
    assert len(timers) == 1
    timers.set(known["0"], 10)
    assert timers.pop(10) is known["0"]
    timers.set(known["0"], 50)
    assert timers.pop(30) is None
    assert timers.pop(50) is known["0"]


def test_closed_joins_do_not_stay():
    known = joins(5_000)
    timers = Timers(known)
    for join in known.values():
        timers.set(join, 1_000)
    for number in range(1, 5_000):
        del known[str(number)]
    timers.compact()
    assert len(timers) == 1
    assert timers.pop(1_000) is known["0"]
