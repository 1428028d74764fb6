"""What OpenAI-compatible services answer: output, confidence, usage, refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.cards import Card
from workers.backends.openai_answers import (
    Reading,
    chat_answer,
    confidence_of,
    embeddings_answer,
    explain,
)
from workers.backends.output_schema import check_of
from workers.backends.remote_faults import Trouble
from workers.errors import BadOutput, LoadError

CARD = Card(capability="nlp/say", side="cloud", version="1", model="m", model_type="openai")
USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def chat(text: Any = "hello", finish: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"message": message, "finish_reason": finish, **more}], "usage": USAGE}


@given(st.lists(st.floats(-50, 0), min_size=1, max_size=50))
def test_confidence_is_the_geometric_mean(logs: list[float]) -> None:
    found = confidence_of({"content": [{"logprob": value} for value in logs]})
    assert found is not None
    assert 0.0 <= found <= 1.0
    assert found == pytest.approx(math.prod(math.exp(v / len(logs)) for v in logs), rel=1e-6, abs=1e-300)
    assert found == confidence_of({"content": [{"logprob": value} for value in reversed(logs)]})
    doubled = confidence_of({"content": [{"logprob": value} for value in logs * 2]})
    assert doubled == pytest.approx(found), "length does not count"


@given(JSON)
def test_whatever_stands_for_log_probabilities(value: Any) -> None:
    for shape in (value, {"content": value}, {"content": [value]}, {"content": [{"logprob": value}]}):
        found = confidence_of(shape)
        assert found is None or 0.0 <= found <= 1.0


@given(JSON)
def test_whatever_is_answered(value: Any) -> None:
    shapes = (value, {"choices": value}, {"choices": [value]}, {"choices": [{"message": value}]})
    for said in (*shapes, {**chat(), "usage": value}, chat(value), chat(logprobs=value)):
        try:
            answer = chat_answer(said, Reading())
        except Trouble:
            continue
        assert answer.error is not None or isinstance(answer.output["text"], str)
        assert all(count >= 0 for count in answer.usage.values())
    for said in (value, {"data": value}, {"data": [value]}, {"data": [{"embedding": value, "index": 0}]}):
        try:
            answer = embeddings_answer(said, 1, single=True, dimensions=None)
        except Trouble:
            continue
        assert all(math.isfinite(number) for number in answer.output["embedding"])
    explain(400, json.dumps(value).encode())


def test_what_a_chat_answers() -> None:
    answer = chat_answer(chat(), Reading("summary"))
    assert answer.output == {"summary": "hello"}
    assert answer.usage == {"tokens": 12, "prompt_tokens": 9, "completion_tokens": 3}
    assert answer.confidence is None
    assert chat_answer(chat(finish="length"), Reading()).output == {"text": "hello", "truncated": True}
    called = chat(None)
    called["choices"][0]["message"]["tool_calls"] = [{"id": "1"}]
    assert chat_answer(called, Reading()).output == {"text": "", "tool_calls": [{"id": "1"}]}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (chat(None), "no text"),
        (chat(finish="content_filter"), "refused"),
        (chat(3), "no text"),
    ],
)
def test_answers_that_cannot_be_used_count_their_tokens(said: Any, told: str) -> None:
    answer = chat_answer(said, Reading())
    assert answer.error is not None
    assert answer.error.code == "bad_output"
    assert told in answer.error.message
    assert answer.usage["tokens"] == 12


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "maximum": 9}, "secret-4111": {}},
    "required": ["n"],
    "additionalProperties": {"type": "string"},
}


@pytest.mark.parametrize(
    ("text", "finish", "told"),
    [
        ("4111", "stop", "at $: type"),
        ('{"n": 4111}', "stop", r"at $.n: maximum"),
        ('{"n": 1, "word-4111": 2}', "stop", "at $.*: type"),
        ("{}", "stop", "required"),
        ("no json 4111", "stop", "something else than JSON"),
        ('{"n": 1', "length", "cut off at max_tokens"),
        (None, "stop", "no text"),
    ],
)
def test_json_that_breaks_the_schema(text: str | None, finish: str, told: str) -> None:
    check = check_of(Card(**{**_fields(CARD), "output_schema": SCHEMA}))
    answer = chat_answer(chat(text, finish), Reading(check=check))
    assert answer.error is not None
    assert answer.error.code == "bad_output"
    assert told in answer.error.message
    assert "4111" not in answer.error.message


def test_json_that_follows_the_schema() -> None:
    check = check_of(Card(**{**_fields(CARD), "output_schema": SCHEMA}))
    assert chat_answer(chat('{"n": 1}'), Reading(check=check)).output == {"n": 1}
    check_of(CARD)("anything")
    with pytest.raises(LoadError, match="output_schema"):
        check_of(Card(**{**_fields(CARD), "output_schema": {"type": "nothing known"}}))
    elsewhere = check_of(Card(**{**_fields(CARD), "output_schema": {"$ref": "http://127.0.0.1:1/x"}}))
    with pytest.raises(BadOutput, match="refers to one that is not there"):
        elsewhere(1)


def test_embeddings_come_in_the_order_of_their_texts() -> None:
    said = {
        "data": [{"index": 1, "embedding": [3.0, 4.0]}, {"index": 0, "embedding": [1.0, 2.0]}],
        "usage": {"prompt_tokens": 4, "total_tokens": 4},
    }
    answer = embeddings_answer(said, 2, single=False, dimensions=2)
    assert answer.output == {"embeddings": [[1.0, 2.0], [3.0, 4.0]]}
    assert answer.usage == {"prompt_tokens": 4, "tokens": 4}
    for texts, dimensions in ((1, None), (3, None), (2, 3)):
        with pytest.raises(Trouble):
            embeddings_answer(said, texts, single=False, dimensions=dimensions)
    ragged = {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]}
    with pytest.raises(Trouble, match="length"):
        embeddings_answer(ragged, 2, single=False, dimensions=None)


@pytest.mark.parametrize(
    ("body", "told", "code"),
    [
        (b'{"error": {"code": "insufficient_quota"}}', "nothing left to spend", "backend_error"),
        (b'{"error": {"code": "context_length_exceeded"}}', "longer than the model takes", "bad_input"),
        (b'{"error": {"code": 400, "type": "exceed_context_size_error"}}', "longer", "bad_input"),
        (b'{"error": {"param": "logprobs"}}', "logprobs", "backend_error"),
        (b'{"error": {"param": "4111"}}', None, None),
        (b'{"error": "4111"}', None, None),
        (b"4111", None, None),
        (b"\xff", None, None),
    ],
)
def test_what_a_refusal_says(body: bytes, told: str | None, code: str | None) -> None:
    said = explain(400, body)
    if told is None:
        assert said is None
    else:
        assert said is not None
        assert told in said.text
        assert said.code == code


def _fields(card: Card) -> dict[str, Any]:
    return {name: getattr(card, name) for name in card.__struct_fields__}
