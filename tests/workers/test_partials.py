"""No answer, of whatever make, keeps the others from being written, and none takes long to refuse."""

from __future__ import annotations

import time
from typing import Any

import pytest

from schemas import codec
from schemas.messages import Failure, Partial
from tests.helpers.lanes import FakeLane, record, subtask
from tests.workers.test_worker import Gated, card, handle, until, working
from workers.backends import Answer, Row
from workers.backends.function import FunctionBackend


def cycle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def cyclic_map() -> dict[str, Any]:
    found: dict[str, Any] = {"a": 1}
    found["self"] = [found, found]
    return found


def bomb() -> list[Any]:
    found: list[Any] = ["x"]
    for _ in range(30):
        found = [found] * 10
    return found


def deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


WIDE = [0] * 200_000
TEXT = "x" * 2**20
ODD: dict[str, Any] = {
    "a list that holds itself": cycle(),
    "a map that holds itself": cyclic_map(),
    "a million values in itself": [cycle()] * 100_000,
    "a shared list, thirty levels": bomb(),
    "a wide list held often": [WIDE] * 100_000,
    "one text held often": [TEXT] * 1_000_000,
    "one text held often in maps": [{"a": TEXT}] * 100_000,
    "too deep": deep(2_000),
    "an object": object(),
    "a number that is too large": 2**70,
}


THREE = [record(subtask(n, inputs={"bad": 1} if n == 1 else {}), n) for n in range(3)]


@pytest.mark.parametrize("output", ODD.values(), ids=ODD)
@pytest.mark.parametrize("form", ["function", "backend"])
async def test_an_output_that_cannot_be_published_costs_its_row_alone(output: Any, form: str) -> None:
    class Backend(Gated):
        def infer(self, rows: Any) -> list[Answer]:
            return [Answer(output if "bad" in row.inputs else "fine") for row in rows]

    def function(inputs: Any, params: Any) -> Any:
        return output if "bad" in inputs else "fine"

    lane, began = FakeLane(), time.monotonic()
    async with working(Backend() if form == "backend" else FunctionBackend(card(), function)) as worker:
        await handle(
            worker, lane, [record(subtask(n, inputs={"bad": 1} if n == 1 else {}), n) for n in range(3)]
        )
        await until(lambda: len(lane.settled) == 3)
        assert worker.stuck_since is None
    partials = lane.partials()
    assert (partials[0].output, partials[2].output) == ("fine", "fine")
    assert partials[1].error is not None
    assert partials[1].error.code in ("bad_output", "too_large")
    assert time.monotonic() - began < 5.0


@pytest.mark.parametrize(
    "answer",
    [
        Answer(1, confidence="high"),  # type: ignore[arg-type]
        Answer(1, confidence=float("nan")),
        Answer(1, confidence=True),
        Answer(1, cost=True),
        Answer(1, cost=float("nan")),
        Answer(1, cost="dear"),  # type: ignore[arg-type]
        Answer(1, cost=-1.0),
        Answer(1, usage=None),  # type: ignore[arg-type]
        Answer(1, usage={"tokens": "many"}),  # type: ignore[dict-item]
        Answer(1, usage={3: 4.0}),  # type: ignore[dict-item]
        Answer(error=Failure(code="no such code", message="x")),  # type: ignore[arg-type]
        Answer(error=Failure(code="bad_input", message=5)),  # type: ignore[arg-type]
        Answer(error=5),  # type: ignore[arg-type]
        "no answer at all",
    ],
)
async def test_a_backend_that_answers_nonsense_is_told_so_and_goes_on(answer: Any) -> None:
    class Backend(Gated):
        def infer(self, rows: Any) -> list[Answer]:
            return [answer for _ in rows]

    lane = FakeLane()
    async with working(Backend(card(cost_per_call=0.5))) as worker:
        await handle(worker, lane, [record(subtask(n, inputs={}), n) for n in range(2)])
        await until(lambda: len(lane.settled) == 2)
    for output in lane.outputs:
        partial = codec.decode(output.value, Partial)
        assert partial.error is not None
        assert partial.error.code == "bad_output"


async def test_a_kin_that_raises_costs_its_row_alone() -> None:
    class Backend(Gated):
        def kin(self, row: Row) -> Any:
            if "bad" in row.inputs:
                raise LookupError("4111")
            return 0

    backend, lane = Backend(), FakeLane()
    backend.gate.set()
    async with working(backend) as worker:
        await handle(
            worker, lane, [record(subtask(n, inputs={"bad": 1} if n == 1 else {}), n) for n in range(3)]
        )
        await until(lambda: len(lane.settled) == 3)
    codes = {offset: p.error.code if p.error else None for offset, p in lane.partials().items()}
    assert codes == {0: None, 1: "backend_error", 2: None}


async def test_what_a_function_raises_is_in_the_log_and_its_words_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def boom(inputs: Any, params: Any) -> Any:
        raise RuntimeError(f"handler boom {inputs}")

    lane = FakeLane()
    async with working(FunctionBackend(card(capability="t/logged"), boom)) as worker:
        await handle(worker, lane, [record(subtask(0, capability="t/logged", inputs={"pan": "4111"}), 0)])
        await until(lambda: bool(lane.settled))
    assert "t/logged failed on 1 rows: RuntimeError at" in caplog.text
    assert "in boom" in caplog.text
    assert "4111" not in caplog.text


@pytest.mark.parametrize("batch", [False, True])
async def test_an_async_function_that_exits_does_not_take_its_loop_along(batch: bool) -> None:
    async def leave(inputs: Any, params: Any = None) -> Any:
        raise SystemExit(3)

    lane = FakeLane()
    async with working(FunctionBackend(card(), leave, batch=batch)) as worker:
        for offset in range(2):
            await handle(worker, lane, [record(subtask(offset, inputs={}), offset)])
            await until(lambda at=offset: at in lane.settled)  # type: ignore[misc]
    assert [p.error.code for p in lane.partials().values() if p.error] == ["backend_error"] * 2
