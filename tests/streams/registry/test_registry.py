from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.cards import Card, Heartbeat, Live, Offer
from schemas.rules import parse_rules
from streams.registry import BEAT_MS, GONE_MS, SILENT_MS, Registry, slow_limits
from streams.registry.breaker import OPEN_MS, TRIALS
from streams.registry.registry import MAX_BLIND_MS


def offer(capability: str = "nlp/intent", side: str = "local", live: Live | None = None, **card) -> Offer:
    return Offer(
        card=Card(capability=capability, side=side, version="1", model="m", **card), live=live or Live()
    )


def beat(worker: str = "w1", *offers: Offer, leaving: bool = False) -> Heartbeat:
    return Heartbeat(worker=worker, offers=offers or (offer(),), leaving=leaving)


def test_nothing_is_live_before_a_beat():
    assert Registry().live("local", "nlp/intent", 0) is None


def test_a_beat_makes_its_capabilities_live():
    registry = Registry()
    registry.observe(beat("w1", offer(), offer("nlp/intent", "cloud")), 1000)
    assert registry.live("local", "nlp/intent", 1000) is not None
    assert registry.live("cloud", "nlp/intent", 1000) is not None
    assert registry.live("cloud", "nlp/other", 1000) is None


def test_three_missed_beats_and_it_is_gone():
    registry = Registry()
    registry.observe(beat(), 1000)
    for at in range(1000, 1001 + GONE_MS, BEAT_MS):
        registry.observe(beat("w2", offer("nlp/other")), at)
    assert registry.live("local", "nlp/intent", 1000 + GONE_MS) is not None
    registry.reached(1000 + GONE_MS + 1)
    assert registry.live("local", "nlp/intent", 1000 + GONE_MS + 1) is None
    assert registry.live("local", "nlp/other", 1000 + GONE_MS + 1) is not None


def test_where_everyone_falls_silent_it_is_kafka_for_some_time():
    registry = Registry()
    registry.observe(beat("w1"), 1000)
    registry.observe(beat("w2", offer("nlp/other")), 2000)
    for at in range(2000, 2000 + SILENT_MS, 500):
        registry.reached(at)
    registry.reached(2000 + SILENT_MS)
    assert registry.live("local", "nlp/other", 2000 + SILENT_MS) is not None
    registry.reached(2001 + SILENT_MS)
    assert registry.live("local", "nlp/other", 2001 + SILENT_MS) is None


