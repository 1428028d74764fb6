"""Models of a repository that are asked elsewhere: away at the start, checked later, priced by the rules."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from edgeway.models_watch import RETRY_S, ServedModel
from schemas.rules import parse_rules
from tests.edgeway.test_models_watch import Steady
from tests.helpers import inference_server as fake
from tests.helpers.faulty_server import Asked, Fault, FaultyServer, faulty
from tests.helpers.redis import free_port
from workers.backends import Answer, Call, RemoteBackend, Row
from workers.errors import Away, LoadError
from workers.models.adding import Asking, add
from workers.models.check import Asked as Rows
from workers.models.check import Check, encode_check
from workers.models.chosen import Source
from workers.models.ready import started, tried
from workers.worker import Worker

STATED = {"ece": 0.1, "threshold": 0.9, "coverage": 0.5, "accuracy": 1.0, "samples": 10}
FLAT = {"method": "isotonic", "maps": [{"method": "isotonic", "x": [0.0], "y": [0.25]}], **STATED}
RULES = (
    b'{"say": {"capability": "nlp/say"}, "prices": {"cloud/nlp/say": {"per_1k_tokens": 1, "max_cost": 9}}}'
)


def said(asked: Asked) -> Any:
    text = asked.json()["messages"][-1]["content"]
    tokens = [{"token": "x", "logprob": math.log(0.5)}]
    choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": {"content": tokens}}
    return {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}


@pytest.fixture
def chat() -> Iterator[FaultyServer]:
    with faulty(said) as server:
        yield server


@pytest.fixture
def double() -> Iterator[FaultyServer]:
    with faulty(fake.rest_answer) as server:
        yield server


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(str(tmp_path / "repo"), tmp_path / "cache")


def added(source: Source, place: Path, rows: Any = None, **card: Any) -> None:
    place.mkdir()
    (place / "card.json").write_text(json.dumps({"name": "m", "side": "cloud", **card}))
    add(source.repository, place, {}, Asking(rows))
    source.repository.activate("m", "1")


def a_chat(server: FaultyServer, **more: Any) -> dict[str, Any]:
    options = {"url": f"{server.url}/v1", "attempts": 1, "input_per_1m_tokens": 1.0, **more}
    return {"capability": "nlp/say", "model_type": "openai", "options": options}


def a_double(url: str) -> dict[str, Any]:
    options = {"url": url, "model": "double", "ready_s": 0}
    return {"capability": "math/double", "model_type": "open_inference", "options": options}


@asynccontextmanager
async def serving(source: Source, clock: Steady) -> AsyncIterator[tuple[ServedModel, Worker, Any]]:
    (pending,) = source.offered()
    worker = Worker([pending], name="w", clock=clock)
    await worker.start()
    model = ServedModel(source, pending, worker, clock)
    await model.start()
    try:
        yield model, worker, pending
    finally:
        await worker.stop(1.0)


def asked(worker: Worker, inputs: dict[str, Any]) -> Answer:
    (card,) = worker.cards
    service = worker.service(card.side, card.capability)
    assert service is not None
    backend = service.backend
    assert isinstance(backend, RemoteBackend)
    (answer,) = backend.infer_calls([Row(inputs, {})], [Call("r/s/cloud/1", time.monotonic() + 5)])
    return answer


async def test_a_server_that_is_away_does_not_keep_the_worker_from_starting(
    source: Source, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    added(source, tmp_path / "m", **a_double(f"http://127.0.0.1:{free_port()}"))
    async with serving(source, Steady()) as (model, worker, _):
        assert model.version == "1"
        (offer,) = worker.offers()
        assert "cannot be reached" in offer.live.waits_for
        error = asked(worker, {"x": [1, 2]}).error
        assert error is not None
        assert error.code == "backend_error"
    assert "m 1 is served unchecked" in caplog.text


async def test_its_check_is_made_once_it_is_there(
    source: Source, tmp_path: Path, chat: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    clock = Steady()
    added(source, tmp_path / "m", [Rows({"text": "hello"})], **a_chat(chat))
    chat.stop()
    async with serving(source, clock) as (model, worker, _):
        assert "served unchecked, as what it asks is away" in caplog.text
        chat.start()
        assert asked(worker, {"text": "a"}).output == {"text": "a"}
        calls = len(chat.calls)
        await model.look()
        assert len(chat.calls) == calls, "not before its time"
        clock.time += RETRY_S
        await model.look()
        assert "m 1 is there now, and checked" in caplog.text
        calls = len(chat.calls)
        clock.time += 100 * RETRY_S
        await model.look()
        assert len(chat.calls) == calls, "one check is enough"


async def test_one_that_then_answers_otherwise_is_told(
    source: Source, tmp_path: Path, chat: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Steady()
    added(source, tmp_path / "m", [Rows({"text": "hello"})], **a_chat(chat))
    chat.fault = lambda _: Fault(status=503)
    async with serving(source, clock) as (model, worker, _):
        chat.fault = lambda _: None
        chat.answer = lambda asked: said(asked) | {"choices": [{"message": {"content": "other"}}]}
        for _ in range(3):
            clock.time += 100 * RETRY_S
            await model.look()
        assert caplog.text.count("does not answer as when it was added") == 1
        assert asked(worker, {"text": "a"}).error is None


async def test_a_version_whose_server_is_away_takes_no_others_place(
    source: Source, tmp_path: Path, double: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Steady()
    added(source, tmp_path / "m", **a_double(double.url))
    with faulty(fake.rest_answer) as second:
        url = second.url
        added_too = tmp_path / "m2"
        added_too.mkdir()
        card = {"name": "m", "side": "cloud", **a_double(url)}
        (added_too / "card.json").write_text(json.dumps(card))
        add(source.repository, added_too, {})
    async with serving(source, clock) as (model, worker, _):
        source.repository.activate("m", "2")
        await model.look()
        assert model.version == "1"
        assert "m 2 is refused, 1 stays" in caplog.text
        assert asked(worker, {"x": [1, 2]}).output == {"y": [2.0, 4.0]}
        second.start()
        try:
            await model.look()
            assert model.version == "1"
            clock.time += RETRY_S
            await model.look()
            assert model.version == "2"
        finally:
            second.stop()


async def test_confidences_of_a_model_elsewhere_are_mapped_and_the_rules_price_it(
    source: Source, tmp_path: Path, chat: FaultyServer
) -> None:
    added(source, tmp_path / "m", calibration=FLAT, **a_chat(chat, logprobs=True))
    async with serving(source, Steady()) as (_, worker, pending):
        (card,) = worker.cards
        assert card.calibrated
        assert card.calibration is not None
        answer = asked(worker, {"text": "a"})
        assert (answer.confidence, answer.cost) == (0.25, pytest.approx(10e-6))
        pending.prepare(parse_rules(RULES))()
        assert asked(worker, {"text": "a"}).cost is None, "what the rules say is counted elsewhere"
        pending.prepare(parse_rules(b"{}"))()
        assert asked(worker, {"text": "a"}).cost == pytest.approx(10e-6)


async def test_rules_that_came_before_the_model_count_too(
    source: Source, tmp_path: Path, chat: FaultyServer
) -> None:
    added(source, tmp_path / "m", **a_chat(chat))
    (pending,) = source.offered()
    adopt: Callable[[], None] = pending.prepare(parse_rules(RULES))
    adopt()
    ready = source.first(pending)
    pending.replaced(ready.backend)
    try:
        assert isinstance(ready.backend, RemoteBackend)
        (answer,) = ready.backend.infer([Row({"text": "a"}, {})])
        assert answer.cost is None
    finally:
        ready.backend.close()


def test_its_owner_needs_neither_its_key_nor_its_server(source: Source, tmp_path: Path) -> None:
    for name, card in {
        "keyed": {
            "capability": "nlp/say",
            "model_type": "openai",
            "options": {"url": "http://127.0.0.1:1/v1", "key_env": "A_KEY_THAT_IS_NOT_SET"},
        },
        "away": a_double(f"http://127.0.0.1:{free_port()}"),
    }.items():
        place = tmp_path / name
        place.mkdir()
        (place / "card.json").write_text(json.dumps({"name": name, "side": "cloud", **card}))
        add(source.repository, place, {})
        tried(source.cache.pull(source.repository, name, "1"))
        with pytest.raises(LoadError, match=r"A_KEY_THAT|cannot be reached"):
            add(source.repository, place, {}, Asking([Rows({"text": "a", "x": [1, 2]})]))
        wrong = {"options": {**card["options"], "odd": 1}}
        with pytest.raises(LoadError, match="odd"):
            add(source.repository, place, wrong)


def test_an_owner_who_gave_a_check_is_told_that_the_server_is_away(
    source: Source, tmp_path: Path, chat: FaultyServer
) -> None:
    added(source, tmp_path / "m", [Rows({"text": "hello"})], **a_chat(chat))
    folder = source.cache.pull(source.repository, "m", "1")
    tried(folder)
    chat.stop()
    with pytest.raises(Away, match="cannot be reached"):
        tried(folder)


def test_a_wait_that_its_options_ask_for_is_no_hanging_model(source: Source, tmp_path: Path) -> None:
    card = a_double(f"http://127.0.0.1:{free_port()}")
    card["options"]["ready_s"] = 0.6
    added(source, tmp_path / "m", **card)
    folder = source.cache.pull(source.repository, "m", "1")
    (folder / "check.json").write_bytes(encode_check(Check(deadline_s=0.1)))
    backend, away = started(folder)
    backend.close()
    assert away is not None
