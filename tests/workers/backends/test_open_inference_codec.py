"""Tensors survive the wire: raw and as JSON, of every datatype; what is malformed is told, not raised."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workers.backends.open_inference_codec import DTYPES, Tensor, from_json, from_raw, json_of, packed, raw_of
from workers.backends.remote_faults import Trouble
from workers.errors import BadInput

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
NUMBERS = sorted(set(DTYPES) - {"BYTES", "BF16"})


@st.composite
def numbers(draw: st.DrawFn) -> Tensor:
    datatype = draw(st.sampled_from(NUMBERS))
    dtype = np.dtype(DTYPES[datatype])
    finite: dict[str, Any] = {"allow_nan": False, "allow_infinity": False} if dtype.kind == "f" else {}
    elements = hnp.from_dtype(dtype, **finite)
    return Tensor("x", datatype, draw(hnp.arrays(dtype, SHAPES, elements=elements)))


@st.composite
def texts(draw: st.DrawFn, elements: st.SearchStrategy[bytes]) -> Tensor:
    shape = draw(SHAPES)
    count = int(np.prod(shape))
    array = np.empty(count, object)
    array[:] = draw(st.lists(elements, min_size=count, max_size=count))
    return Tensor("x", "BYTES", array.reshape(shape))


def same(found: Tensor, sent: Tensor) -> None:
    assert found[:2] == sent[:2]
    assert found.array.shape == sent.array.shape
    assert found.array.dtype == np.dtype(DTYPES[sent.datatype])
    assert found.array.tobytes() == sent.array.tobytes() or sent.datatype == "BYTES"


@given(numbers())
def test_numbers_survive_raw(tensor: Tensor) -> None:
    same(from_raw("x", tensor.datatype, tensor.array.shape, raw_of(tensor)), tensor)


@given(numbers())
def test_numbers_survive_json_flat_and_nested(tensor: Tensor) -> None:
    flat = json.loads(json.dumps(json_of(tensor)))
    same(from_json("x", tensor.datatype, tensor.array.shape, flat), tensor)
    same(from_json("x", tensor.datatype, tensor.array.shape, tensor.array.tolist()), tensor)


@given(texts(st.binary(max_size=20)))
def test_bytes_survive_raw_and_are_text_where_they_can_be(tensor: Tensor) -> None:
    found = from_raw("x", "BYTES", tensor.array.shape, raw_of(tensor))
    same(found, tensor)
    for value, sent in zip(found.array.ravel(), tensor.array.ravel(), strict=True):
        assert (value.encode() if isinstance(value, str) else value) == sent


@given(texts(st.text(max_size=20).map(str.encode)))
def test_texts_survive_json(tensor: Tensor) -> None:
    found = from_json("x", "BYTES", tensor.array.shape, json.loads(json.dumps(json_of(tensor))))
    assert [text.encode() for text in found.array.ravel()] == tensor.array.ravel().tolist()


def test_bytes_that_are_no_text_do_not_go_as_json() -> None:
    with pytest.raises(BadInput, match="no UTF-8") as caught:
        json_of(Tensor("x", "BYTES", np.array([b"\xff\xfe"], object)))
    assert "xff" not in str(caught.value)


EVERY_BF16 = (np.arange(65536, dtype="<u4") << 16).view("<f4")
FINITE_BF16 = EVERY_BF16[np.isfinite(EVERY_BF16)].astype(float)
LARGEST = float(FINITE_BF16.max())


@given(st.floats(-LARGEST, LARGEST, width=32))
def test_bf16_is_the_nearest_that_there_is(number: float) -> None:
    raw = raw_of(Tensor("x", "BF16", np.array([number], "<f4")))
    (found,) = from_raw("x", "BF16", [1], raw).array.tolist()
    assert abs(found - number) == np.abs(FINITE_BF16 - number).min()


def test_bf16_by_example() -> None:
    """1 + 2**-8 lies half way between 1 and 1 + 2**-7, and goes to the even one; three times it does not."""
    sent = Tensor("x", "BF16", np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, np.nan, np.inf, -2.5], "<f4"))
    raw = raw_of(sent)
    assert raw.hex() == "803f803f823fc07f807f20c0"
    found = from_raw("x", "BF16", [6], raw).array
    assert found.tolist()[:3] == [1.0, 1.0, 1 + 2**-6]
    assert np.isnan(found[3])


def test_nothing_of_nan_is_lost_on_the_way_back() -> None:
    assert np.isnan(from_json("x", "FP32", [2], [1.0, None]).array[1])


@pytest.mark.parametrize(
    ("datatype", "shape", "raw"),
    [
        ("FP32", [2], b"\0" * 7),
        ("FP32", [3], b"\0" * 8),
        ("FP32", [-1], b""),
        ("INT9", [1], b"\0"),
        ("BYTES", [2], packed([b"one"])),
        ("BYTES", [1], b"\x05\0\0\0abc"),
        ("BYTES", [1], b"\x05\0"),
        ("BYTES", [1], b"\xff\xff\xff\xff"),
    ],
)
def test_malformed_raw_tensors_are_bad_output(datatype: str, shape: list[int], raw: bytes) -> None:
    with pytest.raises(Trouble) as caught:
        from_raw("x", datatype, shape, raw)
    assert caught.value.code == "bad_output"


@pytest.mark.parametrize(
    ("datatype", "shape", "data"),
    [
        ("FP32", [2], [1.0]),
        ("FP32", [1], ["SECRET"]),
        ("FP32", [1], [True]),
        ("FP32", [1], None),
        ("FP32", [2], [[1.0], 2.0]),
        ("INT8", [1], [300]),
        ("INT8", [1], [1.5]),
        ("UINT8", [1], [-1]),
        ("BOOL", [1], [1]),
        ("BYTES", [1], [5]),
        ("WORDS", [1], ["a"]),
        ("FP32", [1, -5], [1.0]),
    ],
)
def test_malformed_json_tensors_are_bad_output(datatype: str, shape: list[int], data: Any) -> None:
    with pytest.raises(Trouble) as caught:
        from_json("x", datatype, shape, data)
    assert caught.value.code == "bad_output"
    assert "SECRET" not in str(caught.value)


@given(st.sampled_from(sorted(DTYPES)), SHAPES, st.binary(max_size=40))
def test_whatever_comes_raw_is_a_tensor_or_told(datatype: str, shape: tuple[int, ...], raw: bytes) -> None:
    try:
        assert from_raw("x", datatype, shape, raw).array.shape == tuple(shape)
    except Trouble as trouble:
        assert trouble.code == "bad_output"  # noqa: PT017 - either of the two is right


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(DTYPES)), SHAPES, JSON)
def test_whatever_comes_as_json_is_a_tensor_or_told(datatype: str, shape: tuple[int, ...], data: Any) -> None:
    try:
        assert from_json("x", datatype, shape, data).array.shape == tuple(shape)
    except Trouble as trouble:
        assert trouble.code == "bad_output"  # noqa: PT017 - either of the two is right
