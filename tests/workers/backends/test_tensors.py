"""The law of kin: rows of one kin stack, and none changes another's answer."""

from __future__ import annotations

import tracemalloc
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.backends import Row
from workers.backends.tensors import Feed, TensorPre
from workers.errors import BadRows

FEEDS = {
    "fixed": [Feed("x", "x", (2, 3))],
    "ragged": [Feed("x", "x", (None, 2))],
    "two": [Feed("x", "x", (None,)), Feed("y", "y", (2,), "int64")],
    "whole": [Feed("x", "x", (None,), "int32")],
    "half": [Feed("x", "x", (None,), "float16")],
}
numbers = st.integers(-3, 70_000) | st.floats(width=32) | st.floats(-2, 2)
lists = (
    st.lists(numbers, max_size=7)
    | st.lists(st.lists(numbers, min_size=2, max_size=2), max_size=4)
    | st.lists(st.lists(st.lists(numbers, min_size=1, max_size=2), max_size=2), max_size=3)
    | st.lists(st.integers(-4, 4), min_size=6, max_size=6)
)
odd = (
    st.none()
    | st.booleans()
    | st.text(max_size=4)
    | st.integers()
    | st.lists(st.text(max_size=2), max_size=3)
)
raw = st.binary(max_size=24) | st.lists(st.floats(width=32), max_size=6).map(
    lambda found: np.array(found, "<f4").tobytes()
)
rows = st.lists(
    st.builds(
        Row,
        st.dictionaries(st.sampled_from(["x", "y"]), lists | raw | odd, max_size=2),
        st.sampled_from([{}, {}, {"k": 1}, {"k": 2}]),
    ),
    min_size=1,
    max_size=12,
)


def alone(pre: TensorPre, row: Row) -> dict[str, Any] | None:
    """The tensors of a row by itself, None where it is refused."""
    try:
        return pre([row])
    except BadRows:
        return None


def blamed(pre: TensorPre, batch: list[Row]) -> set[int]:
    """The rows that a batch names as bad."""
    try:
        pre(batch)
    except BadRows as refused:
        return set(refused.faults)
    return set()


@given(st.sampled_from(sorted(FEEDS)), rows)
def test_rows_of_one_kin_stack_to_what_each_is_alone_and_the_bad_are_named(
    name: str, found: list[Row]
) -> None:
    pre = TensorPre(FEEDS[name])
    for _, kin in groupby(
        sorted(found, key=lambda row: repr(pre.kin(row))), key=lambda row: repr(pre.kin(row))
    ):
        batch = list(kin)
        assert len({repr(row.params) for row in batch}) == 1, "params never mix"
        single = [alone(pre, row) for row in batch]
        bad = {index for index, each in enumerate(single) if each is None}
        assert blamed(pre, batch) <= bad, "a sound row is never blamed"
        assert bool(blamed(pre, batch)) == bool(bad)
        batch = [row for index, row in enumerate(batch) if index not in bad]
        if not batch:
            continue
        stacked = pre(batch)
        for feed in FEEDS[name]:
            expected = np.concatenate([each[feed.name] for each in single if each is not None])
            assert stacked[feed.name].dtype == expected.dtype == np.dtype(feed.dtype)
            np.testing.assert_array_equal(stacked[feed.name], expected)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int64", [1.5, 2.0]),
        ("uint8", [300, 1]),
        ("uint8", [-1, 1]),
        ("int8", [128, 0]),
        ("int64", [2**63, 0]),
        ("int64", np.array([0.5, 1.0], "<f4").tobytes()),
        ("uint8", np.array([256.0, 1.0], "<f4").tobytes()),
        ("float16", np.array([1e6, 1.0], "<f4").tobytes()),
        ("float16", [1e6, 1.0]),
        ("int32", np.array([np.nan, 1.0], "<f4").tobytes()),
    ],
)
def test_a_number_that_the_type_cannot_hold_is_refused_not_changed(dtype: str, value: Any) -> None:
    pre = TensorPre([Feed("x", "x", (2,), dtype)])
    sound = Row({"x": [1, 2]}, {})
    with pytest.raises(BadRows) as refused:
        pre([sound, Row({"x": value}, {})])
    assert list(refused.value.faults) == [1]
    assert "x" in refused.value.faults[1]
    np.testing.assert_array_equal(pre([sound])["x"], [[1, 2]])


def test_whole_numbers_may_come_as_floats() -> None:
    pre = TensorPre([Feed("x", "x", (2,), "int64")])
    found = pre([Row({"x": [1.0, 2.0]}, {}), Row({"x": np.array([3, 4], "<f4").tobytes()}, {})])
    np.testing.assert_array_equal(found["x"], [[1, 2], [3, 4]])


@pytest.mark.parametrize("long", ["x" * 20_000, b"x" * 20_000], ids=["text", "bytes"])
@pytest.mark.parametrize("nested", [False, True])
def test_one_long_text_among_numbers_takes_no_more_than_itself(long: Any, *, nested: bool) -> None:
    """Numpy makes a text of each number, as long as the longest: 1.6 GB of these."""
    numbers: list[Any] = [1.0] * 19_999
    given = [[*numbers, 2.0], [*numbers, long]] if nested else [*numbers, long]
    tracemalloc.start()
    try:
        with pytest.raises(BadRows) as caught:
            TensorPre([Feed("x", "x", (None,))])([Row({"x": given}, {})])
        assert "something else than numbers" in caught.value.faults[0]
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
