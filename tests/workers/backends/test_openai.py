"""The OpenAI-compatible backend: the contracts, and its calls as a service sees them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from schemas.cards import Card
from schemas.rules import parse_rules
from tests.helpers.faulty_server import FAULTS, Asked, Fault, FaultyServer, faulty
from tests.workers.backends.contract import SECRET, FaultContract, Faulted, RemoteContract, Subject
from workers.backends import Answer, Call, Row, registry
from workers.backends.openai import OpenAIBackend
from workers.partials import cost_of

PRICES = {"input_per_1m_tokens": 1000.0, "output_per_1m_tokens": 2000.0}


def speak(asked: Asked) -> Any:
    """As a service speaks: chat says the last message again, an embedding is the text's length."""
    body = asked.json()
    if asked.path.endswith("/embeddings"):
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        data = [{"index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(texts)]
        return {"data": data, "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    message = {"role": "assistant", "content": body["messages"][-1]["content"]}
    choice: dict[str, Any] = {"message": message, "finish_reason": "stop"}
    if body.get("logprobs"):
        choice["logprobs"] = {"content": [{"logprob": -0.1}, {"logprob": -0.3}]}
    return {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty(speak) as started:
        yield started


def chat(server: FaultyServer, **options: Any) -> OpenAIBackend:
    return OpenAIBackend("cloud/nlp/say", url=server.url + "/v1", model="m", **options)


async def ask(backend: OpenAIBackend, *rows: Row, left_s: float = 5.0) -> list[Answer]:
    await backend.load()
    calls = [Call(f"r/s/cloud/{n}", time.monotonic() + left_s) for n in range(len(rows))]
    try:
        return await asyncio.to_thread(backend.infer_calls, rows, calls)
    finally:
        backend.close()


class TestChat(RemoteContract):
    @pytest.fixture
    def subject(self, server: FaultyServer) -> Subject:
        @contextmanager
        def silent() -> Iterator[None]:
            server.fault = lambda _: FAULTS["never answers"]
            yield

        return Subject(
            make=lambda: chat(server, **PRICES),
            good=lambda n: Row({"text": f"word {n}"}, {}),
            right=lambda n, output: output == {"text": f"word {n}"},
            bad=Row({"words": SECRET}, {}),
            huge=Row({"text": "x" * 5_000_000}, {}),
            unloadable=lambda: chat(server, key_env="NOT_SET_AT_ALL"),
            silent=silent,
        )


class TestEmbeddings(RemoteContract):
    @pytest.fixture
    def subject(self, server: FaultyServer) -> Subject:
        @contextmanager
        def silent() -> Iterator[None]:
            server.fault = lambda _: FAULTS["never answers"]
            yield

        return Subject(
            make=lambda: chat(server, mode="embeddings"),
            good=lambda n: Row({"text": "x" * (n + 1)}, {}),
            right=lambda n, output: output == {"embedding": [n + 1.0, 1.0]},
            bad=Row({"text": [SECRET, 3]}, {}),
            huge=Row({"texts": ["x" * 1000] * 5000}, {}),
            unloadable=lambda: chat(server, mode="embeddings", ca_file="/no/such/file"),
            silent=silent,
        )


class TestChatFaults(FaultContract):
    @pytest.fixture
    def faulted(self, server: FaultyServer) -> Faulted:
        return Faulted(
            server,
            make=lambda: chat(server, **PRICES),
            good=lambda n: Row({"text": f"word {n}"}, {}),
            right=lambda n, output: output == {"text": f"word {n}"},
            number_of=lambda asked: int(asked.json()["messages"][-1]["content"].removeprefix("word ")),
        )


async def test_a_call_as_the_service_sees_it(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "word-of-mouth")
    backend = chat(server, key_env="THE_KEY", headers={"OpenAI-Project": "p1"}, logprobs=True, **PRICES)
    (answer,) = await ask(backend, Row({"text": "hello"}, {}))
    (call,) = server.calls
    assert (call.method, call.path) == ("POST", "/v1/chat/completions")
    assert call.headers["authorization"] == "Bearer word-of-mouth"
    assert call.headers["openai-project"] == "p1"
    assert call.headers["idempotency-key"] == "r/s/cloud/0"
    assert call.json()["model"] == "m"
    assert answer.output == {"text": "hello"}
    assert answer.confidence == pytest.approx(0.8187, abs=1e-4), "exp of the mean of -0.1 and -0.3"
    assert answer.cost == pytest.approx(10 * 0.001 + 5 * 0.002)
    assert answer.usage == {"tokens": 15, "prompt_tokens": 10, "completion_tokens": 5}
    assert backend.card.calibrated is False


async def test_the_service_is_told_the_trace(server: FaultyServer) -> None:
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    backend = chat(server)
    await backend.load()
    try:
        row, call = Row({"text": "a"}, {}), Call("r/s/cloud/0", time.monotonic() + 5.0, parent)
        await asyncio.to_thread(backend.infer_calls, [row], [call])
    finally:
        backend.close()
    assert [asked.headers.get("traceparent") for asked in server.calls] == [parent]


async def test_the_path_stands_before_the_query(server: FaultyServer) -> None:
    backend = OpenAIBackend("cloud/a", url=server.url + "/openai/?api-version=7", model="m")
    assert (await ask(backend, Row({"text": "a"}, {})))[0].error is None
    assert server.calls[0].path == "/openai/chat/completions?api-version=7"


async def test_several_texts_are_one_request(server: FaultyServer) -> None:
    (answer,) = await ask(chat(server, mode="embeddings"), Row({"texts": ["a", "bcd"]}, {}))
    assert answer.output == {"embeddings": [[1.0, 1.0], [3.0, 1.0]]}
    assert server.calls[0].path == "/v1/embeddings"


async def test_what_is_not_counted_costs_the_most(server: FaultyServer) -> None:
    server.answer = lambda asked: {**speak(asked), "usage": None}
    backend = chat(server, max_tokens=100, **PRICES)
    row = Row({"text": "hello"}, {})
    (answer,) = await ask(backend, row)
    assert answer.error is None
    written = len(server.calls[0].body)
    assert answer.cost == pytest.approx((written + 256) * 0.001 + 100 * 0.002)
    assert backend.card.max_cost is not None
    assert answer.cost < backend.card.max_cost


async def test_an_answer_that_breaks_its_schema_is_paid_for(server: FaultyServer) -> None:
    schema = {"type": "object", "required": ["n"]}
    backend = chat(server, json="schema", output_schema=schema, **PRICES)
    good, bad = await ask(backend, Row({"text": '{"n": 1}'}, {}), Row({"text": '{"m": 4111}'}, {}))
    assert good.output == {"n": 1}
    assert bad.error is not None
    assert bad.error.message == "nlp/say: the answer breaks the output schema at $: required"
    assert bad.cost == good.cost == pytest.approx(0.02)


async def test_the_price_of_the_rules_counts(server: FaultyServer) -> None:
    price = b'{"per_1k_tokens": 1.0, "max_cost": 9}'
    rules = parse_rules(b'{"say": {"capability": "nlp/say"}, "prices": {"cloud/nlp/say": %b}}' % price)
    backend = chat(server, **PRICES)
    adopt = backend.prepare(rules)
    (before,) = await ask(backend, Row({"text": "a"}, {}))
    adopt()
    (after,) = await ask(backend, Row({"text": "a"}, {}))
    assert before.cost == pytest.approx(0.02)
    assert after.cost is None
    assert cost_of(after, backend.card, rules.prices["cloud/nlp/say"], 9.0) == pytest.approx(0.015)


@pytest.mark.parametrize(
    ("status", "body", "told", "calls"),
    [
        (429, b'{"error": {"code": "insufficient_quota", "message": "4111"}}', "nothing left to spend", 1),
        (429, b'{"error": {"code": "rate_limit_exceeded"}}', "too many calls (attempt 3)", 3),
        (400, b'{"error": {"code": "context_length_exceeded"}}', "longer than the model takes", 1),
        (400, b'{"error": {"param": "logprobs"}}', "look at logprobs", 1),
        (404, b'{"error": {"code": "model_not_found"}}', "look at the option model", 1),
        (401, b'{"error": {"code": "invalid_api_key"}}', "the key is missing or refused", 1),
        (400, b"{" * 99_999, "refuses these inputs", 1),
    ],
)
async def test_refusals(server: FaultyServer, status: int, body: bytes, told: str, calls: int) -> None:
    server.fault = lambda _: Fault(status, body=body, paid=False)
    (answer,) = await ask(chat(server, **PRICES), Row({"text": "a"}, {}))
    assert answer.error is not None
    assert told in answer.error.message
    assert answer.cost == 0.0
    assert len(server.calls) == calls


async def test_a_refusal_that_trickles_holds_nobody_up(server: FaultyServer) -> None:
    server.fault = lambda _: Fault(401, body=b"x" * 1000, trickle_s=0.05, paid=False)
    began = time.monotonic()
    (answer,) = await ask(chat(server), Row({"text": "a"}, {}))
    assert answer.error is not None
    assert "answered 401" in answer.error.message
    assert time.monotonic() - began < 2.5


def test_it_is_a_kind_that_cards_name() -> None:
    card = Card(capability="a", side="cloud", version="1", model="m", model_type="openai")
    backend = registry.build(card, {"url": "https://example.com/v1", **PRICES})
    assert isinstance(backend, OpenAIBackend)
    assert backend.card.max_cost is not None
    assert backend.card.max_cost > 0
