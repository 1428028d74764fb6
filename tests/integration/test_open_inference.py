"""A real MLServer answers as a backend, the same over REST and gRPC; and a task's cloud step, end to end."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.caller import Caller
from tests.helpers.docker import ROOT
from tests.helpers.kafka import Kafka
from tests.helpers.roles import Role, command
from tests.helpers.servers import MLServer
from tests.workers.backends.contract import SECRET
from workers.backends import Answer, Call, Row
from workers.backends.open_inference import OpenInferenceBackend
from workers.errors import LoadError

pytestmark = pytest.mark.integration

WAYS = ("rest", "grpc")
WEIGHTS = np.random.default_rng(784).standard_normal((784, 10)).astype(np.float32) / 28
"""Those of tests/servers/runtimes.py."""
IMAGES = np.random.default_rng(1).random((20, 784), np.float32)
FAILING = {"pixels": {"name": "input", "datatype": "FP32", "shape": [1, -1]}}


async def loaded(server: MLServer, way: str, model: str, **options: Any) -> OpenInferenceBackend:
    options = {"url": getattr(server, way), "model": model, "ready_s": 1, "max_cost": 0, **options}
    backend = OpenInferenceBackend("cloud/test/model", **options)
    await backend.load()
    return backend


async def asked(backend: OpenInferenceBackend, rows: Sequence[Row], left_s: float = 10.0) -> list[Answer]:
    until = time.monotonic() + left_s
    calls = [Call(f"r/s/cloud/{number}", until) for number in range(len(rows))]
    return await asyncio.to_thread(backend.infer_calls, rows, calls)


def images(numbers: Sequence[int]) -> list[Row]:
    """By turns as raw bytes, flat and nested."""
    forms = [lambda i: i.tobytes(), lambda i: i.tolist(), lambda i: [i.tolist()]]
    return [Row({"pixels": forms[n % 3](IMAGES[n])}, {}) for n in numbers]


async def test_both_ways_give_the_model_s_own_answers(mlserver: MLServer) -> None:
    wanted = IMAGES @ WEIGHTS
    for way in WAYS:
        backend = await loaded(mlserver, way, "dense", inputs={"pixels": "input"}, rows_per_call=8)
        try:
            answers = await asked(backend, images(range(20)))
            assert backend.provider == "mlserver 1.7.1"
        finally:
            backend.close()
        assert [answer.error for answer in answers] == [None] * 20
        np.testing.assert_allclose(
            [answer.output["logits"] for answer in answers], wanted, rtol=1e-4, atol=1e-5
        )


async def test_values_of_every_type_come_back_the_same_both_ways(mlserver: MLServer) -> None:
    given: dict[str, tuple[str, Any]] = {
        "flag": ("BOOL", [True, False]),
        "byte": ("UINT8", [0, 255]),
        "small": ("INT16", [-5, 7]),
        "large": ("INT64", [2**62, -(2**62)]),
        "huge": ("UINT64", [2**64 - 1, 0]),
        "half": ("FP16", [0.5, -2.0]),
        "float": ("FP32", [0.25, 2.0**100]),
        "double": ("FP64", [0.1, -1e300]),
    }
    inputs = {name: {"datatype": datatype, "shape": [-1]} for name, (datatype, _) in given.items()}
    row = Row({name: values for name, (_, values) in given.items()}, {})
    for way in WAYS:
        backend = await loaded(mlserver, way, "echo", inputs=inputs)
        try:
            answers = await asked(backend, [row, row])
        finally:
            backend.close()
        for answer in answers:
            assert answer.error is None, answer.error
            assert answer.output == row.inputs


@pytest.mark.parametrize("way", WAYS)
async def test_rows_over_which_the_model_fails_fail_alone(mlserver: MLServer, way: str) -> None:
    """The server has no shape to refuse them by, and the model raises over one."""
    backend = await loaded(mlserver, way, "loose", inputs=FAILING)
    try:
        rows = [*images([0, 1]), Row({"pixels": [1.0, 2.0]}, {}), *images([2])]
        answers = await asked(backend, rows)
    finally:
        backend.close()
    assert [answer.error and answer.error.code for answer in answers] == [None, None, "backend_error", None]


@pytest.mark.parametrize("way", WAYS)
async def test_a_row_of_another_shape_is_told_before_it_is_sent(mlserver: MLServer, way: str) -> None:
    backend = await loaded(mlserver, way, "dense", inputs={"pixels": "input"})
    try:
        (good, bad) = await asked(backend, [*images([0]), Row({"pixels": [1.0, 2.0, 3.0]}, {})])
    finally:
        backend.close()
    assert good.error is None
    assert bad.error is not None
    assert bad.error.message == "test/model: inputs.pixels has 3 values; give 784"


@pytest.mark.parametrize("way", WAYS)
async def test_what_the_server_does_not_have_is_told_at_load(mlserver: MLServer, way: str) -> None:
    for model, options, told in (
        ("nobody", {}, "no.* model"),
        ("dense", {"model_version": "v9"}, "'dense' version 'v9'"),
        ("dense", {"inputs": {"a": "image"}}, r"no input 'image'; its inputs are input FP32\[-1, 1, 784\]"),
        ("dense", {"outputs": ["probs"]}, r"no output 'probs'; its outputs are logits FP32\[-1, 10\]"),
        ("echo", {}, "does not tell the model's inputs"),
    ):
        with pytest.raises(LoadError, match=told):
            await loaded(mlserver, way, model, ready_s=0.0, **options)


@pytest.mark.parametrize("way", WAYS)
async def test_the_deadline_ends_a_slow_call(mlserver: MLServer, way: str) -> None:
    backend = await loaded(mlserver, way, "slow", rows_per_call=1)
    try:
        began = time.monotonic()
        slow, quick = await asked(backend, [Row({"wait_ms": 5000}, {}), Row({"wait_ms": 1}, {})], left_s=0.7)
        assert time.monotonic() - began < 2.0
    finally:
        backend.close()
    assert quick.output == {"waited_ms": [1.0]}
    assert slow.error is not None
    assert "no answer" in slow.error.message


async def test_a_server_that_was_killed_is_used_again_once_it_is_back(mlserver: MLServer) -> None:
    backends = [await loaded(mlserver, way, "upper", scalars=True) for way in WAYS]
    row = [Row({"text": SECRET}, {})]
    try:
        for backend in backends:
            assert (await asked(backend, row))[0].error is None
        mlserver.kill()
        try:
            for backend in backends:
                (answer,) = await asked(backend, row, left_s=1.0)
                assert answer.error is not None
                assert "cannot be reached" in answer.error.message
                assert SECRET not in answer.error.message
                assert answer.cost == 0.0
        finally:
            mlserver.start()  # it is that of the other tests too
        for backend in backends:
            (answer,) = await asked(backend, row)
            assert answer.error is None, answer.error
            assert answer.output["upper"] == SECRET.upper()
    finally:
        for backend in backends:
            backend.close()


@pytest.fixture
def running(embedded_kafka: Kafka, mlserver: MLServer, tmp_path: Path) -> Iterator[None]:
    """The example of docs/backends.md as it stands there, but for the server's port."""
    page = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "grpc://" in code)
    app = tmp_path / "app.py"
    app.write_text(example.replace("grpc://127.0.0.1:8001", mlserver.grpc), encoding="utf-8")
    step = {"name": "digit", "capability": "vision/digit", "side": "cloud"}
    said = {"tasks": {"read_digit": {"steps": [step]}}, "apps": [str(app)], "cache_s": 0}
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(said), encoding="utf-8")
    kafka = ("--kafka", embedded_kafka.bootstrap, "--rules", str(rules))
    done = command("topics", "apply", *kafka, "--partitions", "1", "--fix")
    assert done.returncode == 0, done.stdout + done.stderr
    role = Role(tmp_path, "up", "--partitions", "1", *kafka, "--log-format", "text").start()
    try:
        role.wait_ready()
        yield
    finally:
        role.kill()


@pytest.mark.usefixtures("running")
async def test_a_cloud_step_is_answered_by_an_inference_server(embedded_kafka: Kafka) -> None:
    names = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    wanted = [names[best] for best in (IMAGES @ WEIGHTS).argmax(axis=1)]
    async with Caller(embedded_kafka.bootstrap) as caller:
        asking = [caller.ask({"task": "read_digit", "pixels": image.tolist()}) for image in IMAGES]
        answers = await asyncio.gather(*asking)
        assert [answer.body["output"]["label"] for answer in answers] == wanted
        assert all(answer.body["sides"] == {"digit": "cloud"} for answer in answers)
        assert 0.1 <= answers[0].body["confidence"] <= 1.0
        refused = await caller.ask({"task": "read_digit", "pixels": [1.0, 2.0]})
        assert refused.status == "error"
        assert "give 784" in refused.message
