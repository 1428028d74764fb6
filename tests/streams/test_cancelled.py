"""Which requests count as cancelled, and for how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import codec
from schemas.errors import Malformed
from schemas.messages import Cancel, Request
from streams.cancelled import TTL_MS, Cancelled, cancelled_key


def test_it_holds_for_ten_minutes() -> None:
    cancelled = Cancelled()
    cancelled.add("a", 1_000)
    assert "a" in cancelled
    assert "b" not in cancelled
    cancelled.expire(1_000 + TTL_MS - 1)
    assert "a" in cancelled
    cancelled.expire(1_000 + TTL_MS)
    assert "a" not in cancelled


def test_again_counts_from_the_last_time() -> None:
    cancelled = Cancelled(ttl_ms=100)
    cancelled.add("a", 0)
    cancelled.add("b", 50)
    cancelled.add("a", 90)
    cancelled.expire(160)
    assert "a" in cancelled
    assert "b" not in cancelled


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=200))
def test_it_is_bounded_and_never_forgets_the_newest(steps: list[tuple[int, int]]) -> None:
    cancelled, now = Cancelled(limit=10, ttl_ms=20), 0
    at: dict[str, int] = {}
    for key, later in steps:
        now += later
        cancelled.add(str(key), now)
        at.pop(str(key), None)
        at[str(key)] = now
        kept = [name for name in list(at)[-10:] if at[name] > now - 20]
        assert len(cancelled) == len(kept)
        assert all(name in cancelled for name in kept)


def test_the_key_is_scoped_by_tenant() -> None:
    assert cancelled_key(codec.encode(Cancel(id="a"))) == "a"
    assert cancelled_key(codec.encode(Cancel(id="a", tenant="t"), "json")) == "\x1ft\x1fa"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"\xff",
        codec.encode(Request(task="x")),
        codec.encode(Cancel(id="")),
        codec.encode(Cancel(id="x" * 200)),
    ],
)
def test_what_names_no_request_cancels_nothing(value: bytes) -> None:
    with pytest.raises(Malformed):
        cancelled_key(value)