def test_who_could_not_be_heard_may_speak_first():
    registry = Registry()
    registry.observe(beat("w1"), 1000)
    registry.observe(beat("w2", offer("nlp/other")), 1000)
    back = 1000 + SILENT_MS + GONE_MS
    registry.reached(back)
    registry.observe(beat("w2", offer("nlp/other")), back + BEAT_MS // 2)
    assert registry.live("local", "nlp/intent", back + BEAT_MS // 2) is not None
    registry.reached(back + 2 * BEAT_MS)
    assert registry.live("local", "nlp/intent", back + 2 * BEAT_MS) is None
    assert registry.live("local", "nlp/other", back + 2 * BEAT_MS) is not None


def test_the_first_beat_after_a_silence_makes_nobody_dead():
    registry = Registry()
    registry.observe(beat("w1"), 1000)
    registry.observe(beat("w2", offer("nlp/other")), 1000)
    registry.observe(beat("w2", offer("nlp/other")), 9000)
    assert registry.live("local", "nlp/other", 9000) is not None
    assert registry.live("local", "nlp/intent", 9000 + BEAT_MS) is not None
    registry.reached(9001 + BEAT_MS)
    registry.observe(beat("w2", offer("nlp/other")), 9001 + BEAT_MS)
    assert registry.live("local", "nlp/intent", 9001 + BEAT_MS) is None


def test_what_was_not_read_yet_makes_nobody_dead():
    registry = Registry()
    registry.observe(beat(), 1000)
    registry.reached(1500)
    assert registry.live("local", "nlp/intent", 1500 + MAX_BLIND_MS - 1) is not None


def test_a_blind_registry_is_not_believed_for_ever():
    registry = Registry()
    registry.observe(beat(), 1000)
    registry.reached(1500)
    assert registry.live("local", "nlp/intent", 1500 + MAX_BLIND_MS) is None


def test_leaving_forgets_at_once():
    registry = Registry()
    registry.observe(beat(), 1000)
    registry.observe(beat(leaving=True), 1001)
    assert registry.live("local", "nlp/intent", 1001) is None


def test_an_older_beat_read_late_changes_nothing():
    registry = Registry()
    registry.observe(beat(leaving=True), 1001)
    registry.observe(beat(), 1000)
    assert registry.live("local", "nlp/intent", 1001) is None


def test_a_capability_no_longer_offered_is_gone():
    registry = Registry()
    registry.observe(beat("w1", offer("a"), offer("b")), 1000)
    registry.observe(beat("w1", offer("a")), 1001)
    assert registry.live("local", "b", 1001) is None
    assert registry.live("local", "a", 1001) is not None


def test_figures_over_workers():
    registry = Registry()
    registry.observe(
        beat(
            "w1", offer(live=Live(queue=3, in_flight=1, p50_ms=10.0, p90_ms=20.0, error_ratio=0.0, served=30))
        ),
        1000,
    )
    registry.observe(
        beat(
            "w2", offer(live=Live(queue=5, in_flight=2, p50_ms=20.0, p90_ms=60.0, error_ratio=0.4, served=10))
        ),
        1000,
    )
    figures = registry.live("local", "nlp/intent", 1000)
    assert figures is not None
    assert (figures.workers, figures.queue, figures.served) == (2, 11, 40)
    assert figures.p50_ms == pytest.approx(12.5)
    assert figures.p90_ms == pytest.approx(30.0)
    assert figures.error_ratio == pytest.approx(0.1)


def test_a_worker_without_figures_does_not_count_in_the_means():
    registry = Registry()
    registry.observe(beat("w1", offer(live=Live(p50_ms=10.0, served=5))), 1000)
    registry.observe(beat("w2"), 1000)
    figures = registry.live("local", "nlp/intent", 1000)
    assert figures is not None
    assert figures.p50_ms == 10.0
    assert figures.p90_ms is None


def test_the_cautious_reading_of_cards_counts():
    registry = Registry()
    registry.observe(beat("w1", offer(calibrated=True, cost_per_call=1.0, max_cost=2.0, max_batch=32)), 1000)
    registry.observe(beat("w2", offer(calibrated=False, cost_per_call=3.0, max_cost=None, max_batch=8)), 1000)
    figures = registry.live("local", "nlp/intent", 1000)
    assert figures is not None
    assert (figures.calibrated, figures.cost_per_call, figures.max_cost, figures.max_batch) == (
        False,
        3.0,
        None,
        8,
    )


def test_prediction_counts_rounds_of_batches():
    registry = Registry()
    registry.observe(beat("w1", offer(max_batch=4, live=Live(queue=9, p50_ms=10.0, served=1))), 1000)
    figures = registry.live("local", "nlp/intent", 1000)
    assert figures is not None
    assert figures.wait_ms() == 30.0
    assert figures.predicted_ms() == 40.0


def test_the_card_of_the_worker_heard_last():
    registry = Registry()
    registry.observe(beat("w1", offer(description="old")), 1000)
    registry.observe(beat("w2", offer(description="new")), 1001)
    card = registry.card("local", "nlp/intent", 1001)
    assert card is not None
    assert card.description == "new"
    assert registry.card("cloud", "nlp/intent", 1001) is None


def test_the_view_is_kept_while_nothing_changes():
    registry = Registry()
    registry.observe(beat(), 1000)
    view = registry.view(1001)
    assert registry.view(1500) is view
    registry.observe(beat(), 2000)
    assert registry.view(2000) is not view


def test_a_view_never_changes():
    registry = Registry()
    registry.observe(beat(), 1000)
    view = registry.view(1001)
    registry.observe(beat(leaving=True), 1002)
    assert view.at("local", "nlp/intent") is not None
    assert registry.view(1002).at("local", "nlp/intent") is None


def failing(served: int = 100) -> Offer:
    return offer(live=Live(error_ratio=0.9, served=served))


def gate(registry: Registry, now: int) -> str:
    target = registry.view(now).at("local", "nlp/intent")
    assert target is not None
    return target.gate


def test_the_breaker_shows_in_the_view_and_trials_are_counted():
    registry = Registry()
    registry.observe(beat("w1", failing()), 1000)
    assert gate(registry, 1000) == "failing"
    assert not registry.view(1000).counted
    now = 1000 + OPEN_MS
    assert gate(registry, now) == "half_open"
    assert registry.view(now).counted == {("local", "nlp/intent")}
    for _ in range(TRIALS):
        registry.admit("local", "nlp/intent", now)
    assert gate(registry, now) == "failing"


def test_slow_ms_comes_from_the_rules():
    tasks = b'{"a": {"slow_ms": 900}, "b": {"capability": "a", "slow_ms": 200}, "c": {}}'
    rules = parse_rules(b'{"tasks": %b, "builtin": false}' % tasks)
    assert slow_limits(rules) == {"a": 900}
    registry = Registry()
    registry.observe(beat("w1", offer("a", live=Live(p90_ms=800.0, served=50))), 1000)
    target = registry.view(1000).at("local", "a")
    assert target is not None
    assert target.gate == "slow"
    fresh = Registry(slow_limits(rules))
    fresh.observe(beat("w1", offer("a", live=Live(p90_ms=800.0, served=50))), 1000)
    target = fresh.view(1000).at("local", "a")
    assert target is not None
    assert target.gate == "closed"


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20_000), st.booleans()), max_size=30))
def test_who_is_live_depends_on_the_last_beat_alone(beats):
    registry = Registry()
    now = 20_000
    last: dict[str, tuple[int, bool]] = {}
    # Another worker beats all the time: no silence of all is taken for one of Kafka's.
    steady = [("d", at, True) for at in range(0, now + 1, BEAT_MS)]
    for worker, at, leaving in sorted([*beats, *steady], key=lambda each: each[1]):
        registry.observe(beat(worker, leaving=leaving), at)
        last[worker] = (at, leaving)
    registry.reached(now)
    alive = sum(not leaving and now - at <= GONE_MS for at, leaving in last.values())
    figures = registry.live("local", "nlp/intent", now)
    assert (figures.workers if figures else 0) == alive


