"""The broker's clock, seen through sends that take their time."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from streams.delivery import BrokerClock


class Wall:
    def __init__(self) -> None:
        self.ms = 1_000_000.0

    def __call__(self) -> float:
        return self.ms


def send(clock: BrokerClock, wall: Wall, ahead: float, out: float, back: float) -> None:
    sent = wall.ms
    stamp = int(sent + out + ahead)
    wall.ms += out + back
    clock.observe(sent, wall.ms, stamp)


def test_without_a_send_it_is_the_local_clock() -> None:
    wall = Wall()
    assert BrokerClock(wall).now() == 1_000_000


@given(
    ahead=st.integers(-100_000, 100_000),
    trips=st.lists(st.tuples(st.floats(0, 500), st.floats(0, 500)), min_size=1, max_size=30),
)
@settings(deadline=None)
def test_it_is_within_half_the_shortest_round_trip(ahead: int, trips: list[tuple[float, float]]) -> None:
    wall = Wall()
    clock = BrokerClock(wall)
    for out, back in trips:
        send(clock, wall, ahead, out, back)
    passed = sum(out + back for out, back in trips)
    shortest = min(out + back for out, back in trips)
    # What is old counts for a little less, and stamps are whole ms.
    assert abs(clock.now() - (wall.ms + ahead)) <= shortest / 2 + passed / 2000 + 3


def test_a_clock_that_is_set_anew_is_followed() -> None:
    wall = Wall()
    clock = BrokerClock(wall)
    rng = random.Random(3)
    for _ in range(50):
        send(clock, wall, 0, 1, 1)
    for _ in range(50):
        wall.ms += 200
        send(clock, wall, -60_000, rng.uniform(1, 3), 2)
    assert abs(clock.now() - (wall.ms - 60_000)) < 5


def test_a_record_that_was_read_sets_a_lower_bound() -> None:
    wall = Wall()
    clock = BrokerClock(wall)
    clock.at_least(1_000_500)
    assert clock.now() == 1_000_500
    clock.at_least(1_000_100)
    assert clock.now() == 1_000_500


def test_a_broker_that_gives_no_time_teaches_nothing() -> None:
    wall = Wall()
    clock = BrokerClock(wall)
    clock.observe(wall.ms, wall.ms, -1)
    assert clock.now() == 1_000_000
