"""Notes, and who is condemned by them over any sequence of crashes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.delivery.lane import Lane
from streams.delivery.records import Place
from streams.delivery.suspects import Note, Suspicion, parse, suspicion

OFFSETS = st.integers(0, 2**63 - 1)


@given(
    frontier=OFFSETS,
    unclean=st.integers(0, 10**6),
    alone=st.just(-1) | OFFSETS,
    condemned=st.lists(OFFSETS, max_size=64),
    clean=st.booleans(),
)
def test_a_note_survives_its_text(frontier, unclean, alone, condemned, clean) -> None:
    note = Note(frontier, unclean, alone, condemned=tuple(condemned))
    if clean:
        note = Note(clean=True, condemned=tuple(condemned))
    assert parse(note.text()) == note
    assert note.text().isascii()
    assert len(note.text()) <= 1500


def test_a_note_stays_below_what_a_broker_takes() -> None:
    assert len(Note(2**63, 10**6, 2**63, condemned=tuple(range(2**62, 2**62 + 9000))).text()) < 4096


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    note = parse(text)
    assert note.clean or note.frontier >= 0


@pytest.mark.parametrize(
    "text", ["", "clean", "committed by a tool", "n3;a7", "f", "f-1", "f٣", '{"f": 1}', "f" + "9" * 30]
)
def test_what_others_wrote_is_an_orderly_hand_over(text: str) -> None:
    assert suspicion(parse(text), 5) == Suspicion(frontier=5)


def test_a_named_record_below_the_start_is_not_guilty() -> None:
    assert suspicion(Note(10, 2, 9), 10).guilty == -1
    assert suspicion(Note(10, 2, 10), 10).guilty == 10


class Crash(Exception):
    pass


@dataclass
class World:
    """One partition of a group over the lives of its owners: committer and handout without their I/O.

    `absorbing` makes every record stay unfinished, as joins that are never answered. `killers` end the
    process when they are handled; `commits` says, after each record, whether the periodic commit comes.
    """

    length: int
    killers: frozenset[int] = frozenset()
    absorbing: bool = False
    commits: random.Random = field(default_factory=lambda: random.Random(1))
    commit_share: float = 0.0
    batch: int = 500
    most_open: int | None = None
    offset: int = 0
    note: str = ""
    handled: dict[int, int] = field(default_factory=dict)
    condemned: list[int] = field(default_factory=list)
    died_alone: set[int] = field(default_factory=set)
    assignments: int = 0
    done: set[int] = field(default_factory=set)

    def commit(self, lane: Lane) -> None:
        self.offset, self.note = lane.window.watermark, lane.note().text()

    def hand_over(self, lane: Lane) -> None:
        self.offset, self.note = lane.window.watermark, lane.parting_note().text()

    def assign(self) -> Lane:
        self.assignments += 1
        found = suspicion(parse(self.note), self.offset)
        return Lane(
            Place("t", 0),
            self.assignments,
            self.offset,
            self.length,
            None,  # type: ignore[arg-type]
            group="g",
            refuse=lambda *_: (),
            suspicion=found,
            most_open=self.most_open,
        )

    def live(self, *, kill_at: int | None = None, stop_at: int | None = None) -> Lane | None:
        """One owner's life: until a killer, `kill_at` records handled, or an orderly stop; None: it died."""
        lane = self.assign()
        handled = 0

        def run(offset: int) -> None:
            nonlocal handled
            if kill_at is not None and handled >= kill_at:
                self._die(lane)
            self.handled[offset] = self.handled.get(offset, 0) + 1
            if offset in self.killers:
                self._die(lane)
            handled += 1
            if self.absorbing:
                lane.absorb(offset)
            else:
                lane.window.finish(offset)
            self.done.add(offset)
            if self.commits.random() < self.commit_share:
                self.commit(lane)

        try:
            if kill_at == 0 and stop_at is None and self.offset >= self.length:
                raise Crash
            self._feed(lane, run, stop_at)
        except Crash:
            return None
        return lane

    def _die(self, lane: Lane) -> None:
        if lane.alone >= 0:
            self.died_alone.add(lane.alone)
        raise Crash

    def _feed(self, lane: Lane, run, stop_at: int | None) -> None:
        for first in range(lane.start, self.length, self.batch):
            offsets = list(range(first, min(first + self.batch, self.length)))
            for offset in offsets:
                lane.window.take(offset, 1)
            for offset in lane.condemned.intersection(offsets):
                lane.window.finish(offset)
            offsets = [offset for offset in offsets if lane.window.is_waiting(offset)]
            if not offsets:
                continue
            if not lane.handed_out and offsets[-1] >= lane.suspect:
                lane.handed_out = True
                self.commit(lane)
            known = [o for o in offsets if not lane.careful or o < lane.suspect]
            for offset in known:
                if stop_at is not None and offset >= stop_at:
                    self.hand_over(lane)
                    return
                run(offset)
            for offset in offsets[len(known) :]:
                if stop_at is not None and offset >= stop_at:
                    self.hand_over(lane)
                    return
                if offset == lane.suspicion.guilty:
                    self.condemned.append(offset)
                    lane.window.finish(offset)
                    lane.condemned.add(offset)
                else:
                    lane.alone = offset
                    self.commit(lane)
                    run(offset)
                    lane.alone = -1
                if offset + 1 >= lane.suspects_end:
                    lane.careful = False
            if len(known) < len(offsets):
                self.commit(lane)
            self.commit(lane)
        if stop_at is not None:
            self.hand_over(lane)


