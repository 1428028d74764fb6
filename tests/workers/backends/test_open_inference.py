"""What the Open Inference backend makes of options, answers and failures, over REST and gRPC."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.cards import Card
from tests.helpers import inference_server as fake
from tests.helpers.faulty_server import FaultyServer, faulty, self_signed
from tests.helpers.inference_server import GrpcServer, Refused, answered, grpc_server
from workers.backends import Answer, Call, Row
from workers.backends.open_inference import OpenInferenceBackend, build
from workers.backends.registry import build as build_by_kind
from workers.errors import LoadError


def card(max_cost: float = 0.0) -> Card:
    return Card(
        capability="math/double",
        side="cloud",
        version="1",
        model="m",
        model_type="open_inference",
        max_cost=max_cost,
    )


async def loaded(url: str, max_cost: float = 0.0, **options: Any) -> OpenInferenceBackend:
    options = {"url": url, "model": "double", "ready_s": 1, "inputs": {"v": "x"}, **options}
    backend = build(card(max_cost), options)
    await backend.load()
    return backend


def rows(*values: float, params: dict[str, Any] | None = None) -> list[Row]:
    return [Row({"v": [value, 0.0]}, params or {}) for value in values]


async def asked(backend: OpenInferenceBackend, what: Sequence[Row], left_s: float = 5.0) -> list[Answer]:
    until = time.monotonic() + left_s
    calls = [Call(f"r/s/cloud/{number}", until) for number in range(len(what))]
    return await asyncio.to_thread(backend.infer_calls, what, calls)


def doubled(answers: Sequence[Answer]) -> list[float | None]:
    return [answer.output["y"][0] if answer.error is None else None for answer in answers]


@pytest.fixture
def server() -> Iterator[GrpcServer]:
    with grpc_server() as started:
        yield started


@pytest.fixture
def rest() -> Iterator[FaultyServer]:
    with faulty(fake.rest_answer) as started:
        yield started


async def test_rows_share_calls_up_to_max_batch_over_grpc(server: GrpcServer) -> None:
    backend = await loaded(server.url, rows_per_call=4)
    try:
        assert doubled(await asked(backend, rows(*range(10)))) == [2.0 * n for n in range(10)]
    finally:
        backend.close()
    assert sorted(request.inputs[0].shape[0] for request, _ in server.requests) == [2, 4, 4]
    ids = {request.id for request, _ in server.requests}
    assert len(ids) == 3
    assert {metadata["idempotency-key"] for _, metadata in server.requests} == ids
    assert {metadata["edgeway-capability"] for _, metadata in server.requests} == {"math/double"}


async def test_the_server_is_told_the_trace_both_ways(server: GrpcServer, rest: FaultyServer) -> None:
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    for url in (server.url, rest.url):
        backend = await loaded(url)
        try:
            calls = [Call("r/s/cloud/0", time.monotonic() + 5.0, parent)]
            assert doubled(await asyncio.to_thread(backend.infer_calls, rows(1.0), calls)) == [2.0]
        finally:
            backend.close()
    assert [metadata.get("traceparent") for _, metadata in server.requests] == [parent]
    inferred = [call.headers.get("traceparent") for call in rest.calls if call.path.endswith("/infer")]
    assert inferred == [parent]


async def test_rows_share_calls_over_rest(rest: FaultyServer) -> None:
    backend = await loaded(rest.url, rows_per_call=4)
    try:
        assert doubled(await asked(backend, rows(*range(10)))) == [2.0 * n for n in range(10)]
    finally:
        backend.close()
    calls = [call for call in rest.calls if call.path == "/v2/models/double/infer"]
    assert sorted(call.json()["inputs"][0]["shape"][0] for call in calls) == [2, 4, 4]
    assert all(call.json()["id"] == call.key for call in calls)


async def test_rows_of_other_params_are_asked_apart_and_params_travel(server: GrpcServer) -> None:
    backend = await loaded(server.url)
    params = {"flag": True, "beams": 3, "heat": 0.5, "mode": "fast"}
    try:
        mixed = [*rows(1, 2, params=params), *rows(3), *rows(4, params={"sequence_id": 7})]
        answers = await asked(backend, mixed)
    finally:
        backend.close()
    assert doubled(answers) == [2.0, 4.0, 6.0, None]
    assert answers[3].error is not None
    assert answers[3].error.code == "bad_input"
    (sent,) = (request for request, _ in server.requests if request.inputs[0].shape[0] == 2)
    assert {
        name: getattr(p, p.WhichOneof("parameter_choice")) for name, p in sent.parameters.items()
    } == params


async def test_raw_tensors_over_rest_where_the_server_says_so(rest: FaultyServer) -> None:
    fake.binary(rest)
    backend = await loaded(rest.url)
    try:
        assert doubled(await asked(backend, rows(1, 2.5))) == [2.0, 5.0]
    finally:
        backend.close()
    (call,) = (call for call in rest.calls if call.path.endswith("/infer"))
    assert call.headers["content-type"] == "application/octet-stream"


async def test_values_in_words_of_protobuf_are_read_too(server: GrpcServer) -> None:
    server.fault = lambda request: answered(request, raw=False)
    backend = await loaded(server.url)
    try:
        assert doubled(await asked(backend, rows(1, 2))) == [2.0, 4.0]
    finally:
        backend.close()


def _poisoned(request: Any) -> None:
    if 13.0 in np.frombuffer(request.raw_input_contents[0], "<f4"):
        raise Refused("INVALID_ARGUMENT", "4111-1111-secret")


async def test_a_row_that_the_server_refuses_fails_alone(server: GrpcServer) -> None:
    server.fault = _poisoned
    backend = await loaded(server.url, max_cost=1.0)
    try:
        answers = await asked(backend, rows(1, 2, 13, 4, 5))
    finally:
        backend.close()
    assert doubled(answers) == [2.0, 4.0, None, 8.0, 10.0]
    error = answers[2].error
    assert error is not None
    assert error.code == "bad_input"
    assert "secret" not in error.message
    assert answers[2].cost == 0.0


async def test_a_model_that_fails_is_asked_once_where_it_costs(server: GrpcServer) -> None:
    def fails(_: Any) -> None:
        raise Refused("INTERNAL", "boom")

    server.fault = fails
    backend = await loaded(server.url, max_cost=1.0)
    try:
        answers = await asked(backend, rows(1, 2, 3, 4))
    finally:
        backend.close()
    assert len(server.requests) == 1
    for answer in answers:
        assert answer.error is not None
        assert answer.error.code == "backend_error"
        assert answer.cost is None, "it counts as its upper bound"


@pytest.mark.parametrize(
    ("code", "details", "max_cost", "attempts"),
    [
        ("RESOURCE_EXHAUSTED", "quota", 1.0, 3),
        ("UNAVAILABLE", "queue is full", 0.0, 3),
        ("UNAVAILABLE", "queue is full", 1.0, 1),
        ("NOT_FOUND", "no such model", 0.0, 1),
        ("UNAUTHENTICATED", "", 0.0, 1),
    ],
)
async def test_what_is_tried_again(
    server: GrpcServer, code: str, details: str, max_cost: float, attempts: int
) -> None:
    def refuses(_: Any) -> None:
        raise Refused(code, details)

    server.fault = refuses
    backend = await loaded(server.url, max_cost)
    try:
        (answer,) = await asked(backend, rows(1))
    finally:
        backend.close()
    assert answer.error is not None
    assert code in answer.error.message
    assert len(server.requests) == attempts
    assert len({request.id for request, _ in server.requests}) == 1, "the same call keeps its id"


async def test_told_to_come_back_it_comes_back(server: GrpcServer) -> None:
    def busy(_: Any) -> None:
        if len(server.requests) == 1:
            raise Refused("UNAVAILABLE", "busy", pushback_ms=400)

    server.fault = busy
    backend = await loaded(server.url, max_cost=1.0)
    try:
        began = time.monotonic()
        assert doubled(await asked(backend, rows(1))) == [2.0]
        assert time.monotonic() - began >= 0.4
    finally:
        backend.close()


async def test_the_deadline_ends_a_call_and_the_server_sees_it(server: GrpcServer) -> None:
    server.fault = lambda _: server.released.wait(20) and None
    backend = await loaded(server.url)
    try:
        began = time.monotonic()
        answers = await asked(backend, rows(1, 2), left_s=0.3)
        assert time.monotonic() - began < 1.5
    finally:
        backend.close()
    assert all(answer.error is not None and "no answer" in answer.error.message for answer in answers)


async def test_a_server_that_was_away_is_asked_again_soon(server: GrpcServer) -> None:
    backend = await loaded(server.url)
    try:
        assert doubled(await asked(backend, rows(1))) == [2.0]
        server.stop()
        (gone,) = await asked(backend, rows(1), left_s=1.0)
        assert gone.error is not None
        assert "cannot be reached" in gone.error.message or "cut" in gone.error.message
        server.start()
        assert doubled(await asked(backend, rows(2), left_s=6.0)) == [4.0]
    finally:
        backend.close()


def _misshapen(request: Any) -> Any:
    answer = answered(request)
    answer.outputs[0].shape[0] = 1
    answer.raw_output_contents[0] = answer.raw_output_contents[0][:8]
    return answer


def _nameless(request: Any) -> Any:
    answer = answered(request)
    del answer.outputs[:]
    del answer.raw_output_contents[:]
    return answer


def _short(request: Any) -> Any:
    answer = answered(request)
    answer.raw_output_contents[0] = b"abc"
    return answer


@pytest.mark.parametrize("broken", [_misshapen, _nameless, _short])
async def test_answers_that_do_not_fit_are_bad_output(server: GrpcServer, broken: Any) -> None:
    server.fault = broken
    backend = await loaded(server.url, max_cost=1.0)
    try:
        answers = await asked(backend, rows(1, 2))
    finally:
        backend.close()
    assert [answer.error and answer.error.code for answer in answers] == ["bad_output"] * 2


async def test_a_row_that_the_model_answers_with_nan_fails_alone(server: GrpcServer) -> None:
    def fault(request: Any) -> Any:
        answer = answered(request)
        values = np.frombuffer(answer.raw_output_contents[0], "<f4").copy()
        values[2] = np.nan
        answer.raw_output_contents[0] = values.tobytes()
        return answer

    server.fault = fault
    backend = await loaded(server.url)
    try:
        answers = await asked(backend, rows(1, 2, 3))
    finally:
        backend.close()
    assert [answer.error and answer.error.code for answer in answers] == [None, "bad_output", None]


async def test_messages_are_bounded_both_ways(server: GrpcServer) -> None:
    backend = await loaded(server.url, max_request_bytes=300)
    try:
        answers = await asked(backend, rows(*range(100)))
        assert doubled(answers) == [2.0 * n for n in range(100)], "a call that is too large is halved"
    finally:
        backend.close()
    backend = await loaded(server.url, max_answer_bytes=200, inputs={"v": {"name": "x"}})
    server.fault = lambda _: fake.messages.ModelInferResponse(id="x" * 1000)
    try:
        (answer,) = await asked(backend, rows(1))
    finally:
        backend.close()
    assert answer.error is not None
    assert answer.error.code == "bad_output"


async def test_tls_is_verified_over_grpc(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with grpc_server(certificate) as server:
        backend = await loaded(server.url, ca_file=str(certificate[0]))
        try:
            assert doubled(await asked(backend, rows(1))) == [2.0]
        finally:
            backend.close()
        with pytest.raises(LoadError, match="certificate that is not trusted"):
            await loaded(server.url)
        with pytest.raises(LoadError, match="ca_file cannot be read"):
            await loaded(server.url, ca_file=str(tmp_path / "none.pem"))


async def test_keys_come_from_the_environment_alone(
    server: GrpcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LoadError, match="MODEL_KEY"):
        await loaded(server.url, key_env="MODEL_KEY")
    monkeypatch.setenv("MODEL_KEY", "secret-1")
    backend = await loaded(server.url, key_env="MODEL_KEY")
    try:
        await asked(backend, rows(1))
        monkeypatch.setenv("MODEL_KEY", "secret-2")
        await asked(backend, rows(1))
    finally:
        backend.close()
    sent = [metadata["authorization"] for _, metadata in server.requests]
    assert sent == ["Bearer secret-1", "Bearer secret-2"]


async def test_a_server_that_gets_ready_late_is_waited_for(server: GrpcServer) -> None:
    server.stop()
    timer = threading.Timer(0.7, server.start)
    timer.start()
    try:
        backend = await loaded(server.url, ready_s=10)
        backend.close()
    finally:
        timer.join()


async def test_classes_have_names_and_a_confidence(rest: FaultyServer) -> None:
    backend = await loaded(rest.url, labels=["no", "yes"], softmax=True, output="y")
    try:
        (answer,) = await asked(backend, [Row({"v": [0.0, 1.0]}, {})])
    finally:
        backend.close()
    assert answer.output["label"] == "yes"
    assert answer.confidence == pytest.approx(1 / (1 + np.exp(-2.0)))


async def test_a_post_of_one_s_own_that_fails_is_told(rest: FaultyServer) -> None:
    def post(outputs: Any, asked: Sequence[Row]) -> list[Answer]:
        raise AttributeError("4111-1111-secret")

    backend = OpenInferenceBackend(card(), url=rest.url, model="double", post=post)
    await backend.load()
    try:
        answers = await asked(backend, [Row({"x": [1.0, 2.0]}, {})] * 2)
    finally:
        backend.close()
    for answer in answers:
        assert answer.error is not None
        assert answer.error.code == "bad_output"
        assert "secret" not in answer.error.message


async def test_outputs_can_be_renamed_and_one_be_the_confidence(rest: FaultyServer) -> None:
    named = await loaded(rest.url, outputs={"y": "twice"})
    sure = await loaded(rest.url, confidence="y")
    try:
        assert (await asked(named, rows(1)))[0].output == {"twice": [2.0, 0.0]}
        (answer,) = await asked(sure, rows(0.25))
        assert answer.error is not None, "two values are no confidence"
        assert answer.error.code == "bad_output"
    finally:
        named.close()
        sure.close()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model": "m"}, "url and model"),
        ({"url": "ftp://h", "model": "m"}, "http or https"),
        ({"url": "grpc://host", "model": "m"}, "grpc://HOST:PORT"),
        ({"url": "grpc://host:1/path", "model": "m"}, "grpc://HOST:PORT"),
        ({"url": "grpc://user:secret@host:1", "model": "m"}, "grpc://HOST:PORT"),
        ({"url": "http://h?key=secret", "model": "m"}, "query"),
        ({"url": "http://user:secret@h", "model": "m"}, "key"),
        ({"url": "http://h", "model": "m", "modle": 1}, "modle"),
        ({"url": "http://h", "model": "m", "labels": ["a"], "outputs": ["y"]}, "does not go with"),
        ({"url": "http://h", "model": "m", "rows_per_call": 0}, "rows_per_call"),
        ({"url": "http://h", "model": "m", "binary": "yes"}, "binary"),
        ({"url": "http://h", "model": "m", "key_env": "A", "key_file": "B"}, "not both"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(LoadError, match=told) as caught:
        build_by_kind(card(), options)
    assert "secret" not in str(caught.value)
