"""Each role a process of its own, on three brokers: the same answers, and what happens while one is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.helpers.caller import Caller, new_id
from tests.helpers.spine import Spine
from tests.integration.spine.samples import SURE, UNSURE, decomposed, explained, images

pytestmark = pytest.mark.integration


@pytest.fixture
async def caller(pieces: Spine) -> AsyncIterator[Caller]:
    async with Caller(pieces.kafka) as caller:
        yield caller


def requests(count: int) -> list[dict[str, Any]]:
    kinds: list[dict[str, Any]] = [
        {"task": "intent", "text": SURE},
        {"task": "intent", "text": UNSURE},
        {"task": "image_class", "pixels": images()[0]},
        {"query": "financial report", **decomposed("demo-finance-2")},
        {"query": "实时路况预测", **decomposed("demo-traffic-1")},
        {"task": "intent", "text": UNSURE, "privacy": "high"},
    ]
    return [{"id": new_id(), **kinds[number % len(kinds)]} for number in range(count)]


async def all_answered_once(caller: Caller, asked: list[dict[str, Any]]) -> None:
    for request in asked:
        answer = await caller.answer(request["id"])
        assert answer.status == "ok", answer.body
    await asyncio.sleep(0.5)
    assert [request["id"] for request in asked if len(caller.all_of(request["id"])) != 1] == []


async def router_knows_all(caller: Caller) -> None:
    """Wait until the first heartbeats have come to the router: a worker is ready before that."""
    async with asyncio.timeout(30):
        for kind in requests(6):
            while (await caller.ask(kind | {"id": new_id()})).status != "ok":
                await asyncio.sleep(0.1)


async def restart(pieces: Spine, number: int, *words: str) -> None:
    """Start a role anew in the place of one that has ended, and wait until it is ready."""
    pieces.start(*words)
    pieces.roles[number] = pieces.roles.pop()
    await asyncio.to_thread(pieces.roles[number].wait_ready)


async def test_every_kind_of_request_is_answered_once(caller: Caller) -> None:
    await router_knows_all(caller)
    asked = requests(60)
    await asyncio.gather(*(caller.send(json.dumps(request).encode()) for request in asked))
    await all_answered_once(caller, asked)
    sides = {side for request in asked for side in caller.all_of(request["id"])[0].body["sides"].values()}
    assert sides == {"local", "cloud"}


async def test_repeats_are_found_without_redis(caller: Caller) -> None:
    request = {"id": new_id(), "task": "intent", "text": UNSURE}
    first = await caller.ask(request)
    for _ in range(3):
        await caller.send(json.dumps(request).encode())
    await caller.send(json.dumps(request | {"text": SURE}).encode())
    async with asyncio.timeout(20):
        while not (found := [name for name in caller.ids() if name.startswith(f"{request['id']}~")]):
            await asyncio.sleep(0.05)
    assert [answer.code for name in found for answer in caller.all_of(name)] == ["id_conflict"]
    assert caller.all_of(str(request["id"])) == [first]


async def test_an_audit_answers_what_the_router_did_not(pieces: Spine, caller: Caller) -> None:
    assert await asyncio.to_thread(pieces.roles[0].terminate) == 0, pieces.roles[0].said
    left, overdue = new_id("left"), new_id("overdue")
    await caller.send(json.dumps({"id": left, "task": "intent", "text": SURE, "deadline_ms": 300}).encode())
    await asyncio.sleep(1)
    code, report = await asyncio.to_thread(pieces.audit, "--grace", "100ms")
    assert code == 5
    assert [asked["id"] for asked in report["unanswered"]] == [left]
    code, report = await asyncio.to_thread(pieces.audit, "--grace", "100ms", "--answer")
    assert (code, report["answered_now"], report["still_unanswered"]) == (0, 1, [])
    answer = await caller.answer(left)
    assert (answer.status, answer.code) == ("error", "unanswered")

    await caller.send(
        json.dumps({"id": overdue, "task": "intent", "text": SURE, "deadline_ms": 300}).encode()
    )
    await asyncio.sleep(0.5)
    await restart(pieces, 0, "router")
    # It reads both now: the one is answered as overdue, the other was answered already.
    assert (await caller.answer(overdue)).code == "deadline_exceeded"
    asked = requests(6)
    await asyncio.gather(*(caller.send(json.dumps(request).encode()) for request in asked))
    await all_answered_once(caller, asked)
    assert caller.all_of(left) == [answer]
    assert len(caller.all_of(overdue)) == 1
    code, report = await asyncio.to_thread(pieces.audit, "--grace", "100ms")
    assert (code, report["unanswered"]) == (0, [])


async def test_the_edge_answers_while_the_cloud_is_away(pieces: Spine, caller: Caller) -> None:
    unsure = {"task": "intent", "text": UNSURE, "deadline_ms": 2000}
    assert await asyncio.to_thread(pieces.roles[3].terminate) == 0, pieces.roles[3].said
    # It said goodbye, so the router does not even ask it.
    answer = await caller.ask(unsure)
    assert (answer.status, answer.body["sides"]) == ("ok", {"intent": "local"})
    assert answer.body["decisions"][0]["forbidden"] == {"cloud": ["no_live_capability"]}
    assert (await caller.ask({"task": "only_cloud", "text": SURE})).code == "no_placement"

    await restart(pieces, 3, "worker", "--side", "cloud")
    async with asyncio.timeout(10):  # until its first heartbeat has come to the router
        while (await caller.ask(unsure)).body["sides"] != {"intent": "cloud"}:
            await asyncio.sleep(0.1)
    pieces.roles[3].kill()
    # It did not, so the router asks, and what the edge said stands in at the deadline.
    request = {"id": new_id(), **unsure}
    sent = await caller.send(json.dumps(request).encode())
    answer = await caller.answer(str(request["id"]))
    assert (answer.status, answer.body["sides"]) == ("ok", {"intent": "local"})
    assert answer.body["approximate"] is True
    assert "possibly inaccurate (可能不准确)" in answer.body["warnings"]
    assert answer.record.timestamp - sent.timestamp <= 3000
    assert "the cloud did not answer in time" in explained(answer)
    await restart(pieces, 3, "worker", "--side", "cloud")


async def test_a_broker_that_dies_for_good(pieces: Spine, caller: Caller) -> None:
    """The last of this file: the cluster has two brokers from here on."""
    await router_knows_all(caller)
    # Kafka itself takes no writes for 4 to 10 s, and longer on a busy machine.
    asked = [request | {"deadline_ms": 40_000} for request in requests(120)]
    for number, request in enumerate(asked):
        if number == 40:
            await asyncio.to_thread(pieces.cluster.kill_sync, 1)
        await caller.send(json.dumps(request).encode())
        await asyncio.sleep(0.03)
    answers = [await caller.answer(request["id"], within_s=45) for request in asked]
    assert [(n, answer.body["error"]) for n, answer in enumerate(answers) if answer.status != "ok"] == []
    assert [request["id"] for request in asked if len(caller.all_of(request["id"])) != 1] == []