@pytest.mark.parametrize("absorbing", [False, True])
@pytest.mark.parametrize("killer", [0, 1, 7, 19])
@pytest.mark.parametrize("batch", [1, 5, 500])
def test_a_killer_is_executed_three_times_at_most(killer: int, batch: int, absorbing: bool) -> None:
    world = World(20, frozenset({killer}), absorbing, batch=batch)
    lives = [world.live() for _ in range(4)]
    assert lives[:3] == [None] * 3
    assert lives[3] is not None
    assert world.handled[killer] == 3
    assert world.condemned == [killer]
    assert world.done == set(range(20)) - {killer}


@given(
    killers=st.frozensets(st.integers(0, 29), max_size=4),
    share=st.floats(0, 1),
    seed=st.integers(0, 1000),
    absorbing=st.booleans(),
    batch=st.sampled_from([1, 4, 500]),
    most_open=st.sampled_from([None, 1, 6]),
)
@settings(max_examples=200, deadline=None)
def test_every_killer_is_condemned_and_nobody_else(killers, share, seed, absorbing, batch, most_open) -> None:
    world = World(30, killers, absorbing, random.Random(seed), share, batch, most_open)
    # A crash that comes after progress was committed starts the count anew: one more execution each.
    for _ in range(4 * len(killers) + 1 + 30):
        if world.live() is not None:
            break
    else:
        raise AssertionError("it dies for ever")
    assert sorted(world.condemned) == sorted(killers)
    assert world.done == set(range(30)) - killers


def test_what_no_dead_process_can_have_had_is_not_handled_one_by_one() -> None:
    world = World(1000, batch=10, most_open=20)
    for _ in range(2):
        assert world.live(kill_at=5) is None
    lane = world.assign()
    assert lane.careful
    assert (lane.suspect, lane.suspects_end) == (0, 20)
    assert World(1000, batch=10).assign().suspects_end == 1000


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=30), st.booleans(), st.floats(0, 1))
@settings(max_examples=300, deadline=None)
def test_an_innocent_is_condemned_only_where_its_process_died_while_it_was_alone(
    ends, absorbing: bool, share: float
) -> None:
    world = World(10, absorbing=absorbing, commit_share=share, batch=3)
    for at, is_crash in ends:
        world.live(kill_at=at) if is_crash else world.live(stop_at=world.offset + at)
    world.live()
    assert set(world.condemned) <= world.died_alone


@given(st.lists(st.integers(0, 10), min_size=1, max_size=30), st.booleans())
@settings(max_examples=200, deadline=None)
def test_orderly_stops_condemn_nobody(stops: list[int], absorbing: bool) -> None:
    world = World(10, absorbing=absorbing, batch=3)
    for at in stops:
        lane = world.live(stop_at=at)
        assert lane is not None
        assert not lane.careful
    assert world.condemned == []


def test_a_partition_without_records_never_becomes_suspicious() -> None:
    world = World(0)
    for _ in range(10):
        lane = world.assign()
        world.commit(lane)
        assert not lane.careful
    assert parse(world.note).clean


def test_a_finished_partition_never_becomes_suspicious() -> None:
    world = World(5)
    for _ in range(10):
        lane = world.live()
        assert lane is not None
        assert not lane.careful


def test_a_pinned_watermark_with_a_moving_frontier_is_not_suspicious() -> None:
    world = World(0, absorbing=True)
    for length in range(10, 110, 10):
        world.length = length
        lane = world.live()
        assert lane is not None
        assert (lane.start, lane.careful) == (0, False)
        # It dies here: nothing is handed over.


def test_a_killer_behind_open_joins_is_found_although_the_frontier_starts_over() -> None:
    world = World(40, frozenset({35}), absorbing=True, commit_share=1.0, batch=500)
    for _ in range(3):
        assert world.live() is None
    for _ in range(3):
        # Nothing finishes: each owner reads it all again, the condemned one too, and leaves that alone.
        assert world.live() is not None
    assert world.condemned == [35]
    assert world.handled[35] == 3


def test_a_hand_over_keeps_the_count_and_adds_nothing() -> None:
    world = World(10, frozenset({0}))
    assert world.live() is None
    assert world.live() is None
    for _ in range(5):
        lane = world.assign()
        assert lane.suspicion.unclean == 2
        world.hand_over(lane)
    assert world.live() is None
    assert world.live() is not None
    assert world.condemned == [0]


def test_the_verdict_outlives_a_commit_before_the_guilty_record_is_read() -> None:
    world = World(10, frozenset({0}))
    for _ in range(3):
        assert world.live() is None
    lane = world.assign()
    assert lane.suspicion.guilty == 0
    world.commit(lane)
    assert world.assign().suspicion.guilty == 0
    world.hand_over(world.assign())
    assert world.assign().suspicion.guilty == 0
