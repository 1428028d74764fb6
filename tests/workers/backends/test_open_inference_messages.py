"""Messages over REST: what is asked comes back, raw or not; params travel or are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.backends.open_inference_codec import Tensor
from workers.backends.open_inference_messages import HEADER, model_of, object_of, request_of, tensors_of
from workers.backends.open_inference_wire import Ask, parameters
from workers.backends.remote_faults import Trouble
from workers.backends.remote_wire import Reply
from workers.errors import BadInput

FLOATS = st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=4).map(
    lambda values: Tensor("a", "FP32", np.array(values, "<f4"))
)


def texts(values: list[str]) -> Tensor:
    array = np.empty(len(values), object)
    array[:] = [value.encode() for value in values]
    return Tensor("b", "BYTES", array)


TENSORS = st.lists(FLOATS | st.lists(st.text(max_size=5), max_size=3).map(texts), min_size=1, max_size=4)


def mirrored(body: bytes, headers: dict[str, str]) -> Reply:
    """What a server answers whose outputs are its inputs."""
    size = int(headers.get(HEADER, len(body)))
    said = json.loads(body[:size])
    text = json.dumps({"outputs": said["inputs"]}).encode()
    return Reply({HEADER: str(len(text))} if headers else {}, text + body[size:])


@given(TENSORS, st.booleans())
def test_tensors_there_and_back(tensors: list[Tensor], raw: bool) -> None:
    found = tensors_of(mirrored(*request_of(Ask(tuple(tensors), (), {}, "id"), raw=raw)))
    assert [tensor[:2] for tensor in found] == [tensor[:2] for tensor in tensors]
    for one, other in zip(found, tensors, strict=True):
        values = one.array.tolist()
        assert [v.encode() if isinstance(v, str) else v for v in values] == other.array.tolist()


def test_a_request_says_what_it_wants() -> None:
    ask = Ask((Tensor("a", "INT64", np.array([[1, 2]])),), ("y",), {"beams": 3}, "r/s/cloud/1")
    body, headers = request_of(ask, raw=False)
    assert json.loads(body) == {
        "id": "r/s/cloud/1",
        "parameters": {"beams": 3},
        "inputs": [{"name": "a", "datatype": "INT64", "shape": [1, 2], "data": [1, 2]}],
        "outputs": [{"name": "y"}],
    }
    assert headers == {}
    body, headers = request_of(ask, raw=True)
    head = json.loads(body[: int(headers[HEADER])])
    assert head["parameters"] == {"beams": 3, "binary_data_output": True}
    assert body[int(headers[HEADER]) :] == np.array([1, 2], "<i8").tobytes()


def test_a_server_may_mix_raw_and_json() -> None:
    outputs = [
        {"name": "a", "datatype": "UINT8", "shape": [2], "parameters": {"binary_data_size": 2}},
        {"name": "b", "datatype": "BYTES", "shape": [1], "data": ["x"], "parameters": None},
        {"name": "c", "datatype": "UINT8", "shape": [1], "parameters": {"binary_data_size": 1}},
    ]
    text = json.dumps({"outputs": outputs}).encode()
    found = tensors_of(Reply({HEADER: str(len(text))}, text + b"\1\2\3"))
    assert [tensor.array.tolist() for tensor in found] == [[1, 2], ["x"], [3]]


RAW = b'{"outputs":[{"name":"a","datatype":"UINT8","shape":[4],"parameters":{"binary_data_size":4}}]}'


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b"[]"),
        ({}, b"{}"),
        ({}, b'{"outputs": 5}'),
        ({}, b'{"outputs": [5]}'),
        ({}, b'{"outputs": [{"name": "a", "datatype": "FP32", "shape": ["x"], "data": []}]}'),
        ({}, b'{"outputs": [{"name": "a", "datatype": "FP32", "shape": [1]}]}'),
        ({HEADER: "9999"}, b'{"outputs": []}'),
        ({HEADER: "-1"}, b'{"outputs": []}'),
        ({HEADER: "1e3"}, b'{"outputs": []}'),
        ({}, RAW),
        ({HEADER: str(len(RAW))}, RAW + b"123"),
        ({HEADER: str(len(RAW) + 1)}, RAW.replace(b":4}", b":-4}")),
    ],
)
def test_what_is_malformed_is_told(headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(Trouble) as caught:
        tensors_of(Reply(headers, body))
    assert caught.value.code == "bad_output"


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"sequence_id": 1}, "kept for the protocol"),
        ({"binary_data_output": False}, "kept for the protocol"),
        ({"stop": ["a"]}, "is a list"),
        ({"seed": 2**64}, "64 bits"),
        ({"none": None}, "NoneType"),
    ],
)
def test_params_that_cannot_travel(params: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        parameters(params)


def test_a_server_that_tells_nonsense_tells_nothing() -> None:
    for told in ({}, {"inputs": 5}, {"inputs": [{"name": 5}]}, {"inputs": None}):
        assert model_of({"name": 5, "extensions": "x"}, told) == ("", (), (), ())
    for body in (b"", b"[", b"5", b"\xff", b"[" * 100_000):
        assert object_of(body) == {}
