"""Walks over free-form values end, whatever the value."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import Malformed
from schemas.values import all_finite, all_fit, check_value, least_size

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=30,
)


def endless() -> list[Any]:
    found: list[Any] = [0] * 1000
    found[500] = {"again": (found, found)}
    return found


def wide() -> list[Any]:
    return [[[0] * 100_000] * 100_000] * 100_000


@pytest.mark.parametrize("walk", [all_finite, all_fit, lambda value: check_value(value, "it")])
@pytest.mark.parametrize("value", [endless(), wide()], ids=["endless", "wide"])
def test_an_endless_value_is_refused_at_once(walk: Callable[[Any], Any], value: Any) -> None:
    began = time.monotonic()
    with pytest.raises(Malformed):
        walk(value)
    assert time.monotonic() - began < 3.0


@given(PLAIN)
def test_the_least_size_is_never_above_what_is_written(value: Any) -> None:
    assert least_size(value, 2**30) <= len(msgspec.msgpack.encode(value))


@given(PLAIN)
def test_the_least_size_of_many_containers_is_not_above_what_is_written_either(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("schemas.values._MAX_PENDING", 0)
        assert least_size(value, 2**30) <= len(msgspec.msgpack.encode(value))


def doubled() -> Any:
    found: list[Any] = [1]
    for _ in range(40):
        found = [found, found]
    return found


def alone() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize("value", [endless(), wide(), doubled(), alone()])
def test_counting_what_holds_itself_takes_no_longer_where_the_limit_is_high(value: Any) -> None:
    began = time.process_time()
    assert least_size(value, 2**30) > 2**30
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("value", [endless(), wide(), ["x" * 1000] * 10**6, {"a": b"y" * 2000}])
def test_the_least_size_stops_above_its_limit(value: Any) -> None:
    began = time.monotonic()
    assert least_size(value, 1000) > 1000
    assert time.monotonic() - began < 1.0
