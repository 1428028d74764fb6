"""Ids: one answer each, whoever repeats them and whatever they are made of."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.helpers.caller import Caller, new_id
from tests.integration.spine.samples import SURE, UNSURE

pytestmark = pytest.mark.integration

SETTLE_S = 0.7


async def send(caller: Caller, request: dict[str, Any], **how: Any) -> None:
    await caller.send(json.dumps(request).encode(), **how)


async def conflicts(caller: Caller, request_id: str) -> list[Any]:
    """The answers under ids derived from `request_id`."""
    names = [name for name in caller.ids() if name.startswith(f"{request_id[:32]}~")]
    return [answer for name in names for answer in caller.all_of(name)]


async def test_the_same_request_again_is_not_answered_again(caller: Caller) -> None:
    request = {"id": new_id(), "task": "intent", "text": UNSURE}
    first = await caller.ask(request, partition=0)
    for partition in range(3):
        await send(caller, request, partition=partition)
        await caller.ask({"task": "intent", "text": SURE}, partition=partition)  # the one behind it is done
    await asyncio.sleep(SETTLE_S)
    assert caller.all_of(str(request["id"])) == [first]


async def test_the_same_request_five_times_at_once_is_answered_once(caller: Caller) -> None:
    request = {"id": new_id(), "task": "intent", "text": UNSURE}
    await asyncio.gather(*(send(caller, request, partition=number % 3) for number in range(5)))
    await caller.answer(str(request["id"]))
    await asyncio.sleep(SETTLE_S)
    assert len(caller.all_of(str(request["id"]))) == 1
    assert await conflicts(caller, str(request["id"])) == []


async def test_another_request_under_a_used_id(caller: Caller) -> None:
    request_id = new_id()
    first = await caller.ask({"id": request_id, "task": "intent", "text": SURE})
    await send(caller, {"id": request_id, "task": "intent", "text": UNSURE})
    async with asyncio.timeout(10):
        while not (found := await conflicts(caller, request_id)):
            await asyncio.sleep(0.05)
    assert [(answer.status, answer.code) for answer in found] == [("error", "id_conflict")]
    assert "choose a new" in found[0].message
    assert found[0].body["id"] != request_id
    assert caller.all_of(request_id) == [first]


async def test_another_request_under_the_id_of_an_open_one(caller: Caller) -> None:
    request_id = new_id()
    await send(caller, {"id": request_id, "task": "half", "text": SURE, "deadline_ms": 2500})
    await asyncio.sleep(0.3)
    await send(caller, {"id": request_id, "task": "intent", "text": UNSURE})
    async with asyncio.timeout(2):
        while not (found := await conflicts(caller, request_id)):
            await asyncio.sleep(0.05)
    assert [answer.code for answer in found] == ["id_conflict"]
    assert caller.all_of(request_id) == [], "the first is still open"
    answer = await caller.answer(request_id)
    assert (answer.status, answer.body["task"]) == ("partial", "half")


async def test_tenants_do_not_share_ids(caller: Caller) -> None:
    request_id = new_id()
    for tenant, text in ((None, SURE), ("red", UNSURE), ("blue", SURE)):
        asked = {"id": request_id, "task": "intent", "text": text}
        await send(caller, asked if tenant is None else asked | {"tenant": tenant})
    async with asyncio.timeout(20):
        while len(caller.all_of(request_id)) < 3:
            await asyncio.sleep(0.05)
    await asyncio.sleep(SETTLE_S)
    found = caller.all_of(request_id)
    assert sorted(str(answer.body.get("tenant")) for answer in found) == ["None", "blue", "red"]
    assert {answer.status for answer in found} == {"ok"}
    assert len({answer.record.key for answer in found}) == 3
    assert await conflicts(caller, request_id) == []


@pytest.mark.parametrize(
    "request_id",
    ["a/b/c/local/0", "/", "x/intent/cloud/1", "请求 №7 \u200b🙂", " spaced ", "~", "\x1fred\x1fx", "0"],
)
async def test_odd_ids(caller: Caller, request_id: str) -> None:
    request_id += new_id("")
    answer = await caller.ask({"id": request_id, "task": "intent", "text": UNSURE})
    assert (answer.status, answer.body["id"]) == ("ok", request_id)
    if not any(letter < " " for letter in request_id):  # such an id keeps its request at the edge
        assert answer.body["sides"] == {"intent": "cloud"}


@pytest.mark.parametrize("letter", ["x", "é"], ids=["ascii", "two bytes a letter"])
async def test_ids_of_128_bytes(caller: Caller, letter: str) -> None:
    tail = new_id("")
    request_id = tail + letter * ((128 - len(tail)) // len(letter.encode()))
    request_id += "x" * (128 - len(request_id.encode()))
    assert (await caller.ask({"id": request_id, "task": "intent", "text": UNSURE})).status == "ok"


async def test_an_id_of_129_bytes_is_refused_under_the_id_of_its_header(caller: Caller) -> None:
    name = new_id()
    request = {"id": name + "x" * (129 - len(name)), "task": "intent", "text": SURE}
    await send(caller, request, partition=0, headers=[("ce_id", name.encode())])
    answer = await caller.answer(name)
    assert (answer.status, answer.code) == ("error", "malformed")
    assert "129 bytes; give 1 to 128" in answer.message
    # Without one nobody can be answered, and nobody behind it waits.
    await send(caller, request, partition=0)
    assert (await caller.ask({"task": "intent", "text": SURE}, partition=0)).status == "ok"
    assert str(request["id"]) not in caller.ids()
