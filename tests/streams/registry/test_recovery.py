"""A slow or failing spell as the breaker goes through it: beats of real figures, calls as let through."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from schemas.cards import Card, Heartbeat, Offer
from streams.registry import BEAT_MS, Registry
from workers.figures import Figures, Run

STEP_MS = 50
SPELL = range(20_000, 50_000)
END_MS = 100_000
SLOW_MS = 600.0
CARD = Card(capability="c", side="cloud", version="1", model="m", max_cost=0.0)


class Course(NamedTuple):
    """What happened, in ms: when the breaker was seen to open and to close for good, and calls made while it
    was not closed."""

    opened: int | None
    closed: int | None
    trials: int


class Worker:
    def __init__(self, fails: bool) -> None:
        self.figures = Figures()
        self.fails = fails
        self.open: list[tuple[int, float]] = []

    def call(self, now: int) -> None:
        bad = now in SPELL
        self.open.append((now + int(SLOW_MS if bad and not self.fails else 60), SLOW_MS if bad else 60.0))

    def work(self, now: int) -> None:
        for ended, took in [each for each in self.open if each[0] <= now]:
            slow = took == SLOW_MS
            failed = slow and self.fails
            self.figures.add(Run(float(ended), 60.0 if failed else took, 1, int(failed)))
            self.open.remove((ended, took))

    def beat(self, name: str, now: int) -> Heartbeat:
        live = self.figures.live(float(now), in_flight=len(self.open))
        return Heartbeat(worker=name, offers=(Offer(card=CARD, live=live),))


def course(
    per_s: float, *, slow_ms: int = 500, workers: int = 1, later: float = 0.0, fails: bool = False
) -> Course:
    """`per_s` requests a second that would go to the cloud. A share `later` of them is called by the
    aggregator and not by the router, as a weak attempt is, in a tenth of the cases."""
    registry = Registry({"c": slow_ms})
    pool = [Worker(fails) for _ in range(workers)]
    chance = random.Random(7)
    opened = closed = None
    trials, due = 0, 0.0
    for now in range(0, END_MS, STEP_MS):
        for worker in pool:
            worker.work(now)
        if now % BEAT_MS == 0:
            for index, worker in enumerate(pool):
                registry.observe(worker.beat(f"w{index}", now), now)
        due += per_s * STEP_MS / 1000
        while due >= 1:
            due -= 1
            target = registry.view(now).at("cloud", "c")
            assert target is not None
            if target.gate in ("slow", "failing"):
                opened = opened or now
                closed = None
                continue
            if target.gate == "half_open":
                closed = None
            elif opened is not None:
                closed = closed or now
            is_later = chance.random() < later
            registry.admit("cloud", "c", now, sent=not is_later)
            if not is_later or chance.random() < 0.1:
                trials += target.gate == "half_open"
                chance.choice(pool).call(now)
    return Course(opened, closed, trials)


@pytest.mark.parametrize(
    ("per_s", "workers"), [(1.0, 1), (5.0, 1), (20.0, 1), (200.0, 1), (5.0, 3), (20.0, 3), (200.0, 3)]
)
@pytest.mark.parametrize("fails", [False, True])
def test_it_opens_and_closes_again_by_itself(per_s, workers, fails):
    seen = course(per_s, workers=workers, fails=fails)
    assert seen.opened is not None
    # Ten calls, of which more than one is slow, and the next beat. Failing: more than half of ten seconds.
    patience = 3 * BEAT_MS + 1000 * 12 * workers / per_s + (8_000 if fails else 0)
    assert seen.opened - SPELL.start <= patience
    assert seen.closed is not None
    assert seen.closed - SPELL.stop <= 30_000
    assert seen.trials <= 60 * workers


def test_later_attempts_close_it_too():
    seen = course(20.0, later=1.0)
    assert seen.opened is not None
    assert seen.closed is not None
    assert seen.closed - SPELL.stop <= 30_000


@pytest.mark.parametrize("per_s", [5.0, 20.0, 200.0])
def test_a_capability_that_may_be_slow_stays_closed(per_s):
    assert course(per_s, slow_ms=5000) == Course(None, None, 0)
