"""Objects as values, and claims among values."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.claims import as_value, claims_in
from schemas.messages import Claim
from streams.claims import ClaimError, Objects, ObjectTooLarge, ObjectUnreadable, open_store
from streams.claims.loading import load, ship, swapped
from streams.claims.room import Room
from streams.claims.values import object_of, plain_type, value_of

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_was_written_is_read(value: Any) -> None:
    assert value_of(*object_of(value)) == value


@given(
    st.binary(max_size=80),
    st.sampled_from(["text/plain", "application/json", "application/msgpack", None, "x"]),
)
def test_any_bytes_are_a_value_or_refused(data: bytes, content_type: str | None) -> None:
    try:
        value_of(data, content_type)
    except ClaimError:
        return


@pytest.mark.parametrize(
    ("data", "content_type", "value"),
    [
        (b"\xc3\xa9", "text/plain", "é"),
        (b"\xe9", "text/csv; charset=latin-1", "é"),
        (b"{}", "application/json", {}),
        (b"{}", "application/problem+json", {}),
        (b"\x80", "application/x-msgpack", {}),
        (b"{}", "image/png", b"{}"),
        (b"{}", None, b"{}"),
        (b"{}", "no type at all", b"{}"),
    ],
)
def test_the_content_type_decides(data: bytes, content_type: str | None, value: Any) -> None:
    assert value_of(data, content_type) == value


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b"\xff", "text/plain"),
        (b"{", "application/json"),
        (b"\xc1", "application/msgpack"),
        (b"x", "text/plain; charset=nonsense"),
        (b"[" * 100 + b"]" * 100, "application/json"),
        (msgspec.msgpack.encode({1: 2}), "application/msgpack"),
    ],
)
def test_what_is_not_what_it_says_is_unreadable(data: bytes, content_type: str) -> None:
    with pytest.raises(ObjectUnreadable):
        value_of(data, content_type)


def test_an_object_of_too_many_values_is_refused() -> None:
    with pytest.raises(ObjectTooLarge):
        value_of(b"[" + b"[]," * 6_000_000 + b"[]]", "application/json")


def test_content_types_carry_nothing_else() -> None:
    assert plain_type("image/PNG") == "image/png"
    assert plain_type("text/plain; charset=utf-8") == "text/plain; charset=utf-8"
    for odd in ("jane@corp.example", "text/plain; who=jane", "", None, "text/plain; charset=jane roe"):
        assert plain_type(odd) is None


@given(
    st.recursive(
        st.integers(0, 3),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3)
        ),
    )
)
def test_claims_are_swapped_wherever_they_stand(shape: Any) -> None:
    claims = [Claim(dataref=f"memory://x/{n}", sha256="0" * 64, size=n) for n in range(4)]

    def with_claims(value: Any) -> Any:
        if isinstance(value, list):
            return [with_claims(item) for item in value]
        if isinstance(value, dict):
            return {name: with_claims(item) for name, item in value.items()}
        return as_value(claims[value])

    value = with_claims(shape)
    assert swapped(value, {claim: number for number, claim in enumerate(claims)}) == shape
    assert list(claims_in(swapped(value, {}))) == []


async def test_each_object_is_read_once_and_within_the_bytes() -> None:
    name = uuid.uuid4().hex
    objects = Objects(open_store(f"memory://edge-{name}"), open_store(f"memory://cloud-{name}"))
    assert objects.local is not None
    claim = await objects.local.put(b"x" * 100, content_type="text/plain", tenant=None)
    inputs = {"a": as_value(claim), "b": [as_value(claim)], "c": 1}
    found = await load(inputs, objects, tenant=None, wait_s=5)
    assert found == {claim: "x" * 100}
    with pytest.raises(ObjectTooLarge):
        await load(inputs, objects, tenant=None, wait_s=5, limit=99)
    with pytest.raises(ClaimError, match="input a"):
        await load(inputs, objects, tenant="acme", wait_s=5)
    shipped = await ship(inputs, found, objects, tenant=None, wait_s=5)
    copies = set(claims_in(shipped))
    assert len(copies) == 1
    assert all(objects.is_cloud(copy.dataref) for copy in copies)
    again = await ship(shipped, dict.fromkeys(copies, "x" * 100), objects, tenant=None, wait_s=5)
    assert set(claims_in(again)) == copies or all(objects.is_cloud(c.dataref) for c in claims_in(again))
    with pytest.raises(ClaimError, match="not read"):
        await ship(inputs, {}, objects, tenant=None, wait_s=5)
    with pytest.raises(ClaimError, match="no object store for the cloud"):
        await ship(inputs, found, objects._replace(cloud=None), tenant=None, wait_s=5)


async def test_a_room_lets_in_what_fits_and_one_that_never_does() -> None:
    room = Room(10)
    assert await room.take(100)
    wanted = True
    assert not await room.take(1, lambda: not wanted)
    room.give(100)
    assert await room.take(6)
    assert await room.take(4)
    room.give(10)
    assert room.taken == 0
