"""The OpenAI-compatible backend against llama.cpp's own server with a tiny random model."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.helpers.servers import LlamaServer
from workers.backends import Answer, Call, Row
from workers.backends.openai import OpenAIBackend

PRICES = {"input_per_1m_tokens": 1.0, "output_per_1m_tokens": 2.0}
ROW = Row({"text": "the cat sat"}, {})


def made(server: LlamaServer, **options: Any) -> OpenAIBackend:
    return OpenAIBackend("cloud/nlp/say", url=server.url, model="tiny", **{**PRICES, **options})


async def ask(backend: OpenAIBackend, *rows: Row, left_s: float = 20.0) -> list[Answer]:
    calls = [Call(f"r/s/cloud/{n}", time.monotonic() + left_s) for n in range(len(rows))]
    return await asyncio.to_thread(backend.infer_calls, rows, calls)


async def test_a_batch_of_chats(llama_server: LlamaServer) -> None:
    backend = made(llama_server, max_tokens=8, logprobs=True, system="Be brief.", temperature=0)
    await backend.load()
    rows = [Row({"text": f"say {n}"}, {}) for n in range(6)] + [Row({}, {})]
    *good, bad = await ask(backend, *rows)
    backend.close()
    assert bad.error is not None
    assert bad.error.code == "bad_input"
    for answer in good:
        assert answer.error is None
        assert isinstance(answer.output["text"], str)
        assert answer.confidence is not None
        assert 0.0 < answer.confidence <= 1.0
        prompt, said = answer.usage["prompt_tokens"], answer.usage["completion_tokens"]
        assert prompt > 0
        assert 0 < said <= 8
        assert answer.output.get("truncated", False) == (said == 8)
        assert answer.cost == pytest.approx((prompt * 1.0 + said * 2.0) / 1e6)
        assert answer.cost < (backend.card.max_cost or 0.0)


async def test_without_log_probabilities_there_is_no_confidence(llama_server: LlamaServer) -> None:
    backend = made(llama_server, max_tokens=4)
    await backend.load()
    (answer,) = await ask(backend, ROW)
    backend.close()
    assert answer.error is None
    assert answer.confidence is None


async def test_json_by_a_schema(llama_server: LlamaServer) -> None:
    schema = {
        "type": "object",
        "properties": {"mood": {"enum": ["good", "bad"]}},
        "required": ["mood"],
        "additionalProperties": False,
    }
    backend = made(llama_server, json="schema", output_schema=schema, max_tokens=64)
    await backend.load()
    (answer,) = await ask(backend, ROW)
    backend.close()
    assert answer.error is None, answer.error
    assert answer.output["mood"] in ("good", "bad")


async def test_a_prompt_that_is_too_long_for_it(llama_server: LlamaServer) -> None:
    backend = made(llama_server)
    await backend.load()
    (answer,) = await ask(backend, Row({"text": "word " * 4000}, {}))
    backend.close()
    assert answer.error is not None
    assert answer.error.code == "bad_input"
    assert "longer than the model takes" in answer.error.message
    assert answer.cost == 0.0


async def test_embeddings(llama_embedder: LlamaServer) -> None:
    backend = made(llama_embedder, mode="embeddings", dimensions=64)
    await backend.load()
    one, two = await ask(backend, ROW, Row({"texts": ["the cat sat", "a dog"]}, {}))
    (turned,) = await ask(backend, Row({"texts": ["a dog", "the cat sat"]}, {}))
    backend.close()
    assert one.error is None, one.error
    assert two.error is None, two.error
    assert [len(vector) for vector in two.output["embeddings"]] == [64, 64]
    # This server gives a text other numbers beside others than alone, so that only pairs can be compared.
    there, back = two.output["embeddings"], turned.output["embeddings"][::-1]
    assert back == [pytest.approx(vector, abs=1e-3) for vector in there]
    assert len(one.output["embedding"]) == 64
    assert one.cost == pytest.approx(one.usage["prompt_tokens"] / 1e6)


async def test_killed_while_it_answers_and_back_again(llama_server: LlamaServer) -> None:
    backend = made(llama_server, max_tokens=100_000, timeout_s=30.0, extra={"ignore_eos": True})
    await backend.load()
    waiting = asyncio.create_task(ask(backend, ROW))
    await asyncio.sleep(0.3)
    assert not waiting.done(), "it is still writing"
    llama_server.kill()
    (cut,) = await asyncio.wait_for(waiting, timeout=10)
    assert cut.error is not None
    assert "cut the call off" in cut.error.message
    assert cut.cost is None, "it may have to be paid"
    (gone,) = await ask(backend, ROW, left_s=2.0)
    assert gone.error is not None
    assert "cannot be reached" in gone.error.message
    assert gone.cost == 0.0
    await asyncio.to_thread(llama_server.start)
    again = made(llama_server, max_tokens=4)
    await again.load()
    assert (await ask(again, ROW))[0].error is None
    again.close()
    backend.close()


async def test_a_paused_server_is_silent(llama_server: LlamaServer) -> None:
    backend = made(llama_server, max_tokens=4)
    await backend.load()
    llama_server.pause()
    began = time.monotonic()
    (answer,) = await ask(backend, ROW, left_s=0.5)
    assert time.monotonic() - began < 1.5
    assert answer.error is not None
    assert "no answer within 0.5 s" in answer.error.message
    llama_server.resume()
    assert (await ask(backend, ROW))[0].error is None
    backend.close()
