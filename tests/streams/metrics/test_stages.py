"""The histogram of stages, as a scrape shows it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streams.metrics import Times, stage
from streams.metrics.stages import BOUNDS_S

SECONDS = st.floats(0, 100)


def scraped() -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(generate_latest(REGISTRY).decode())
    family = next(family for family in families if family.name == "edgeway_stage_seconds")
    return {
        (sample.name.removeprefix("edgeway_stage_seconds"), sample.labels.get("le", "")): sample.value
        for sample in family.samples
        if sample.labels["stage"] == "plan"
    }


@given(st.lists(st.tuples(SECONDS, st.integers(1, 5)), max_size=30))
def test_buckets_hold_what_is_at_most_their_bound(observed: list[tuple[float, int]]) -> None:
    times = Times()
    for seconds, count in observed:
        times.observe(seconds, count)
    buckets, total = times.buckets()
    for bound, (name, count) in zip((*BOUNDS_S, float("inf")), buckets, strict=True):
        assert float(name) == bound
        assert count == sum(number for seconds, number in observed if seconds <= bound)
    assert abs(total - sum(seconds * count for seconds, count in observed)) < 1e-6 * (1 + total)


@given(st.lists(st.integers(0, 100_000), max_size=30), st.integers(0, 100_000))
def test_many_moments_count_as_each_of_them(moments: list[int], now: int) -> None:
    together, one_by_one = Times(), Times()
    together.since(now, moments)
    for moment in moments:
        one_by_one.observe(max(0, now - moment) / 1000.0)
    assert together.buckets()[0] == one_by_one.buckets()[0]
    assert abs(together.buckets()[1] - one_by_one.buckets()[1]) < 1e-6 * (1 + len(moments) * 100)


def test_a_scrape_shows_it_as_a_histogram() -> None:
    times = stage("plan")
    assert stage("plan") is times
    before = scraped()
    times.observe(0.004)
    times.observe(60.0)
    after = scraped()
    assert after["_count", ""] - before["_count", ""] == 2
    assert after["_bucket", "0.003"] == before["_bucket", "0.003"]
    assert after["_bucket", "0.005"] - before["_bucket", "0.005"] == 1
    assert after["_bucket", "30.0"] - before["_bucket", "30.0"] == 1
    assert after["_bucket", "+Inf"] - before["_bucket", "+Inf"] == 2
    assert after["_sum", ""] - before["_sum", ""] == 60.004
