"""A worker whose model hangs: the target goes on with the others, and closes where there are none."""

from __future__ import annotations

import pytest

from schemas.cards import Card, Heartbeat, Live, Offer
from streams.registry import BEAT_MS, Registry
from streams.registry.breaker import OPEN_MS, SLOW_MS, TRIALS
from streams.registry.registry import HUNG_FACTOR, HUNG_MS

KEY = ("local", "nlp/intent")


def beat(
    worker: str, *, served: int = 100, busy_ms: float = 0.0, version: str = "1", **live: float
) -> Heartbeat:
    card = Card(capability=KEY[1], side="local", version=version, model="m")
    shown = Live(served=served, busy_ms=busy_ms, **{"p50_ms": 5.0, "p90_ms": 9.0, **live})  # type: ignore[arg-type]
    return Heartbeat(worker=worker, offers=(Offer(card=card, live=shown),))


def hang(registry: Registry, worker: str, since: int, beats: int = 6) -> int:
    """Beats of a worker that stands still from `since` on; the time of the last one."""
    at = since
    for number in range(beats):
        at = since + number * BEAT_MS
        registry.observe(beat(worker, busy_ms=float(at - since), queue=40, in_flight=8), at)
    return at


def test_the_breaker_opens_by_the_heartbeat_alone_and_stays_open():
    registry = Registry()
    registry.observe(beat("w1"), 0)
    at = hang(registry, "w1", 0, 3)
    assert registry.view(at).at(*KEY).gate == "closed", "4 s prove nothing"
    for _ in range(10):
        at += BEAT_MS
        registry.observe(beat("w1", busy_ms=float(at)), at)
        target = registry.view(at).at(*KEY)
        assert (target.gate, target.figures.hung, target.figures.stands) == ("slow", 1, True)
        assert registry.view(at + BEAT_MS - 1).at(*KEY).gate == "slow", "no trial goes to what hangs"


def test_it_opens_although_too_few_calls_were_served_for_any_other_judgement():
    registry = Registry()
    registry.observe(beat("w1", served=0), 0)
    registry.observe(beat("w1", served=0, busy_ms=HUNG_MS + 1.0), BEAT_MS)
    assert registry.view(BEAT_MS).at(*KEY).gate == "slow"


def test_after_a_restart_a_few_trials_close_it():
    registry = Registry()
    registry.observe(beat("w1"), 0)
    at = hang(registry, "w1", 0)
    registry.observe(beat("w1", served=0), at + BEAT_MS)
    assert registry.view(at + BEAT_MS).at(*KEY).gate == "slow"
    half = at + OPEN_MS + 1
    assert registry.view(half).at(*KEY).gate == "half_open"
    registry.observe(beat("w1", served=TRIALS), half + BEAT_MS)
    assert registry.view(half + BEAT_MS).at(*KEY).gate == "closed"


def test_one_of_several_counts_in_nothing_but_the_cards():
    registry = Registry()
    for worker in ("w1", "w2", "w3"):
        registry.observe(beat(worker, queue=2, in_flight=1, version=worker), 0)
    at = 0
    for number in range(1, 7):
        at = number * BEAT_MS
        registry.observe(beat("w1", busy_ms=float(at), queue=40, in_flight=8), at)
        for worker in ("w2", "w3"):
            registry.observe(beat(worker, served=200, queue=2, in_flight=1, version=worker), at)
    target = registry.view(at).at(*KEY)
    assert target.gate == "closed"
    figures = target.figures
    assert (figures.workers, figures.hung, figures.stands) == (2, 1, False)
    assert (figures.queue, figures.served) == (6, 400), (
        "40 rows behind the hung one are no queue of the others"
    )
    assert figures.versions == ("1", "w2", "w3"), "calls may still reach it"


def test_a_long_run_of_one_that_serves_on_by_other_threads_is_no_hang():
    registry = Registry()
    for number in range(20):
        at = number * BEAT_MS
        registry.observe(beat("w1", served=100 + number, busy_ms=float(at)), at)
        assert registry.view(at).at(*KEY).gate == "closed"


@pytest.mark.parametrize("slow_ms", [SLOW_MS, 20_000])
def test_what_counts_as_long_follows_slow_ms(slow_ms: int):
    registry = Registry({KEY[1]: slow_ms})
    limit = max(HUNG_MS, HUNG_FACTOR * slow_ms)
    registry.observe(beat("w1"), 0)
    registry.observe(beat("w1", busy_ms=float(limit)), BEAT_MS)
    assert registry.view(BEAT_MS).at(*KEY).gate == "closed"
    registry.observe(beat("w1", busy_ms=limit + 1.0), 2 * BEAT_MS)
    assert registry.view(2 * BEAT_MS).at(*KEY).gate == "slow"


def test_all_but_a_new_worker_hang_and_it_takes_over():
    registry = Registry()
    registry.observe(beat("w1"), 0)
    at = hang(registry, "w1", 0)
    registry.observe(beat("w2", served=0), at)
    target = registry.view(at).at(*KEY)
    assert (target.figures.workers, target.figures.stands, target.figures.queue) == (1, False, 0)
    later = at + OPEN_MS + 1
    registry.observe(beat("w1", busy_ms=float(later)), later)
    registry.observe(beat("w2", served=0), later)
    assert registry.view(later).at(*KEY).gate == "half_open"
