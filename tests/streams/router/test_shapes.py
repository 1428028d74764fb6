"""The subset of JSON Schema, against the full thing."""

from __future__ import annotations

import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.router.shapes import compiled, shape_of

CARD = {
    "title": "classify",
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 100},
        "top": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
        "mode": {"enum": ["fast", "exact", 1]},
        "scale": {"type": ["number", "null"]},
        "tags": {"type": "array", "maxItems": 2},
        "flag": {"type": "boolean"},
        "extra": {"type": "object"},
    },
    "required": ["text"],
}


def misfit(
    schema: dict[str, Any], inputs: dict[str, Any], later: frozenset[str] = frozenset(), **params: Any
) -> Any:
    return compiled(schema).misfit(inputs, params, later)


@pytest.mark.parametrize(
    ("inputs", "name"),
    [
        ({"text": "a"}, None),
        ({}, "text"),
        ({"text": 5}, "text"),
        ({"text": "x" * 101}, "text"),
        ({"text": "a", "top": 3.0}, None),
        ({"text": "a", "top": 3.5}, "top"),
        ({"text": "a", "top": True}, "top"),
        ({"text": "a", "top": 11}, "top"),
        ({"text": "a", "mode": "slow"}, "mode"),
        ({"text": "a", "mode": 1}, None),
        ({"text": "a", "mode": True}, "mode"),
        ({"text": "a", "scale": None}, None),
        ({"text": "a", "scale": "1"}, "scale"),
        ({"text": "a", "tags": [1, 2, 3]}, "tags"),
        ({"text": "a", "flag": 1}, "flag"),
        ({"text": "a", "extra": []}, "extra"),
        ({"text": "a", "unknown": object}, None),
    ],
)
def test_inputs(inputs, name):
    assert misfit(CARD, inputs) == name


def test_bytes_pass_for_texts_and_arrays():
    schema = {"properties": {"image": {"type": "string"}, "tensor": {"type": "array", "minItems": 3}}}
    assert misfit(schema, {"image": b"png", "tensor": b"\x00\x01"}) is None
    assert misfit({"properties": {"n": {"type": "number"}}}, {"n": b"\x00"}) == "n"


def test_a_worker_reads_params_as_well():
    assert misfit(CARD, {}, text="a") is None
    assert misfit(CARD, {"text": "a"}, top="x") == "top"


def test_what_earlier_steps_give_is_not_missing():
    assert misfit(CARD, {}, frozenset({"text"})) is None


def test_all_of():
    schema = {"allOf": [{"required": ["a"]}, {"properties": {"b": {"allOf": [{"type": "string"}]}}}]}
    assert misfit(schema, {}) == "a"
    assert misfit(schema, {"a": 1, "b": 2}) == "b"


def test_what_is_a_string_to_json_alone_is_left_to_the_worker():
    schema = {"properties": {"when": {"type": "string", "format": "date-time"}}}
    assert misfit(schema, {"when": 5}) is None


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"required": 5},
        {"properties": []},
        {"properties": {"a": True}},
        {"properties": {"a": {"type": "odd"}}},
        {"allOf": 3},
    ],
)
def test_a_schema_that_says_nothing_known_demands_nothing(schema):
    assert misfit(schema, {"a": 1}) is None


def test_one_object_is_compiled_once():
    assert shape_of(CARD) is shape_of(CARD)
    assert shape_of(dict(CARD)) is not shape_of(CARD)


values = (
    st.none()
    | st.booleans()
    | st.integers(-20, 20)
    | st.floats(-20, 20)
    | st.text(max_size=4)
    | st.lists(st.integers(), max_size=3)
)
properties = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["string", "number", "integer", "boolean", "array", "object", "null", ["string", "null"]]
        ),
        "enum": st.lists(st.integers(0, 2) | st.text(max_size=1), min_size=1, max_size=3),
        "minimum": st.integers(-5, 5),
        "maxLength": st.integers(0, 3),
        "maxItems": st.integers(0, 2),
    },
)
schemas = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "properties": st.dictionaries(st.sampled_from("abc"), properties, max_size=3),
        "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
    },
)


@given(schemas, st.dictionaries(st.sampled_from("abc"), values, max_size=3))
def test_it_refuses_what_the_full_thing_refuses(schema, inputs):
    valid = jsonschema.Draft202012Validator(schema).is_valid(inputs)
    assert (misfit(schema, inputs) is None) == valid


def test_a_typical_check_takes_less_than_five_microseconds():
    shape = shape_of(CARD)
    inputs = {"text": "where is my card", "top": 3}
    best = 1.0
    for _ in range(5):
        began = time.process_time()
        for _ in range(10_000):
            shape.misfit(inputs, {})
        best = min(best, (time.process_time() - began) / 10_000)
    assert best < 5e-6
