"""Figures of the last seconds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workers.figures import MAX_RUNS, Figures, Run

runs = st.lists(st.tuples(st.floats(0, 1e4), st.integers(1, 40)), min_size=1, max_size=50)


@given(runs)
def test_percentiles_are_by_row(found: list[tuple[float, int]]) -> None:
    figures = Figures()
    for service_ms, rows in found:
        figures.add(Run(0.0, service_ms, rows, 0))
    times = sorted(ms for ms, rows in found for _ in range(rows))
    live = figures.live(0.0)
    assert live.p50_ms == times[-(-len(times) // 2) - 1]
    assert live.p90_ms is not None
    within = sum(1 for ms in times if ms <= live.p90_ms)
    assert within >= 0.9 * len(times) - 1e-9
    assert sum(1 for ms in times if ms < live.p90_ms) < 0.9 * len(times)


def test_what_is_older_than_a_minute_counts_as_served_only() -> None:
    figures = Figures()
    figures.add(Run(0.0, 500.0, 2, 2))
    figures.add(Run(50_000.0, 10.0, 2, 1))
    assert figures.live(60_000.0).error_ratio == 0.75
    late = figures.live(60_001.0)
    assert (late.p90_ms, late.error_ratio, late.served) == (10.0, 0.5, 4)
    gone = figures.live(200_000.0)
    assert (gone.p50_ms, gone.p90_ms, gone.error_ratio, gone.served) == (None, None, 0.0, 4)


def test_ten_seconds_count_where_enough_ran() -> None:
    figures = Figures()
    for number in range(40):
        figures.add(Run(number * 1000.0, 600.0 if number < 25 else 10.0, 1, 0))
    assert figures.live(39_000.0).p90_ms == 10.0
    assert figures.live(30_000.0).p90_ms == 600.0


def test_where_few_ran_the_last_rows_count() -> None:
    figures = Figures()
    for number in range(12):
        figures.add(Run(number * 4_000.0, 600.0 if number < 3 else 10.0, 1, 0))
    live = figures.live(44_000.0)
    assert live.p90_ms == 10.0
    figures = Figures()
    figures.add(Run(0.0, 600.0, 5, 0))
    figures.add(Run(30_000.0, 10.0, 5, 0))
    assert figures.live(40_000.0).p90_ms == 600.0
    figures.add(Run(41_000.0, 10.0, 5, 0))
    assert figures.live(42_000.0).p90_ms == 10.0


def test_memory_is_bounded() -> None:
    figures = Figures()
    for number in range(3 * MAX_RUNS):
        figures.add(Run(0.0, 1.0 if number < 2 * MAX_RUNS else 9.0, 1, 0))
    live = figures.live(0.0, queue=3, in_flight=2, load_ms=7.0)
    assert (live.p50_ms, live.served) == (9.0, 3 * MAX_RUNS)
    assert (live.queue, live.in_flight, live.load_ms) == (3, 2, 7.0)


@given(st.integers(1, 30), st.integers(1, 30))
def test_what_began_while_the_service_was_away_is_forgotten_but_counted(before: int, after: int) -> None:
    figures = Figures()
    for n in range(before):
        figures.add(Run(float(n), 1.0, 1, 1))
    figures.forget(100.0)
    assert figures.live(100.0).error_ratio == 0.0
    figures.add(Run(110.0, 11.0, 1, 1))
    assert (figures.live(110.0).error_ratio, figures.live(110.0).p90_ms) == (0.0, None)
    for n in range(after):
        figures.add(Run(120.0 + n, 5.0, 1, 0))
    live = figures.live(150.0)
    assert (live.error_ratio, live.p90_ms, live.served) == (0.0, 5.0, before + 1 + after)