def test_max_qps_is_that_of_all_workers():
    registry = Registry()
    registry.observe(beat("w1", offer(max_qps=1.0)), 1000)
    registry.observe(beat("w2", offer(max_qps=2.0)), 1000)
    for _ in range(3):
        assert not throttled(registry, 1000)
        registry.admit("local", "nlp/intent", 1000)
    assert throttled(registry, 1000)
    assert not throttled(registry, 1400)
    registry.observe(beat("w3", offer()), 1400)
    assert not throttled(registry, 1400)
    assert registry.view(1400).counted == frozenset()


def throttled(registry: Registry, now: int) -> bool:
    target = registry.view(now).at("local", "nlp/intent")
    assert target is not None
    return target.throttled


def test_what_may_be_called_later_is_no_call_yet():
    registry = Registry()
    registry.observe(beat("w1", offer(max_qps=1.0)), 1000)
    for _ in range(5):
        registry.admit("local", "nlp/intent", 1000, sent=False)
    assert not throttled(registry, 1000)


def test_versions_schemas_and_caching_over_workers():
    registry = Registry()
    schema = {"required": ["text"]}
    registry.observe(beat("w1", offer(cacheable=True, input_schema=schema)), 1000)
    figures = registry.live("local", "nlp/intent", 1000)
    assert figures is not None
    assert (figures.cacheable, figures.input_schema, figures.versions) == (True, schema, ("1",))
    card = Card(capability="nlp/intent", side="local", version="2", model="m", cost_per_token=0.1)
    registry.observe(beat("w2", Offer(card=card)), 1000)
    figures = registry.live("local", "nlp/intent", 1000)
    assert figures is not None
    assert (figures.cacheable, figures.versions, figures.cost_per_token) == (False, ("1", "2"), 0.1)
    assert figures.input_schema == {"allOf": [schema, {}]}


def test_alternatives_share_the_limit_of_their_step():
    step = b'{"name": "a", "alternatives": ["b"], "slow_ms": 900}'
    rules = parse_rules(b'{"tasks": {"a": {"steps": [%b]}}, "builtin": false}' % step)
    assert slow_limits(rules) == {"a": 900, "b": 900}
