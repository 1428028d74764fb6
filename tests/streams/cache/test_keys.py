from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.messages import Claim, Request
from streams.cache import answer_key, step_key
from tests.schemas.strategies import TEXT, VALUES


def turned(value: Any) -> Any:
    """The same value with the keys of every map the other way round."""
    if isinstance(value, dict):
        return {key: turned(item) for key, item in reversed(value.items())}
    return [turned(item) for item in value] if isinstance(value, list) else value


def key(inputs: dict[str, Any], **fields: Any) -> str:
    return answer_key(Request(task="t", inputs=inputs, **fields), "t", "v1", ("a/1",))


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_the_order_of_keys_counts_for_nothing(inputs: dict[str, Any]):
    assert key(inputs) == key(turned(inputs))
    assert step_key(None, "c", inputs, inputs, (), "v") == step_key(
        None, "c", turned(inputs), turned(inputs), (), "v"
    )


@given(
    st.dictionaries(TEXT, VALUES, max_size=3),
    st.dictionaries(TEXT, VALUES, max_size=3),
)
def test_keys_are_equal_only_for_what_is_written_alike(one: dict[str, Any], other: dict[str, Any]):
    written = msgspec.msgpack.Encoder(order="deterministic").encode
    assert (key(one) == key(other)) == (written(one) == written(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0, False), (0, None), ("a", b"a"), ("1", 1), ([], {}), ([1, [2]], [[1], 2])],
)
def test_what_json_or_msgpack_tells_apart_differs(one: object, other: object):
    assert key({"x": one}) != key({"x": other})


def test_everything_that_the_answer_depends_on_is_part_of_the_key():
    request = Request(task="t", query="q", inputs={"a": 1}, params={"b": 2}, tenant="x")
    claim = Claim(dataref="s3://b/k", sha256="00", size=1)
    changes: list[dict[str, Any]] = [
        {"query": "r"},
        {"inputs": {"a": 2}},
        {"params": {"b": 3}},
        {"tenant": "y"},
        {"tenant": None},
        {"privacy": "high"},
        {"claim": claim},
        {"inputs": {"b": 2}, "params": {"a": 1}},
    ]
    keys = [answer_key(msgspec.structs.replace(request, **change), "t", "v1", ("1",)) for change in changes]
    keys += [
        answer_key(request, *about)
        for about in (("t", "v1", ("1",)), ("u", "v1", ("1",)), ("t", "v2", ("1",)), ("t", "v1", ("2",)))
    ]
    keys += [
        step_key(*about)
        for about in (
            ("x", "c", {}, {}, (), "v"),
            (None, "c", {}, {}, (), "v"),
            ("x", "d", {}, {}, (), "v"),
            ("x", "c", {"a": 1}, {}, (), "v"),
            ("x", "c", {}, {"a": 1}, (), "v"),
            ("x", "c", {}, {}, ("1",), "v"),
            ("x", "c", {}, {}, (), "w"),
        )
    ]
    assert len(set(keys)) == len(keys)


def test_who_asks_by_when_under_which_id_and_for_how_much_is_not():
    request = Request(task="t", inputs={"a": 1})
    other = msgspec.structs.replace(request, id="i", deadline_ms=7, max_cost=0.1, reply_to="results.x")
    assert answer_key(request, "t", "v", ()) == answer_key(other, "t", "v", ())
