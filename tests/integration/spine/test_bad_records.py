"""Records that cannot be read: a dead letter each, an answer where there is an id, no harm to the others."""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import Any

import msgspec
import pytest

from tests.helpers.caller import JSON, MSGPACK, Caller, new_id, read_topics
from tests.helpers.spine import PARTITIONS, Spine
from tests.integration.spine.samples import SURE

pytestmark = pytest.mark.integration

OURS = "edgeway_dead_letter_"
MIB = 1024 * 1024


async def dead_letters(kafka: str, key: bytes) -> list[Any]:
    """Those with this key; they are written before the answer may be."""
    async with asyncio.timeout(10):
        while not (
            found := [record for record in await read_topics(kafka, ["dead-letters"]) if record.key == key]
        ):
            await asyncio.sleep(0.1)
    return found


def malformed(request_id: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    return b'{"id": "%b", "task": "intent", "text": "where is' % request_id.encode(), []


def wrong_type(request_id: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    return json.dumps({"id": request_id, "task": ["intent"]}).encode(), []


def not_a_number(request_id: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    return b'{"id": "%b", "task": "intent", "x": NaN}' % request_id.encode(), []


def cut_msgpack(request_id: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    whole = msgspec.msgpack.encode({"id": request_id, "task": "intent", "inputs": {"text": SURE}})
    return whole[:-5], [("content-type", MSGPACK.encode())]


def too_large(request_id: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    return json.dumps({"id": request_id, "task": "intent", "text": "x" * (MIB + MIB // 2)}).encode(), []


def other_version(request_id: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    said = {"v": 9, "type": "request", "id": request_id, "task": "intent", "text": SURE}
    return json.dumps(said).encode(), []


def known_by_header(request_id: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    return b"\xc1\x00\xff no message at all", [("ce_id", request_id.encode())]


BAD = [
    (malformed, "malformed"),
    (wrong_type, "malformed"),
    (not_a_number, "malformed"),
    (cut_msgpack, "malformed"),
    (known_by_header, "malformed"),
    (too_large, "too_large"),
    (other_version, "unsupported_version"),
]


@pytest.mark.parametrize(("make", "code"), BAD, ids=[make.__name__ for make, _ in BAD])
async def test_a_bad_request(spine: Spine, caller: Caller, make: Any, code: str) -> None:
    request_id, after, key = new_id(), new_id(), new_id("key").encode()
    value, headers = make(request_id)
    headers = [*headers, ("x-mine", b"\x00\xff kept")]
    sent = await caller.send(value, key=key, headers=headers, partition=1)
    following = {"id": after, "task": "intent", "text": SURE}
    await caller.send(json.dumps(following).encode(), partition=1)

    answer = await caller.answer(request_id)
    assert (answer.status, answer.code) == ("error", code)
    assert answer.headers["content-type"].decode() == (JSON if value.startswith(b"{") else MSGPACK)
    assert (await caller.answer(after)).status == "ok"

    (letter,) = await dead_letters(spine.kafka, key)
    assert letter.value == value
    found = dict(letter.headers)
    assert {name: data for name, data in letter.headers if not name.startswith(OURS)} == dict(headers)
    assert found[f"{OURS}topic"] == b"requests"
    assert (found[f"{OURS}partition"], found[f"{OURS}offset"]) == (b"1", str(sent.offset).encode())
    assert found[f"{OURS}group"] == b"edgeway.router"
    assert found[f"{OURS}error"].decode() == code
    assert found[f"{OURS}message"]
    assert SURE.encode() not in found[f"{OURS}message"]


async def test_the_answer_to_a_bad_request_is_its_tenants(caller: Caller) -> None:
    answer = await caller.ask({"tenant": "red", "task": "intent", "text": SURE, "deadline_ms": "soon"})
    assert (answer.code, answer.body["tenant"]) == ("malformed", "red")
    assert answer.record.key == f"\x1fred\x1f{answer.body['id']}".encode()


async def test_the_mended_request_under_the_id_of_the_bad_one_is_told_so(caller: Caller) -> None:
    request = {"id": new_id(), "task": "intent", "text": SURE}
    assert (await caller.ask(request | {"deadline_ms": "soon"})).code == "malformed"
    await caller.send(json.dumps(request).encode())
    async with asyncio.timeout(10):
        while not (found := [name for name in caller.ids() if name.startswith(f"{request['id']}~")]):
            await asyncio.sleep(0.05)
    assert [answer.code for name in found for answer in caller.all_of(name)] == ["id_conflict"]


@pytest.mark.parametrize(
    "value", [b"", b"\xc1", b"[]", b"null", b"\x00" * 1000], ids=["empty", "no code", "list", "null", "zeros"]
)
async def test_a_record_without_any_id_is_only_a_dead_letter(
    spine: Spine, caller: Caller, value: bytes
) -> None:
    key = new_id("key").encode()
    await caller.send(value, key=key, partition=0)
    assert (await caller.ask({"task": "intent", "text": SURE}, partition=0)).status == "ok"
    (letter,) = await dead_letters(spine.kafka, key)
    assert letter.value == value


async def test_a_tombstone_stalls_nothing(spine: Spine, caller: Caller) -> None:
    key = new_id("key").encode()
    await caller.send(None, key=key, partition=0)  # type: ignore[arg-type]
    assert (await caller.ask({"task": "intent", "text": SURE}, partition=0)).status == "ok"
    (letter,) = await dead_letters(spine.kafka, key)
    assert not letter.value


async def test_a_bad_record_on_joins_fails_its_request_at_once(spine: Spine, caller: Caller) -> None:
    request_id, other_id = new_id(), new_id()
    key = request_id.encode()
    for each in (request_id, other_id):
        request = {"id": each, "task": "asleep", "deadline_ms": 20_000 if each == request_id else 2_000}
        await caller.send(json.dumps(request).encode())
    await asyncio.sleep(0.5)
    await caller.send(b"\x83no partial", key=key, topic="joins", partition=zlib.crc32(key) % PARTITIONS)
    answer = await caller.answer(request_id, within_s=3)
    assert (answer.status, answer.code) == ("error", "malformed")
    assert (await caller.answer(other_id)).code == "deadline_exceeded"
    (letter,) = await dead_letters(spine.kafka, key)
    assert dict(letter.headers)[f"{OURS}topic"] == b"joins"
    assert len(caller.all_of(request_id)) == 1


async def test_a_bad_subtask_is_answered_and_its_worker_goes_on(spine: Spine, caller: Caller) -> None:
    key = new_id("key").encode()
    await caller.send(b"no subtask", key=key, topic="local.vision.image_class", partition=0)
    (letter,) = await dead_letters(spine.kafka, key)
    assert dict(letter.headers)[f"{OURS}group"] == b"edgeway.local.vision.image_class"
    assert (await caller.ask({"task": "image_class", "pixels": [0.0] * 784})).status == "ok"
