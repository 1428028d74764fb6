"""Workers whose service elsewhere is away: they count in nothing, and where all are nothing is tried."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from schemas.cards import Card, Heartbeat, Live, Offer
from streams.registry import BEAT_MS, Registry
from streams.registry.breaker import OPEN_MS, TRIALS
from streams.registry.registry import HUNG_MS

KEY = ("cloud", "nlp/say")


def beat(worker: str = "w1", reachable: bool | None = None, *, served: int = 100, **live: float) -> Heartbeat:
    card = Card(capability=KEY[1], side="cloud", version="1", model="m", max_cost=0.0)
    shown = Live(served=served, reachable=reachable, **{"p50_ms": 5.0, "p90_ms": 9.0, **live})  # type: ignore[arg-type]
    return Heartbeat(worker=worker, offers=(Offer(card=card, live=shown),))


def gate(registry: Registry, now: int) -> str:
    target = registry.view(now).at(*KEY)
    assert target is not None
    return target.gate


def test_it_closes_by_one_beat_and_no_trial_is_spent_while_they_say_so():
    registry = Registry()
    registry.observe(beat(served=1), 0)
    assert gate(registry, 0) == "closed"
    for at in range(BEAT_MS, 20 * OPEN_MS, BEAT_MS):
        registry.observe(beat(reachable=False, served=1 + at), at)
        assert gate(registry, at) == "away"
        assert gate(registry, at + BEAT_MS - 1) == "away"


def test_it_is_half_open_at_once_and_closed_by_the_first_good_figures():
    registry = Registry()
    registry.observe(beat(reachable=False), 0)
    registry.observe(beat(reachable=True), 700)
    assert gate(registry, 700) == "half_open"
    for _ in range(TRIALS):
        registry.admit(*KEY, 701)
    assert gate(registry, 702) == "failing", "the trials are out"
    registry.observe(beat(reachable=True, served=100 + TRIALS), 700 + BEAT_MS)
    assert gate(registry, 700 + BEAT_MS) == "closed"


def test_back_and_failing_all_the_same_opens_it_as_ever():
    registry = Registry()
    registry.observe(beat(reachable=False), 0)
    registry.observe(beat(reachable=True), 700)
    registry.observe(beat(reachable=True, served=100 + TRIALS, error_ratio=1.0), 700 + BEAT_MS)
    assert gate(registry, 700 + BEAT_MS) == "failing"
    assert gate(registry, 700 + BEAT_MS + OPEN_MS) == "half_open"


def test_not_known_with_bad_figures_waits_as_ever():
    registry = Registry()
    registry.observe(beat(reachable=False), 0)
    registry.observe(beat(reachable=None, error_ratio=1.0), 700)
    assert gate(registry, 700) == "failing"
    assert gate(registry, 700 + OPEN_MS) == "half_open"


def test_a_worker_that_was_restarted_knows_nothing_and_is_tried():
    registry = Registry()
    registry.observe(beat(reachable=False), 0)
    registry.observe(beat(reachable=None, served=0), 700)
    assert gate(registry, 700) == "half_open"


def test_one_of_several_counts_in_nothing_but_the_cards():
    registry = Registry()
    registry.observe(beat("w1", True, queue=2, in_flight=1), 0)
    registry.observe(beat("w2", False, queue=40, in_flight=8, error_ratio=1.0, p50_ms=900.0, p90_ms=999.0), 0)
    target = registry.view(0).at(*KEY)
    assert target is not None
    figures = target.figures
    assert target.gate == "closed"
    assert (figures.workers, figures.away, figures.gone, figures.hung) == (1, 1, False, 0)
    assert (figures.queue, figures.served, figures.p50_ms, figures.error_ratio) == (3, 100, 5.0, 0.0)


def test_a_worker_that_hangs_beside_one_that_is_away_is_no_service_that_is_away():
    registry = Registry()
    registry.observe(beat("w1", False), 0)
    registry.observe(beat("w2", True), 0)
    registry.observe(beat("w2", True, busy_ms=HUNG_MS + 1.0), BEAT_MS)
    registry.observe(beat("w1", False), BEAT_MS)
    target = registry.view(BEAT_MS).at(*KEY)
    assert target is not None
    assert (target.gate, target.figures.stands, target.figures.gone) == ("slow", True, False)


def test_calls_that_hang_on_a_service_that_is_away_are_no_model_that_hangs():
    registry = Registry()
    registry.observe(beat(reachable=False), 0)
    registry.observe(beat(reachable=False, busy_ms=60_000.0), BEAT_MS)
    target = registry.view(BEAT_MS).at(*KEY)
    assert target is not None
    assert (target.gate, target.figures.hung, target.figures.stands) == ("away", 0, False)


def test_a_beat_of_news_does_not_make_a_busy_worker_one_that_hangs():
    registry = Registry()
    registry.observe(beat(reachable=True), 0)
    registry.observe(beat(reachable=True, served=120, busy_ms=HUNG_MS + 1.0), BEAT_MS)
    registry.observe(beat(reachable=False, served=120, busy_ms=HUNG_MS + 100.0), BEAT_MS + 100)
    registry.observe(beat(reachable=True, served=120, busy_ms=HUNG_MS + 200.0), BEAT_MS + 200)
    target = registry.view(BEAT_MS + 200).at(*KEY)
    assert target is not None
    assert (target.figures.hung, target.gate) == (0, "half_open")


SAID = st.sampled_from([True, False, None])
BEATS = st.lists(
    st.tuples(st.sampled_from(["w1", "w2", "w3"]), SAID, st.integers(0, 20), st.sampled_from([0.0, 1.0])),
    min_size=1,
    max_size=60,
)


@given(BEATS, st.integers(1, BEAT_MS))
def test_whatever_is_said_it_is_away_exactly_while_all_say_so(
    beats: list[tuple[str, bool | None, int, float]], step: int
) -> None:
    registry, said, served = Registry(), {}, dict.fromkeys(["w1", "w2", "w3"], 0)
    now, before = 0, "closed"
    for worker, reachable, more, ratio in beats:
        now += step
        served[worker] += more
        said[worker] = reachable, now
        registry.observe(beat(worker, reachable, served=served[worker], error_ratio=ratio), now)
        alive = [known for known, at in said.values() if now - at <= 3 * BEAT_MS]
        seen = gate(registry, now)
        assert (seen == "away") == all(known is False for known in alive)
        if before == "away" and seen != "away":
            assert seen in ("half_open", "failing"), "nothing closes it but calls"
        before = seen
