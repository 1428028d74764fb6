"""The memory of answers: bounded, and the first of a key counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeway.exchange.remembered import ENTRY_BYTES, Remembered

KEYS = st.integers(0, 30).map(lambda number: f"k{number}".encode())
ADDED = st.tuples(KEYS, st.binary(max_size=400), st.integers(0, 100))


@given(st.lists(ADDED, max_size=80), st.integers(0, 5000))
def test_it_never_takes_more_than_it_may_and_never_says_what_is_wrong(
    added: list[tuple[bytes, bytes, int]], most: int
) -> None:
    memory = Remembered(most)
    first: dict[bytes, bytes] = {}
    for key, raw, at in added:
        was_new = key not in memory
        assert memory.add(key, raw, at) == was_new
        if was_new:
            first[key] = raw
        assert memory.bytes <= most
        assert memory.get(key) in (None, first[key])
    kept = {key: raw for key in first if (raw := memory.get(key)) is not None}
    assert len(memory) == len(kept)
    assert memory.bytes >= sum(ENTRY_BYTES + len(key) + len(raw) for key, raw in kept.items())


@given(st.lists(ADDED, max_size=80))
def test_with_room_enough_every_first_is_kept(added: list[tuple[bytes, bytes, int]]) -> None:
    memory = Remembered(10**6)
    first: dict[bytes, bytes] = {}
    for key, raw, at in added:
        memory.add(key, raw, at)
        first.setdefault(key, raw)
    assert {key: memory.get(key) for key in first} == first


@given(st.lists(ADDED, max_size=80), st.integers(0, 100), st.integers(300, 5000))
def test_what_is_too_old_is_forgotten_whole(
    added: list[tuple[bytes, bytes, int]], before: int, most: int
) -> None:
    memory = Remembered(most)
    for key, raw, at in sorted(added, key=lambda one: one[2]):
        memory.add(key, raw, at)
    memory.forget(before)
    newest = {key: at for key, _, at in sorted(added, key=lambda one: one[2])}
    assert not any(key in memory for key, at in newest.items() if at < before)
    memory.forget(101)
    assert (len(memory), memory.bytes) == (0, 0)


def test_the_oldest_goes_first_and_its_duplicate_is_no_answer() -> None:
    memory = Remembered(4 * ENTRY_BYTES)
    for number in range(6):
        memory.add(b"k%d" % number, b"answer", number)
    assert memory.get(b"k5") == b"answer"
    dropped = [number for number in range(6) if memory.get(b"k%d" % number) is None]
    assert dropped == list(range(len(dropped)))
    last = b"k%d" % dropped[-1]
    assert last in memory
    assert not memory.add(last, b"another", 9)
    assert memory.get(last) is None


def test_what_is_no_answer_leaves_no_trace() -> None:
    memory = Remembered(10_000)
    memory.add(b"k", b"rubbish", 1)
    memory.discard(b"k")
    assert memory.bytes == 0
    assert memory.add(b"k", b"answer", 2)
    assert memory.get(b"k") == b"answer"
