"""The worker agent on a lane without Kafka."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from schemas import codec
from schemas.cards import Card
from schemas.messages import Claim, Failure, Partial
from tests.helpers.lanes import FakeClock, FakeLane, FakeRecord, record, subtask
from tests.helpers.shared_data import crayfish
from workers.backends import Answer, Row, kin_of
from workers.backends.function import FunctionBackend
from workers.backends.onnx import OnnxBackend
from workers.backends.tensors import ClassPost
from workers.errors import LoadError, WorkerError
from workers.inference import CANCELLED
from workers.service import Limits
from workers.worker import Worker

DIGITS = "vision/digits"


def card(**fields: Any) -> Card:
    return Card(
        **{"capability": DIGITS, "side": "local", "version": "7", "model": "m", "max_batch": 8, **fields}
    )


class Gated:
    """Notes its batches; each run waits for `gate`."""

    def __init__(self, its: Card | None = None) -> None:
        self.card = its or card()
        self.gate = threading.Event()
        self.batches: list[list[Row]] = []
        self.entered = threading.Event()
        self.closed = False

    async def load(self) -> None: ...

    def kin(self, row: Row) -> Any:
        return kin_of(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        self.batches.append(list(rows))
        self.entered.set()
        self.gate.wait(20)
        return [Answer(row.inputs.get("n")) for row in rows]

    def close(self) -> None:
        self.closed = True


def numbered(count: int, start: int = 0, **fields: Any) -> list[FakeRecord]:
    return [record(subtask(n, inputs={"n": n}, **fields), n) for n in range(start, start + count)]


@asynccontextmanager
async def working(*backends: Any, clock: FakeClock | None = None, **limits: Any) -> AsyncIterator[Worker]:
    worker = Worker(backends, name="w1", clock=clock or FakeClock(), limits=Limits(**limits))
    await worker.start()
    try:
        yield worker
    finally:
        for backend in backends:
            getattr(backend, "gate", threading.Event()).set()
        await worker.stop(5)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)


async def handle(worker: Worker, lane: FakeLane, records: list[FakeRecord]) -> None:
    from streams.delivery import Batch

    await worker.handle(Batch(lane, records))  # type: ignore[arg-type]


def echo(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
    if "bad" in inputs:
        raise ValueError("bad is not allowed")
    return inputs.get("output", inputs), inputs.get("confidence")


async def test_the_real_model_answers_every_row_and_the_bad_ones_alone() -> None:
    backend = OnnxBackend(card(), crayfish(), sources={"input": "pixels"}, post=ClassPost(softmax=True))
    images = np.random.default_rng(1).random((20, 784), dtype=np.float32)
    inputs: list[dict[str, Any]] = [{"pixels": image.tobytes()} for image in images]
    inputs[3], inputs[7], inputs[9] = {"pixels": b""}, {}, {"pixels": [float("nan")] * 784}
    lane = FakeLane()
    async with working(backend) as worker:
        await handle(worker, lane, [record(subtask(n, inputs=each), n) for n, each in enumerate(inputs)])
        await until(lambda: len(lane.settled) == 20)
    partials = lane.partials()
    assert sorted(partials) == list(range(20))
    for offset, partial in partials.items():
        assert partial.subtask == f"r{offset}/step/local/0"
        assert (partial.error.code if partial.error else None) == (
            "bad_input" if offset in (3, 7, 9) else None
        )
        if partial.error is None:
            assert partial.confidence == pytest.approx(max(partial.output["scores"]))


async def test_a_partial_says_who_answered_how_long_and_at_what_cost() -> None:
    clock, lane = FakeClock(1_000_250), FakeLane()
    backend = FunctionBackend(card(cost_per_call=0.25), echo)
    work = subtask(
        5, inputs={"output": "x", "confidence": 0.5}, traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    )
    async with working(backend, clock=clock) as worker:
        await handle(worker, lane, [record(work)])
        await until(lambda: bool(lane.settled))
    (output,) = lane.outputs
    partial = codec.decode(output.value, Partial)
    assert (output.topic, output.key, output.partition) == ("joins", b"r5", None)
    assert dict(output.headers)["traceparent"] == work.traceparent.encode()  # type: ignore[union-attr]
    assert dict(output.headers)["ce_id"] == work.id.encode()
    assert (partial.output, partial.confidence, partial.cost, partial.deadline) == (
        "x",
        0.5,
        0.25,
        work.deadline,
    )
    assert partial.model is not None
    assert (partial.model.name, partial.model.version) == ("m", "7")
    assert partial.timings.queue_ms == 250.0
    assert partial.timings.service_ms >= 0.0


async def test_an_id_with_slashes_and_tenant_keys_the_join() -> None:
    lane = FakeLane()
    work = subtask(inputs={}, id="\x1ft/x\x1fa/b/step/local/3")
    async with working(FunctionBackend(card(), echo)) as worker:
        await handle(worker, lane, [record(work)])
        await until(lambda: bool(lane.settled))
    assert lane.outputs[0].key == b"\x1ft/x\x1fa/b"


async def test_what_reaches_no_model_is_answered_at_once() -> None:
    lane, backend = FakeLane(), Gated()
    records = [
        record(subtask(0, deadline=1_000_000), 0),
        record(subtask(1, capability="nlp/other"), 1),
        record(subtask(2, claim=Claim(dataref="s3://b/k", sha256="0" * 64, size=1)), 2),
        FakeRecord(b"\xc1 broken", 3, key=b"r3/step/local/0"),
        FakeRecord(None, 4),
        record(subtask(5, id="no subtask id"), 5),
    ]
    async with working(backend) as worker:
        await handle(worker, lane, records)
    codes = {offset: partial.error.code for offset, partial in lane.partials().items() if partial.error}
    assert codes == {0: "deadline_exceeded", 1: "unknown_capability", 2: "object_missing"}
    assert DIGITS in lane.partials()[1].error.message  # type: ignore[union-attr]
    assert [(offset, failure.code) for offset, failure in lane.failed] == [
        (n, "malformed") for n in (3, 4, 5)
    ]
    assert backend.batches == []


async def test_work_that_expires_while_it_waits_is_not_computed() -> None:
    clock, lane, backend = FakeClock(), FakeLane(), Gated(card(max_batch=1))
    async with working(backend, clock=clock) as worker:
        await handle(worker, lane, numbered(1))
        await until(backend.entered.is_set)
        await handle(worker, lane, [*numbered(1, 1, deadline=1_000_500), *numbered(1, 2)])
        clock.ms = 1_000_500
        backend.gate.set()
        await until(lambda: len(lane.settled) == 3)
    codes = {o: p.error.code if p.error else None for o, p in lane.partials().items()}
    assert codes == {0: None, 1: "deadline_exceeded", 2: None}
    assert [[row.inputs["n"] for row in batch] for batch in backend.batches] == [[0], [2]]


async def test_what_expires_behind_a_run_that_does_not_end_is_answered_when_it_expires() -> None:
    clock, lane, backend = FakeClock(), FakeLane(), Gated(card(max_batch=1))
    async with working(backend, clock=clock, max_rows=4) as worker:
        await handle(worker, lane, numbered(1))
        await until(backend.entered.is_set)
        await handle(worker, lane, [*numbered(1, 1), *numbered(3, 2, deadline=1_000_100)])
        full = asyncio.create_task(handle(worker, lane, numbered(1, 5)))
        clock.ms = 1_000_050
        await asyncio.sleep(0.3)
        assert lane.settled == []
        assert not full.done()
        clock.ms = 1_000_100
        await until(lambda: len(lane.settled) == 3)
        await asyncio.wait_for(full, 5)
        assert {o: p.error and p.error.code for o, p in lane.partials().items()} == dict.fromkeys(
            (2, 3, 4), "deadline_exceeded"
        )
        await handle(worker, lane, numbered(1, 6, deadline=1_000_060))
        assert len(lane.settled) == 4
        backend.gate.set()
        await until(lambda: len(lane.settled) == 7)
    assert [[row.inputs["n"] for row in batch] for batch in backend.batches] == [[0], [1], [5]]


async def test_batches_form_behind_the_run_and_never_mix_params_or_names() -> None:
    lane, backend = FakeLane(), Gated()
    async with working(backend) as worker:
        await handle(worker, lane, numbered(1))
        await until(backend.entered.is_set)
        records = [
            record(subtask(n, inputs={"n": n}, params={"k": n % 2} if n % 3 else {}), n) for n in range(1, 40)
        ]
        records.append(record(subtask(40, inputs={"n": 40, "more": 1}), 40))
        await handle(worker, lane, records)
        backend.gate.set()
        await until(lambda: len(lane.settled) == 41)
    assert all(len({kin_of(row) for row in batch}) == 1 for batch in backend.batches)
    assert max(len(batch) for batch in backend.batches) == 8
    assert {o: p.output for o, p in lane.partials().items()} == {n: n for n in range(41)}


async def test_a_subtasks_own_max_batch_is_respected() -> None:
    lane, backend = FakeLane(), Gated()
    async with working(backend) as worker:
        await handle(worker, lane, numbered(1))
        await until(backend.entered.is_set)
        await handle(worker, lane, numbered(6, 1, max_batch=2))
        backend.gate.set()
        await until(lambda: len(lane.settled) == 7)
    assert [len(batch) for batch in backend.batches] == [1, 2, 2, 2]


async def test_slow_calls_of_a_plain_function_are_answered_one_by_one() -> None:
    def slow(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        time.sleep(0.04)
        return inputs["n"]

    lane = FakeLane()
    async with working(FunctionBackend(card(max_batch=32), slow)) as worker:
        began = time.monotonic()
        await handle(worker, lane, numbered(12))
        await until(lambda: len(lane.settled) >= 1)
        assert time.monotonic() - began < 0.3, "the first answer waited for the last"
        await until(lambda: len(lane.settled) == 12)
        (offer,) = worker.offers()
    assert offer.live.p50_ms is not None
    assert 40 <= offer.live.p50_ms < 80, "a call takes what a call takes, however many wait"


async def test_quick_calls_of_a_plain_function_share_a_run() -> None:
    runs: list[int] = []

    class Counted(FunctionBackend):
        def infer(self, rows: Sequence[Row]) -> list[Answer]:
            runs.append(len(rows))
            return super().infer(rows)

    lane = FakeLane()
    async with working(Counted(card(max_batch=32), echo)) as worker:
        await handle(worker, lane, numbered(400))
        await until(lambda: len(lane.settled) == 400)
    assert sum(runs) == 400
    assert len(runs) < 100


async def test_a_run_settles_each_lane_once() -> None:
    one, two, backend = FakeLane(partition=0), FakeLane(partition=1), Gated()
    async with working(backend) as worker:
        await handle(worker, one, numbered(1))
        await until(backend.entered.is_set)
        await handle(worker, one, numbered(3, 1))
        await handle(worker, two, numbered(4, 10))
        backend.gate.set()
        await until(lambda: len(one.settled) + len(two.settled) == 8)
    assert (one.calls, two.calls) == ([[0], [1, 2, 3]], [[10, 11, 12, 13]])


async def test_a_revoked_lane_is_silent_and_its_queue_is_dropped() -> None:
    old, new, backend = FakeLane(epoch=1), FakeLane(epoch=2), Gated(card(max_batch=1))
    async with working(backend) as worker:
        await handle(worker, old, numbered(3))
        await until(backend.entered.is_set)
        old.alive = False
        worker.revoked(old)  # type: ignore[arg-type]
        assert worker.pending == 1, "only what runs is left"
        await handle(worker, new, numbered(1, 9))
        backend.gate.set()
        await until(lambda: new.settled == [9])
    assert (old.settled, old.outputs) == ([], [])
    assert [batch[0].inputs["n"] for batch in backend.batches] == [0, 9]


@pytest.mark.parametrize("bound", [{"max_rows": 4}, {"max_bytes": 400}])
async def test_handle_waits_while_the_queue_is_full(bound: dict[str, int]) -> None:
    lane, backend = FakeLane(), Gated(card(max_batch=2))
    async with working(backend, **bound) as worker:
        handling = asyncio.create_task(handle(worker, lane, numbered(30)))
        await until(backend.entered.is_set)
        await asyncio.sleep(0.05)
        assert not handling.done()
        assert worker.pending <= 4 + 2
        backend.gate.set()
        await asyncio.wait_for(handling, 10)
        await until(lambda: len(lane.settled) == 30)
    assert sorted(lane.settled) == list(range(30))


@pytest.mark.parametrize("how", ["revoked", "dead", "stopped"])
async def test_a_waiting_handle_ends_with_its_lane_or_the_worker(how: str) -> None:
    lane, backend = FakeLane(), Gated(card(max_batch=1))
    async with working(backend, max_rows=1) as worker:
        handling = asyncio.create_task(handle(worker, lane, numbered(9)))
        await until(backend.entered.is_set)
        lane.alive = how == "stopped"
        if how == "revoked":
            worker.revoked(lane)  # type: ignore[arg-type]
        if how == "stopped":
            await worker.stop(0.05)
        await asyncio.wait_for(handling, 3)
    assert lane.settled == []


async def test_stop_drains_what_it_can() -> None:
    lane, backend = FakeLane(), Gated(card(max_batch=2))
    async with working(backend) as worker:
        await handle(worker, lane, numbered(9))
        await until(backend.entered.is_set)
        stopping = asyncio.create_task(worker.stop(5))
        await asyncio.sleep(0.02)
        await handle(worker, lane, numbered(1, 20))
        backend.gate.set()
        await asyncio.wait_for(stopping, 10)
    assert sorted(lane.settled) == list(range(9)), "all that was in, nothing that came after"
    assert backend.closed


async def test_stop_gives_up_on_a_hung_model_and_never_settles_its_work() -> None:
    lane, backend = FakeLane(), Gated(card(max_batch=2))
    worker = Worker([backend], name="w1", clock=FakeClock())
    await worker.start()
    await handle(worker, lane, numbered(5))
    await until(backend.entered.is_set)
    began = time.monotonic()
    await worker.stop(0.1)
    assert time.monotonic() - began < 2.0
    assert not backend.closed, "a backend in use is left alone"
    backend.gate.set()
    await asyncio.sleep(0.1)
    assert (lane.settled, lane.outputs, len(backend.batches)) == ([], [], 1)


async def test_a_hung_model_shows_in_stuck_since() -> None:
    lane, backend = FakeLane(), Gated()
    async with working(backend) as worker:
        assert worker.stuck_since is None
        before = time.monotonic()
        await handle(worker, lane, numbered(1))
        await until(backend.entered.is_set)
        assert worker.stuck_since is not None
        assert before <= worker.stuck_since <= time.monotonic()
        backend.gate.set()
        await until(lambda: lane.settled == [0])
        assert worker.stuck_since is None


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ({1, 2}, "bad_output"),
        ("\ud800", "bad_output"),
        (np.float32(1), "bad_output"),
        (b"x" * 2**20, "too_large"),
    ],
)
async def test_an_output_that_no_record_can_carry_is_an_error(output: Any, code: str) -> None:
    lane = FakeLane()
    async with working(FunctionBackend(card(cost_per_call=0.5), lambda inputs, params: output)) as worker:
        await handle(worker, lane, numbered(1))
        await until(lambda: bool(lane.settled))
    partial = lane.partials()[0]
    assert partial.error is not None
    assert (partial.error.code, partial.output, partial.cost) == (code, None, 0.5)


async def test_offers_tell_live_figures_whatever_the_model_does() -> None:
    lane, backend = FakeLane(), Gated(card(max_batch=2))
    async with working(backend) as worker:
        await handle(worker, lane, numbered(5))
        await until(backend.entered.is_set)
        (offer,) = worker.offers()
        assert (offer.live.queue, offer.live.in_flight, offer.live.served) == (3, 2, 0)
        backend.gate.set()
        await until(lambda: len(lane.settled) == 5)
        (offer,) = worker.offers()
        assert (offer.live.queue, offer.live.in_flight, offer.live.served) == (0, 0, 5)
        assert offer.live.p90_ms is not None
        assert offer.live.error_ratio == 0.0


async def test_a_callers_bad_input_does_not_speak_against_the_backend() -> None:
    def fail(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        if "bad" in inputs:
            raise ValueError("bad is not allowed")
        raise RuntimeError("gone")

    lane = FakeLane()
    async with working(FunctionBackend(card(max_batch=1), fail)) as worker:
        records = [record(subtask(n, inputs={"bad": 1} if n < 3 else {}), n) for n in range(4)]
        await handle(worker, lane, records)
        await until(lambda: len(lane.settled) == 4)
        assert worker.offers()[0].live.error_ratio == 0.25


async def test_several_capabilities_and_threads() -> None:
    one, two = Gated(card(max_batch=1)), Gated(card(capability="nlp/x", max_batch=1))
    lane, other = FakeLane(), FakeLane(topic="local.nlp.x")
    async with working(one, two, threads=3) as worker:
        assert sorted(worker.topics) == ["local.nlp.x", "local.vision.digits"]
        await handle(worker, lane, numbered(4))
        await handle(worker, other, numbered(1, capability="nlp/x"))
        await until(lambda: len(one.batches) == 3 and len(two.batches) == 1)
        one.gate.set()
        two.gate.set()
        await until(lambda: len(lane.settled) == 4 and other.settled == [0])


def test_refusals_find_the_id_by_key_or_bytes() -> None:
    worker = Worker([Gated()], name="w1", clock=FakeClock())
    failure = Failure(code="malformed", message="no")
    good = record(subtask(3))
    for found in (
        FakeRecord(b"\xc1", key=b"r3/step/local/0"),
        FakeRecord(good.value, key=None),
        FakeRecord(good.value, key=b"\xff\xfe"),
        FakeRecord(b"\xc1", key=b"other", headers=[("ce_id", b"r3/step/local/0")]),
    ):
        (output,) = worker.refuse(found, failure)
        partial = codec.decode(output.value, Partial)  # type: ignore[union-attr]
        assert (partial.subtask, partial.error, output.key) == ("r3/step/local/0", failure, b"r3")  # type: ignore[union-attr]
        assert partial.deadline > found.timestamp
    for nameless in (FakeRecord(None), FakeRecord(b"\xc1", key=b"plain"), FakeRecord(b"x" * 2**21, key=b"")):
        assert worker.refuse(nameless, failure) == ()


async def test_a_backend_that_cannot_load_stops_the_start() -> None:
    class Broken(Gated):
        async def load(self) -> None:
            raise OSError("no such file")

    fine = Gated(card(capability="nlp/x"))
    worker = Worker([fine, Broken()], name="w1", clock=FakeClock())
    with pytest.raises(LoadError, match=r"vision/digits.*no such file"):
        await worker.start()
    assert fine.closed
    assert not worker.ready


def test_a_worker_offers_something_and_nothing_twice() -> None:
    with pytest.raises(WorkerError, match="at least one"):
        Worker([], name="w", clock=FakeClock())
    with pytest.raises(WorkerError, match="twice"):
        Worker([Gated(), Gated()], name="w", clock=FakeClock())


async def test_watch_raises_what_killed_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_named: object) -> None:
        raise RuntimeError("a bug of the engine itself")

    monkeypatch.setattr("workers.engine.infer", fail)
    lane = FakeLane()
    async with working(Gated()) as worker:
        watching = asyncio.create_task(worker.watch())
        await handle(worker, lane, numbered(1))
        with pytest.raises(WorkerError, match="broke"):
            await asyncio.wait_for(watching, 5)
    assert lane.settled == []


async def test_what_was_cancelled_is_not_begun() -> None:
    cancelled = {"r1"}
    backend, lane = Gated(card(max_batch=1)), FakeLane()
    worker = Worker([backend], name="w1", clock=FakeClock(), limits=Limits(), cancelled=cancelled)
    await worker.start()
    try:
        await handle(worker, lane, numbered(5))
        await until(backend.entered.is_set)
        assert lane.partials()[1].error == CANCELLED, "answered when it was read"
        # Row 0 runs and is not stopped; 2 and 3 wait behind it.
        cancelled |= {"r0", "r3"}
        backend.gate.set()
        await until(lambda: len(lane.settled) == 5)
    finally:
        backend.gate.set()
        await worker.stop(5)
    assert [rows[0].inputs["n"] for rows in backend.batches] == [0, 2, 4]
    found = lane.partials()
    assert found[3].error == CANCELLED
    assert (found[3].cost, found[0].output, found[2].output, found[4].output) == (0.0, 0, 2, 4)
