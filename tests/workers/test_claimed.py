"""Workers and payloads that lie in an object store."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from schemas.claims import INLINE_BYTES, as_value
from schemas.messages import Claim, Partial
from streams.claims import FsspecStore, Objects, StoreAway, open_objects
from streams.claims.values import object_of, value_of
from tests.helpers.lanes import FakeClock, FakeLane, record, subtask
from tests.workers.test_worker import card, handle, until
from workers.backends.function import FunctionBackend
from workers.service import Limits
from workers.worker import Worker

BIG = bytes(range(256)) * 4096 * 3


def seen(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
    """What arrived, by type and size; or an output of `size` bytes."""
    if "size" in inputs:
        return b"o" * inputs["size"]
    return {
        name: [type(value).__name__, value if not isinstance(value, bytes) else len(value)]
        for name, value in inputs.items()
    }


def stores() -> Objects:
    name = uuid.uuid4().hex
    return open_objects(f"memory://edge-{name}", f"memory://cloud-{name}")


async def kept(objects: Objects, value: Any, side: Any = "local", tenant: str | None = None) -> Claim:
    store = objects.at(side)
    assert store is not None
    data, content_type = object_of(value)
    return await store.put(data, content_type=content_type, tenant=tenant)


@asynccontextmanager
async def working(
    objects: Objects, side: Any = "local", function: Any = seen, **limits: Any
) -> AsyncIterator[Worker]:
    backend = FunctionBackend(card(side=side), function)
    worker = Worker([backend], name="w", clock=FakeClock(), limits=Limits(**limits), objects=objects)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.stop(5)


async def answered(objects: Objects, side: Any = "local", function: Any = seen, **fields: Any) -> Partial:
    lane = FakeLane(topic=f"{side}.vision.digits")
    async with working(objects, side, function) as worker:
        await handle(worker, lane, [record(subtask(1, **fields), 1)])
        await until(lambda: bool(lane.settled))
    assert lane.failed == []
    return lane.partials()[1]


async def test_claims_are_values_before_the_model_sees_them() -> None:
    objects = stores()
    image = as_value(await kept(objects, BIG))
    text = as_value(await kept(objects, "hello"))
    rows = as_value(await kept(objects, {"a": [1, 2]}))
    partial = await answered(objects, inputs={"image": image, "deep": {"in": [text, rows]}, "n": 1})
    assert partial.output == {
        "image": ["bytes", len(BIG)],
        "deep": ["dict", {"in": ["hello", {"a": [1, 2]}]}],
        "n": ["int", 1],
    }


async def test_the_claim_of_all_inputs_lies_under_what_the_record_has() -> None:
    objects = stores()
    claim = await kept(objects, {"a": 1, "b": 2})
    partial = await answered(objects, claim=claim, inputs={"b": 3})
    assert partial.output == {"a": ["int", 1], "b": ["int", 3]}


@pytest.mark.parametrize(
    "changed",
    [
        {"sha256": "0" * 64},
        {"dataref": "memory://elsewhere/_/20260101/x"},
        {"size": 65 * 2**20},
        {"content_type": "application/json"},
    ],
)
async def test_what_cannot_be_read_is_answered_and_not_run(changed: dict[str, Any]) -> None:
    objects = stores()
    claim = msgspec.structs.replace(await kept(objects, b"\xff\xff"), **changed)
    partial = await answered(objects, inputs={"image": as_value(claim)})
    assert partial.error is not None
    assert partial.error.code == "object_missing"
    assert "vision/digits" in partial.error.message


async def test_without_a_store_the_answer_says_so() -> None:
    claim = await kept(stores(), BIG)
    for fields in ({"inputs": {"x": as_value(claim)}}, {"claim": claim}):
        partial = await answered(Objects(), **fields)
        assert partial.error is not None
        assert partial.error.code == "object_missing"
        assert "--objects" in partial.error.message


async def test_a_worker_of_the_cloud_reads_the_store_of_the_cloud_alone() -> None:
    objects = stores()
    edge, cloud = await kept(objects, "edge"), await kept(objects, "cloud", "cloud")
    assert (await answered(objects, "cloud", inputs={"x": as_value(cloud)})).output == {"x": ["str", "cloud"]}
    partial = await answered(objects, "cloud", inputs={"x": as_value(edge)})
    assert partial.error is not None
    assert partial.error.code == "object_missing"


async def test_of_another_tenant_nothing_is_read() -> None:
    objects = stores()
    claim = await kept(objects, "mine", tenant="acme")
    partial = await answered(objects, tenant="evil", inputs={"x": as_value(claim)})
    assert partial.error is not None
    assert (await answered(objects, tenant="acme", inputs={"x": as_value(claim)})).error is None


@pytest.mark.parametrize("side", ["local", "cloud"])
@pytest.mark.parametrize("size", [INLINE_BYTES + 1, 3 * 2**20])
async def test_a_large_output_is_answered_by_claim_in_the_store_of_its_side(side: Any, size: int) -> None:
    objects = stores()
    partial = await answered(objects, side, inputs={"size": size}, tenant="acme")
    assert partial.output is None
    assert partial.claim is not None
    assert partial.error is None
    assert partial.model is not None
    assert objects.is_cloud(partial.claim.dataref) == (side == "cloud")
    data = await objects.get(partial.claim, tenant="acme")
    assert value_of(data, partial.claim.content_type) == b"o" * size


async def test_a_small_output_stays_in_its_record() -> None:
    partial = await answered(stores(), inputs={"size": 1000})
    assert (partial.output, partial.claim) == (b"o" * 1000, None)


@pytest.mark.parametrize(("size", "code"), [(INLINE_BYTES + 1, None), (3 * 2**20, "too_large")])
@pytest.mark.parametrize("how", ["no store", "away"])
async def test_without_a_store_what_fits_a_record_goes_there(size: int, code: str | None, how: str) -> None:
    class Away(FsspecStore):
        async def put(self, *_: Any, **__: Any) -> Claim:
            raise StoreAway("it is away")

    objects = Objects() if how == "no store" else Objects(Away("memory://away"))
    partial = await answered(objects, inputs={"size": size})
    assert (partial.error.code if partial.error else None) == code
    if code is None:
        assert partial.output == b"o" * size
    elif partial.error is not None:
        assert ("it is away" if how == "away" else "--objects") in partial.error.message


async def test_an_output_that_nobody_could_read_is_no_object() -> None:
    objects = stores()
    partial = await answered(
        objects, function=lambda inputs, params: {"x": b"o" * 300_000, "y": {1: object()}}, inputs={}
    )
    assert partial.error is not None
    assert partial.error.code == "bad_output"


async def test_a_store_that_hangs_holds_up_no_other_subtask_and_no_stop() -> None:
    class Hanging(FsspecStore):
        async def get(self, *_: Any, **__: Any) -> bytes:
            await asyncio.sleep(60)
            return b""

    objects = Objects(Hanging("memory://hangs"))
    claim = Claim(dataref="memory://hangs/_/20260101/x", sha256="0" * 64, size=9)
    lane = FakeLane()
    async with working(objects) as worker:
        records = [
            record(subtask(n, inputs={"x": as_value(claim)} if n % 2 else {"n": n}), n) for n in range(6)
        ]
        async with asyncio.timeout(5):
            await handle(worker, lane, records)
            await until(lambda: sorted(lane.settled) == [0, 2, 4])
            await worker.stop(0.1)


async def test_a_revoked_lane_gets_no_answer() -> None:
    objects = stores()
    claim = as_value(await kept(objects, BIG))
    lane = FakeLane()
    async with working(objects) as worker:
        worker.assigned(lane)  # type: ignore[arg-type]
        await handle(worker, lane, [record(subtask(n, inputs={"x": claim}), n) for n in range(3)])
        lane.alive = False
        worker.revoked(lane)  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        assert worker.pending == 0
    assert lane.settled == []


async def test_no_more_bytes_are_fetched_at_once_than_the_queue_may_hold() -> None:
    objects = stores()
    held: list[int] = []
    claim = as_value(await kept(objects, b"x" * 1000))
    lane = FakeLane()
    async with working(objects, max_bytes=2500) as worker:
        room = worker._claimed._room
        take = room.take

        async def noted(size: int, *more: Any) -> bool:
            found = await take(size, *more)
            held.append(room.taken)
            return found

        room.take = noted  # type: ignore[method-assign]
        await handle(worker, lane, [record(subtask(n, inputs={"x": claim}), n) for n in range(20)])
        await until(lambda: len(lane.settled) == 20)
    assert max(held) <= 2500
    assert all(partial.error is None for partial in lane.partials().values())
