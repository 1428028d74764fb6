"""A lane: what is finished when, and what its notes say."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from schemas.messages import Failure
from streams.delivery import Cleared, Outgoing, Place, Uncleared
from streams.delivery.lane import Lane
from streams.delivery.suspects import Note, Suspicion
from tests.helpers.delivery import LogRecord

FAILURE = Failure(code="handler_error", message="it broke")


class Posts:
    """An outlet that acknowledges when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[list, object]] = []
        self.refuses = False

    def post(self, outputs, done) -> None:
        if self.refuses:
            raise Uncleared("no")
        self.waiting.append((list(outputs), done))

    def acknowledge(self) -> None:
        waiting, self.waiting = self.waiting, []
        for _, done in waiting:
            done()


def lane(posts: Posts, count: int = 5, refuse=lambda *_: (), suspicion: Suspicion = Suspicion()) -> Lane:  # noqa: B008
    found = Lane(Place("in", 0), 1, 10, 15, posts, group="g", refuse=refuse, suspicion=suspicion)
    found.take(LogRecord("in", 0, 10 + number, value=b"x" * 10) for number in range(count))
    found.handed_out, found.given = True, 9 + count
    return found


OUT = Outgoing("out", None, b"o")


def letters() -> float:
    """How many dead letters of these lanes were counted."""
    labels = {"topic": "in", "code": FAILURE.code}
    return REGISTRY.get_sample_value("edgeway_dead_letters_total", labels) or 0.0


def test_an_offset_is_finished_after_all_its_outputs_are_acknowledged() -> None:
    posts = Posts()
    it = lane(posts)
    it.settle([10, 11], [OUT, OUT])
    assert (it.window.watermark, it.finished, it.is_drained()) == (10, 0, False)
    posts.acknowledge()
    assert (it.window.watermark, it.finished) == (12, 2)


def test_without_outputs_it_is_finished_at_once() -> None:
    it = lane(Posts())
    it.settle(iter([10]))
    assert it.window.watermark == 11


def test_what_was_taken_already_is_left_out() -> None:
    it = lane(Posts())
    again = it.take([LogRecord("in", 0, 14), LogRecord("in", 0, 15)])
    assert [record.offset for record in again] == [15]


def test_a_dead_lane_finishes_nothing_and_writes_nothing() -> None:
    posts = Posts()
    it = lane(posts)
    it.settle([10], [OUT])
    it.alive = False
    posts.acknowledge()
    it.settle([11])
    it.settle([12], [OUT])
    it.absorb(13)
    it.fail(LogRecord("in", 0, 14), FAILURE)
    assert (it.window.watermark, it.window.frontier, it.finished, posts.waiting) == (10, 10, 0, [])


def test_absorbed_records_are_handled_and_unfinished() -> None:
    it = lane(Posts())
    for offset in range(10, 15):
        it.absorb(offset)
    assert (it.window.watermark, it.is_busy(), it.is_drained()) == (10, False, True)


def test_records_that_no_agent_saw_do_not_keep_a_lane_from_being_drained() -> None:
    it = lane(Posts())
    it.given = 11
    it.settle([10, 11])
    assert it.is_drained()


def test_a_failed_record_is_written_with_its_answer() -> None:
    posts = Posts()
    answer = Outgoing("answers", None, b"sorry")
    it = lane(posts, refuse=lambda record, failure: (answer,))
    before = letters()
    it.fail(LogRecord("in", 0, 10, value=b"bad"), FAILURE)
    assert letters() == before + 1
    (written, _), *_ = posts.waiting
    assert [record.topic for record in written] == ["dead-letters", "answers"]
    assert written[0].value == b"bad"
    posts.acknowledge()
    assert it.window.watermark == 11


def test_an_answer_that_cannot_be_made_costs_the_answer_only() -> None:
    posts = Posts()

    def refuse(record, failure):
        raise RuntimeError("no answer for this")

    lane(posts, refuse=refuse).fail(LogRecord("in", 0, 10, value=b"bad"), FAILURE)
    assert [record.topic for record in posts.waiting[0][0]] == ["dead-letters"]


def test_a_refused_write_leaves_nothing_behind() -> None:
    posts = Posts()
    posts.refuses = True
    it = lane(posts)
    with pytest.raises(Uncleared):
        it.settle([10], [Cleared.__new__(Cleared)])
    it.settle(range(10, 15))
    assert it.is_drained()


def test_the_notes_of_a_plain_life() -> None:
    it = lane(Posts())
    assert it.note() == Note(10)
    it.settle([10, 11])
    assert it.note() == Note(12)
    it.alone = 12
    assert it.note() == Note(12, 0, 12)
    assert it.parting_note() == Note(clean=True)


def test_a_lane_that_handed_out_nothing_passes_on_what_it_was_told() -> None:
    it = lane(Posts(), suspicion=Suspicion(2, 12, 12))
    it.handed_out = False
    assert it.note() == it.parting_note() == Note(12, 1, 12)


def test_the_count_stands_until_the_suspect_is_passed() -> None:
    it = lane(Posts(), suspicion=Suspicion(1, -1, 12))
    it.settle([10, 11])
    assert it.note() == Note(12, 1)
    it.settle([12])
    assert it.note() == Note(13, 0)
    assert it.parting_note() == Note(clean=True)


def test_a_condemned_record_is_remembered_until_the_watermark_passes_it() -> None:
    it = lane(Posts(), suspicion=Suspicion(2, 12, 12))
    it.settle([12])
    it.condemned.add(12)
    it.careful = False
    assert it.parting_note() == Note(12, 1, -1, condemned=(12,))
    it.settle([10])
    it.absorb(11)
    assert it.parting_note() == Note(clean=True, condemned=(12,))
    it.settle([11])
    assert it.parting_note() == Note(clean=True)


def test_the_oldest_record_is_that_of_the_oldest_batch_with_something_unfinished() -> None:
    it = Lane(Place("in", 0), 1, 10, 15, Posts(), group="g", refuse=lambda *_: ())
    assert it.oldest_at == float("inf")
    it.take([LogRecord("in", 0, 10, timestamp=100), LogRecord("in", 0, 11, timestamp=140)])
    it.take([LogRecord("in", 0, 12, timestamp=200)])
    it.settle([11, 12])
    assert it.oldest_at == 100
    it.take([LogRecord("in", 0, 13, timestamp=300)])
    it.settle([10])
    assert it.oldest_at == 300
    it.settle([13])
    assert it.oldest_at == float("inf")
