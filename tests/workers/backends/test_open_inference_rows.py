"""What a subtask gives becomes one row of a model's input, or is refused with a reason."""

from __future__ import annotations

import math
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workers.backends import Row
from workers.backends.open_inference_codec import DTYPES
from workers.backends.open_inference_rows import Port, Rows
from workers.errors import BadInput

SECRET = "4111-1111-secret"


def read(datatype: str, shape: tuple[int | None, ...], value: Any) -> np.ndarray:
    (array,) = Rows([Port("x", "v", datatype, shape)]).read(Row({"v": value}, {}))
    return array


def refused(datatype: str, shape: tuple[int | None, ...], value: Any) -> str:
    with pytest.raises(BadInput) as caught:
        read(datatype, shape, value)
    assert SECRET not in str(caught.value)
    return str(caught.value)


@given(
    hnp.arrays(
        "<f4", hnp.array_shapes(min_dims=1, max_dims=3, max_side=3), elements=st.floats(-9, 9, width=32)
    )
)
def test_nested_flat_and_raw_are_the_same(array: np.ndarray) -> None:
    for value in (array.tolist(), array.ravel().tolist(), array.tobytes()):
        found = read("FP32", array.shape, value)
        assert found.dtype == np.dtype("<f4")
        assert np.array_equal(found, array)


@given(
    hnp.arrays(
        "<f4", hnp.array_shapes(min_dims=2, max_dims=3, max_side=3), elements=st.floats(-9, 9, width=32)
    )
)
def test_sizes_that_are_free_follow_the_lists(array: np.ndarray) -> None:
    free: tuple[None, ...] = (None,) * array.ndim
    assert np.array_equal(read("FP32", free, array.tolist()), array)


@given(st.sampled_from(sorted(set(DTYPES) - {"BYTES", "BF16"})), st.integers() | st.floats())
def test_a_number_is_taken_as_it_is_or_refused(datatype: str, number: float) -> None:
    """No number turns into another: what is taken is within half a step of the type."""
    dtype = np.dtype(DTYPES[datatype])
    try:
        found = read(datatype, (1,), [number]).tolist()[0]
    except BadInput:
        return
    if dtype.kind != "f":
        assert found == number
    else:
        assert math.isfinite(found)
        assert abs(found - number) <= abs(number) * 2**-10 + 1e-7


@pytest.mark.parametrize(
    ("datatype", "shape", "value", "told"),
    [
        ("FP32", (2,), None, "missing"),
        ("FP32", (2,), [], "0 values"),
        ("FP32", (2,), [1.0, math.nan], "NaN"),
        ("FP32", (2,), [1.0, math.inf], "infinity"),
        ("FP32", (2,), [1.0], "give 2"),
        ("FP32", (None, 2), [1.0], "a multiple of 2"),
        ("FP32", (None, None), [1.0], r"nested lists of shape \[-1, -1\]"),
        ("FP32", (2,), [1.0, SECRET], "str"),
        ("FP32", (2,), SECRET, "str"),
        ("FP32", (2,), [1.0, None], "NoneType"),
        ("FP32", (2,), [True, False], "bool"),
        ("FP32", (2, 2), [[1.0, 2.0], [3.0]], "ragged"),
        ("FP32", (2,), b"\0" * 7, "7 bytes"),
        ("FP32", (2,), np.array([1.0, np.nan], "<f4").tobytes(), "NaN"),
        ("FP32", (1,), [1e39], "no FP32"),
        ("FP16", (1,), [70000.0], "no FP16"),
        ("BF16", (1,), [3.4e38], "no BF16"),
        ("INT64", (1,), [2**63], "no INT64"),
        ("INT64", (1,), [2**70], "no INT64"),
        ("INT64", (1,), [1e18], "no INT64"),
        ("INT32", (1,), [1.5], "no INT32"),
        ("UINT8", (1,), [256], "no UINT8"),
        ("UINT64", (1,), [-1], "no UINT64"),
        ("FP64", (1,), [10**400], "no FP64"),
        ("INT8", (2,), [10**400, 0.5], "no INT8"),
        ("BOOL", (1,), [2], "no BOOL"),
        ("BOOL", (1,), [10**400], "no BOOL"),
        ("BOOL", (1,), b"\x02", "neither 0 nor 1"),
        ("BYTES", (1,), 5, "something else than text"),
        ("BYTES", (1,), [SECRET, SECRET], "2 values"),
        ("BYTES", (1,), "\ud800", "surrogate"),
        ("BYTES", (2,), {"a": SECRET}, "something else than text"),
    ],
)
def test_what_is_refused(datatype: str, shape: tuple[int | None, ...], value: Any, told: str) -> None:
    assert re.search(told, refused(datatype, shape, value))


@pytest.mark.parametrize(
    ("datatype", "shape", "value", "wanted"),
    [
        ("INT64", (2,), [2**62, -1], [2**62, -1]),
        ("INT32", (2,), [1.0, 2], [1, 2]),
        ("UINT8", (3,), b"\x01\x02\xff", [1, 2, 255]),
        ("UINT64", (2,), [2**64 - 1, 0], [2**64 - 1, 0]),
        ("FP64", (2,), [2**70, 1], [2.0**70, 1.0]),
        ("BOOL", (3,), [True, 0, 1.0], [True, False, True]),
        ("FP64", (1,), [0.1], [0.1]),
        ("FP16", (2,), np.array([0.5, 2], "<f4").tobytes(), [0.5, 2.0]),
        ("FP32", (), 5, 5.0),
        ("FP32", (), [5], 5.0),
        ("BYTES", (1,), "grün", ["grün".encode()]),
        ("BYTES", (), b"\xff", b"\xff"),
        ("BYTES", (1,), "", [b""]),
        ("BYTES", (None,), ["a", b"b"], [b"a", b"b"]),
        ("BYTES", (2, 1), [["a"], ["b"]], [[b"a"], [b"b"]]),
    ],
)
def test_what_is_taken(datatype: str, shape: tuple[int | None, ...], value: Any, wanted: Any) -> None:
    assert read(datatype, shape, value).tolist() == wanted


def test_one_long_text_among_numbers_takes_no_more_memory_than_itself() -> None:
    value = ["x" * 1_000_000, *[1.0] * 2000]
    tracemalloc.start()
    try:
        refused("FP32", (2001,), value)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_rows_of_equal_kin_stack(a: int, b: int, c: int) -> None:
    rows = Rows([Port("x", "v", "FP32", (None, a))])
    ones = [Row({"v": [[1.0] * a] * size}, {}) for size in (b, c)]
    shapes = {rows.read(row)[0].shape for row in ones}
    assert (rows.kin(ones[0]) == rows.kin(ones[1])) == (len(shapes) == 1)


def test_kin_of_anything_is_hashable() -> None:
    rows = Rows([Port("x", "v", "FP32", (None,)), Port("y", "w", "BYTES", (None,))])
    for value in (None, [], [[]], [[1], 2], "text", b"bytes", {"a": 1}, 5):
        hash(rows.kin(Row({"v": value, "w": value}, {})))
