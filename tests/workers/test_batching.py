"""Laws of the batcher."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from workers.batching import Batcher


@dataclass(frozen=True)
class Job:
    number: int
    key: str
    size: int = 1
    limit: int = 100
    arrived: float = 0.0


jobs = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(1, 6)), min_size=1, max_size=60
).map(lambda rows: [Job(i, key, size, limit, float(i)) for i, (key, size, limit) in enumerate(rows)])


def filled(found: list[Job], max_batch: int = 8, max_wait_ms: float = 0.0) -> Batcher[Job]:
    batcher: Batcher[Job] = Batcher(max_batch, max_wait_ms, max_rows=1000, max_bytes=10_000)
    for job in found:
        batcher.put(job)
    return batcher


def drained(batcher: Batcher[Job], now: float = 1e9, idle: bool = True) -> list[list[Job]]:
    batches = []
    while batch := batcher.take(now, idle):
        batches.append(batch)
    return batches


@given(jobs, st.integers(1, 10))
def test_nothing_is_lost_or_doubled(found: list[Job], max_batch: int) -> None:
    batcher = filled(found, max_batch)
    out = [job for batch in drained(batcher) for job in batch]
    assert sorted(job.number for job in out) == [job.number for job in found]
    assert (batcher.rows, batcher.bytes) == (0, 0)


@given(jobs, st.integers(1, 10))
def test_a_batch_is_of_one_kin_and_within_every_members_limit(found: list[Job], max_batch: int) -> None:
    for batch in drained(filled(found, max_batch)):
        assert len({job.key for job in batch}) == 1
        assert len(batch) <= max_batch
        assert len(batch) <= min(job.limit for job in batch)


@given(jobs, st.integers(1, 10))
def test_order_is_kept_within_a_kin_and_the_oldest_kin_goes_first(found: list[Job], max_batch: int) -> None:
    waiting = {job.number for job in found}
    taken: dict[str, list[int]] = {}
    for batch in drained(filled(found, max_batch)):
        assert batch[0].number == min(waiting), "the oldest job of all leads the next batch"
        waiting -= {job.number for job in batch}
        taken.setdefault(batch[0].key, []).extend(job.number for job in batch)
    for numbers in taken.values():
        assert numbers == sorted(numbers)


@given(jobs, st.data())
def test_interleaved_puts_takes_and_drops_lose_nothing(found: list[Job], data: st.DataObject) -> None:
    batcher: Batcher[Job] = Batcher(4, 5.0, max_rows=1000, max_bytes=10_000)
    out: list[int] = []
    for job in found:
        batcher.put(job)
        match data.draw(st.sampled_from(["put", "take", "busy", "drop"])):
            case "take":
                out += [taken.number for taken in batcher.take(job.arrived, idle=True)]
            case "busy":
                out += [taken.number for taken in batcher.take(job.arrived, idle=False)]
            case "drop":
                key = data.draw(st.sampled_from("abc"))
                out += [dropped.number for dropped in batcher.drop(lambda j, key=key: j.key == key)]
            case _:
                pass
        assert batcher.rows == len(list(batcher)) == job.number + 1 - len(out)
        assert batcher.bytes == sum(waiting.size for waiting in batcher)
    out += [job.number for batch in drained(batcher) for job in batch]
    assert sorted(out) == [job.number for job in found]


@given(jobs, st.integers(2, 10), st.floats(1.0, 100.0))
def test_busy_only_full_or_overdue_batches_start(found: list[Job], max_batch: int, wait: float) -> None:
    batcher = filled(found, max_batch, wait)
    now = found[-1].arrived
    while batch := batcher.take(now, idle=False):
        full = len(batch) >= min(max_batch, batch[0].limit) or any(job.limit <= len(batch) for job in batch)
        left = next((job for job in batcher if job.key == batch[0].key), None)
        stopped = left is not None and left.limit <= len(batch)
        assert full or stopped or now >= batch[0].arrived + wait
    due = batcher.due()
    assert due is None or due > now, "what is overdue never waits on"


def test_an_idle_model_waits_for_nobody() -> None:
    batcher = filled([Job(0, "a")], max_batch=32, max_wait_ms=1000.0)
    assert [job.number for job in batcher.take(0.0, idle=True)] == [0]


def test_a_busy_model_waits_for_company_and_says_until_when() -> None:
    batcher = filled([Job(0, "a", arrived=5.0)], max_batch=2, max_wait_ms=10.0)
    assert batcher.take(14.9, idle=False) == []
    assert batcher.due() == 15.0
    batcher.put(Job(1, "a", arrived=14.0))
    assert [job.number for job in batcher.take(14.9, idle=False)] == [0, 1]


def test_a_full_kin_overtakes_one_that_waits_but_not_one_that_is_overdue() -> None:
    found = [Job(0, "a", arrived=0.0), Job(1, "b", arrived=1.0), Job(2, "b", arrived=1.0)]
    assert [job.key for job in filled(found, 2, 10.0).take(5.0, idle=False)] == ["b", "b"]
    assert [job.key for job in filled(found, 2, 10.0).take(10.0, idle=False)] == ["a"]


def test_rows_and_bytes_are_bounded() -> None:
    batcher: Batcher[Job] = Batcher(8, 0.0, max_rows=2, max_bytes=100)
    assert batcher.room(1000), "a job larger than the bound must not wait for ever"
    batcher.put(Job(0, "a", size=60))
    assert batcher.room(40)
    assert not batcher.room(41)
    batcher.put(Job(1, "a", size=1))
    assert not batcher.room(0)
