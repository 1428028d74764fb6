"""What is known of a service, by its laws."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from workers.backends.remote_reach import DOUBT_S, EVERY_S, FIRST_S, LEAST_S, SPREAD, Reach, Sight

CHANCE = st.floats(0.0, 1.0, exclude_max=True)
SIGHTS: tuple[Sight, ...] = ("there", "refuses", "gone")
EVENTS = st.lists(
    st.tuples(st.sampled_from(("answered", "failed", "hasten")), st.floats(0.0, 3.0), CHANCE), max_size=40
)


class Course:
    """A reach under events; looks are made when they are due, and find what `sights` says."""

    def __init__(self, sights: list[Sight]) -> None:
        self.reach = Reach()
        self.now = 0.0
        self.looks: list[float] = []
        self._sights = sights

    def pass_until(self, until: float, chance: float) -> None:
        while (due := self.reach.due) is not None and due <= until:
            self.now = max(self.now, due)
            self.reach.begin(self.now, chance)
            self.looks.append(self.now)
            self.reach.saw(self._sights[len(self.looks) % len(self._sights)], self.now)
        self.now = until

    def happen(self, what: str, chance: float) -> None:
        if what == "answered":
            self.reach.answered()
        elif what == "failed":
            self.reach.failed(self.now, chance)
        else:
            self.reach.hasten(self.now)


@given(EVENTS, st.lists(st.sampled_from(SIGHTS), min_size=1, max_size=5))
def test_it_looks_only_after_failures_never_often_and_stops_when_answered(
    events: list[tuple[str, float, float]], sights: list[Sight]
) -> None:
    course, failed = Course(sights), False
    for what, wait_s, chance in events:
        course.pass_until(course.now + wait_s, chance)
        course.happen(what, chance)
        failed = failed or what == "failed"
        if what == "answered":
            assert (course.reach.known, course.reach.due) == (True, None)
        if not failed:
            assert course.looks == []
        if course.reach.known is False:
            assert course.reach.due is not None, "what is away is looked for"
        if course.reach.due is not None:
            assert course.reach.due <= course.now + EVERY_S * (1 + SPREAD)
    gaps = [later - sooner for sooner, later in itertools.pairwise(course.looks)]
    assert all(gap >= LEAST_S - 1e-9 for gap in gaps)


@given(CHANCE)
def test_a_call_that_is_answered_soon_makes_the_look_needless(chance: float) -> None:
    course = Course(["gone"])
    course.happen("failed", chance)
    course.pass_until(FIRST_S * (1 - SPREAD) - 0.01, chance)
    course.happen("answered", chance)
    course.pass_until(60.0, chance)
    assert course.looks == []


@given(CHANCE)
def test_looks_come_every_two_seconds_until_the_service_is_there(chance: float) -> None:
    course = Course(["gone"])
    course.happen("failed", chance)
    course.pass_until(61.0, chance)
    assert 60 / (EVERY_S * (1 + SPREAD)) - 1 <= len(course.looks) <= 60 / (EVERY_S * (1 - SPREAD)) + 2
    course._sights = ["there"]
    before = len(course.looks)
    course.pass_until(120.0, chance)
    assert len(course.looks) == before + 1
    assert course.reach.known is True


def test_a_service_that_answers_looks_and_fails_calls_is_not_away_and_not_looked_at_more_often() -> None:
    course = Course(["there"])
    for _ in range(200):
        course.happen("failed", 0.5)
        assert course.reach.known is not False
        course.pass_until(course.now + 0.1, 0.5)
    assert len(course.looks) <= 20.0 / EVERY_S + 1


def test_a_call_that_waits_is_told_within_half_a_second() -> None:
    course = Course(["gone"])
    course.happen("failed", 0.5)
    course.pass_until(1.0, 0.5)
    (first,) = course.looks
    course.happen("hasten", 0.5)
    course.pass_until(1.0, 0.5)
    assert course.looks[1:] == [1.0]
    course.happen("hasten", 0.5)
    course.pass_until(1.0 + LEAST_S, 0.5)
    assert course.looks[2:] == [1.0 + LEAST_S]
    assert first < 1.0


def test_a_refusal_is_doubted_in_the_end_and_a_missing_connection_is_not() -> None:
    for sight, doubted in (("refuses", True), ("gone", False)):
        course = Course([sight])  # type: ignore[list-item]
        course.happen("failed", 0.5)
        known = []
        for _ in range(int(3 * DOUBT_S)):
            course.pass_until(course.now + 1.0, 0.5)
            known.append(course.reach.known)
        assert (None in known) is doubted
        assert known.count(None) <= 3 * EVERY_S
        assert True not in known
        assert known[: int(DOUBT_S)].count(None) == 0
