"""Large payloads in the aggregator: what it sends to the cloud later, and results that no record takes."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from schemas.claims import as_value, claim_of
from schemas.codec import decode
from schemas.messages import Claim, Examination, Partial, Result, Subtask, Verdict
from streams.aggregator import Limits
from streams.claims import FsspecStore, Objects, StoreAway, open_objects
from streams.claims.values import object_of, value_of
from tests.helpers.aggregation import CLOUD, LOCAL, T0, Host, World, partial, plan, step

SECRET = "write to jane.roe@corp.example"
BIG = "x" * 700_000


def stores() -> Objects:
    name = uuid.uuid4().hex
    return open_objects(f"memory://edge-{name}", f"memory://cloud-{name}")


async def kept(objects: Objects, value: Any, side: Any = "local") -> Claim:
    store = objects.at(side)
    assert store is not None
    data, content_type = object_of(value)
    return await store.put(data, content_type=content_type, tenant=None)


def host_of(objects: Objects) -> tuple[World, Host]:
    world = World()
    return world, Host(world, Limits(), objects=objects)


def cloud_subtasks(world: World) -> list[Subtask]:
    return [decode(each.value, Subtask) for each in world.others if each.topic.startswith("cloud.")]


async def escalated(objects: Objects, value: Any, **fields: Any) -> tuple[World, Host]:
    """A weak answer at the edge to a request with a claim of `value` among its inputs."""
    world, host = host_of(objects)
    claim = await kept(objects, value)
    its = plan("r", step("s", LOCAL, CLOUD), inputs={"x": as_value(claim), "n": 1}, **fields)
    world.append(its)
    world.append(partial(its, confidence=0.1))
    await host.settled()
    return world, host


async def test_an_escalation_carries_a_claim_of_a_copy_in_the_cloud() -> None:
    objects = stores()
    world, _ = await escalated(objects, b"\x00\x01" * 999)
    (sent,) = cloud_subtasks(world)
    claim = claim_of(sent.inputs["x"])
    assert claim is not None
    assert objects.is_cloud(claim.dataref)
    assert await objects.get(claim, tenant=None) == b"\x00\x01" * 999
    assert sent.inputs["n"] == 1


async def test_what_is_found_in_an_object_keeps_it_at_the_edge() -> None:
    objects = stores()
    world, host = await escalated(objects, SECRET, examination=Examination(detectors=("formats",)))
    await host.pass_time(20_000)
    assert cloud_subtasks(world) == []
    store: Any = objects.cloud
    assert not [path for path in store._fs.store if path.startswith(store._root)]
    (result,) = world.answers("r")
    assert result.output == "s/local/0", "the weak answer is taken"


async def test_a_masked_object_leaves_with_placeholders() -> None:
    objects = stores()
    verdict = Verdict(level="high", reasons=("email",), masked=True)
    world, _ = await escalated(
        objects,
        SECRET,
        privacy=verdict,
        mask={"[EMAIL_1]": "jane.roe@corp.example"},
        examination=Examination(detectors=("formats",), mask=("email",)),
    )
    (sent,) = cloud_subtasks(world)
    claim = claim_of(sent.inputs["x"])
    assert claim is not None
    assert await objects.get(claim, tenant=None) == b"write to [EMAIL_1]"


class Hanging(FsspecStore):
    async def get(self, *_: Any, **__: Any) -> bytes:
        raise StoreAway("it is away")


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda objects: objects._replace(cloud=None),
        lambda objects: Objects(cloud=objects.cloud),
        lambda objects: objects._replace(local=Hanging(objects.local.base)),
    ],
)
async def test_what_cannot_be_read_or_copied_is_an_attempt_that_failed(spoiled: Any) -> None:
    objects = stores()
    claim = await kept(objects, "hello")
    world, host = host_of(spoiled(objects))
    its = plan("r", step("s", LOCAL, CLOUD), inputs={"x": as_value(claim)})
    world.append(its)
    world.append(partial(its, confidence=0.1))
    await host.settled()
    assert cloud_subtasks(world) == []
    (result,) = world.answers("r")
    assert result.output == "s/local/0"


async def test_a_later_step_gets_the_claim_of_an_earlier_ones_output() -> None:
    objects = stores()
    world, host = host_of(objects)
    claim = await kept(objects, "hello")
    its = plan(
        "r", step("a", LOCAL), step("b", LOCAL, after=("a",), inputs={"x": "steps.a", "n": "inputs.text"})
    )
    world.append(its)
    world.append(partial(its, "a", output=None, claim=claim))
    await host.settled()
    (sent,) = world.subtasks()
    assert sent.inputs == {"x": as_value(claim), "n": "hello"}


async def test_a_part_of_a_claimed_output_is_refused_with_the_mend() -> None:
    world, host = host_of(stores())
    its = plan("r", step("a", LOCAL), step("b", LOCAL, after=("a",), inputs={"x": "steps.a.size"}))
    world.append(its)
    world.append(partial(its, "a", output=None, claim=Claim(dataref="m://x", sha256="0" * 64, size=1)))
    await host.settled()
    (result,) = world.answers("r")
    assert result.error is not None
    assert "take all of it: `steps.a`" in result.error.message


async def test_the_claim_of_a_single_step_is_the_results() -> None:
    world, host = host_of(stores())
    claim = Claim(dataref="memory://x/y", sha256="0" * 64, size=1, content_type="image/png")
    its = plan("r", step("s", LOCAL))
    world.append(its)
    world.append(partial(its, output=None, claim=claim))
    await host.settled()
    (result,) = world.answers("r")
    assert (result.status, result.output, result.claim) == ("ok", None, claim)


def large(name: str = "r", **fields: Any) -> tuple[Any, list[Partial]]:
    its = plan(name, step("a", LOCAL), step("b", LOCAL), **fields)
    return its, [partial(its, each, output={"text": BIG}) for each in "ab"]


@pytest.mark.parametrize(("fmt", "kind"), [("msgpack", "application/msgpack"), ("json", "application/json")])
async def test_a_result_too_large_for_a_record_is_given_by_claim(fmt: Any, kind: str) -> None:
    objects = stores()
    world, host = host_of(objects)
    its, partials = large(reply_format=fmt)
    for each in (its, *partials):
        world.append(each)
    await host.settled()
    (result,) = world.answers("r")
    assert result.status == "ok"
    assert result.output is None
    assert result.claim is not None
    assert result.claim.content_type == kind
    data = await objects.get(result.claim, tenant=None)
    assert value_of(data, kind) == {"a": {"text": BIG}, "b": {"text": BIG}}
    assert world.committed == 3


async def test_the_object_is_there_before_the_record_and_the_offsets_are_open_until_then() -> None:
    gate = asyncio.Event()

    class Slow(FsspecStore):
        async def put(self, *args: Any, **named: Any) -> Claim:
            await gate.wait()
            return await super().put(*args, **named)

    objects = Objects(Slow(f"memory://slow-{uuid.uuid4().hex}"))
    world, host = host_of(objects)
    its, partials = large()
    for each in (its, *partials, plan("q", step("s", LOCAL)), partial("q")):
        world.append(each)
    read = asyncio.create_task(host.read())
    await asyncio.sleep(0.05)
    host.lane.acknowledge()
    assert [result.id for result in world.answers()] == ["q"], "others are answered meanwhile"
    assert world.committed == 0
    gate.set()
    await read
    await host.settled()
    assert {result.id for result in world.answers()} == {"q", "r"}
    assert world.committed == 5


async def test_a_crash_before_the_record_gives_the_answer_again() -> None:
    objects = stores()
    world, host = host_of(objects)
    its, partials = large()
    for each in (its, *partials):
        world.append(each)
    await host.read()
    await host.crash()
    await host.settled()
    (result,) = world.answers("r")
    assert result.claim is not None


class Refusing(FsspecStore):
    async def put(self, *_: Any, **__: Any) -> Claim:
        raise StoreAway("it is away")


class Sleeping(FsspecStore):
    async def put(self, *_: Any, **__: Any) -> Claim:
        await asyncio.sleep(30)
        raise StoreAway("it is away")


@pytest.mark.parametrize(
    "objects", [Objects(), Objects(Refusing("memory://x")), Objects(Sleeping("memory://y"))]
)
async def test_without_a_store_the_error_says_so_in_time(objects: Objects) -> None:
    world, host = host_of(objects)
    its, partials = large(deadline=T0 + 100)
    for each in (its, *partials):
        world.append(each)
    world.clock.time += 50
    began = asyncio.get_running_loop().time()
    await host.settled()
    assert asyncio.get_running_loop().time() - began < 2
    (result,) = world.answers("r")
    assert isinstance(result, Result)
    assert result.error is not None
    assert result.error.code == "result_too_large"
    assert result.output is None
    assert world.committed == 3
