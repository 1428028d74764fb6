from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.stores import MemorySeenStore


async def test_it_never_holds_more_than_its_limit_and_forgets_what_expires_first() -> None:
    store = MemorySeenStore(clock=lambda: 0.0, limit=3)
    await store.first_seen([("long", "m")], 100)
    await store.first_seen([("a", "m"), ("b", "m"), ("c", "m")], 10)
    assert len(store) == 3
    assert await store.first_seen([("long", "n"), ("b", "n"), ("c", "n")], 10) == ["m", "m", "m"]
    assert await store.first_seen([("a", "n")], 10) == [None]


async def test_expired_entries_hold_no_memory() -> None:
    now = 0.0
    store = MemorySeenStore(clock=lambda: now)
    await store.first_seen([(str(i), "m") for i in range(100)], 5)
    now = 5.0
    await store.first_seen([], 5)
    assert len(store) == 0


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="limit"):
        MemorySeenStore(clock=lambda: 0.0, limit=0)


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(0, 3)), max_size=40)


@given(STEPS)
async def test_it_answers_as_a_list_of_all_that_happened_would(steps: list[tuple[str, int, int]]) -> None:
    now = 0
    store = MemorySeenStore(clock=lambda: float(now))
    stored: list[tuple[str, str, int]] = []
    for number, (id_, ttl, pause) in enumerate(steps):
        now += pause
        alive = [mark for known, mark, expires in stored if known == id_ and expires > now]
        expected = alive[0] if alive else None
        if expected is None:
            stored.append((id_, str(number), now + ttl))
        assert await store.first_seen([(id_, str(number))], ttl) == [expected]
