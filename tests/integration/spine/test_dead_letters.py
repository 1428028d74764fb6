"""`edgeway dead-letters`: what was set aside is listed, shown without its content, and asked once more."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from typing import Any, NamedTuple

import pytest

from edgeway.cli import main
from schemas.topics import DEAD_LETTERS
from tests.helpers.caller import Caller, new_id
from tests.helpers.spine import Spine
from tests.integration.spine.samples import SURE, SURE_INTENT
from tests.integration.spine.test_bad_records import OURS, dead_letters

pytestmark = pytest.mark.integration


class Said(NamedTuple):
    code: int
    out: str
    err: str


async def command(spine: Spine, *words: str) -> Said:
    """In this process: a command of its own takes a second to start."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = await asyncio.to_thread(main, ["dead-letters", *words, "--kafka", spine.kafka])
    return Said(code, out.getvalue(), err.getvalue())


async def put_aside(caller: Caller, topic: str, key: str, value: bytes) -> str:
    """A letter as an agent writes it that failed at a sound record; its place."""
    about = {
        "topic": topic,
        "partition": "0",
        "offset": "1",
        "error": "handler_error",
        "message": "raised KeyError",
    }
    given = [(OURS + name, text.encode()) for name, text in about.items()]
    sent = await caller.send(value, key=key.encode(), headers=given, topic=DEAD_LETTERS)
    return f"{sent.partition}/{sent.offset}"


async def test_what_was_set_aside_is_listed_and_shown_without_its_content(
    spine: Spine, caller: Caller
) -> None:
    name = new_id()
    await caller.send(b'{"id": "%b", "text": "lies open' % name.encode(), key=name.encode())
    assert (await caller.answer(name)).code == "malformed"
    (record,) = await dead_letters(spine.kafka, name.encode())
    place = f"{record.partition}/{record.offset}"
    listed = await command(spine, "list", "--json", "--since", "10m", "--error", "malformed")
    assert listed.code == 0, listed.err
    assert [row["key"] for row in map(json.loads, listed.out.splitlines()) if row["place"] == place] == [name]
    shown = await command(spine, "show", place)
    assert "malformed" in shown.out
    assert "lies open" not in listed.out + shown.out
    assert "lies open" in (await command(spine, "show", place, "--payload")).out
    again = await command(spine, "replay", place)
    assert again.code == 0, again.err
    async with asyncio.timeout(10):
        while len(found := await dead_letters(spine.kafka, name.encode())) < 2:
            await asyncio.sleep(0.2)
    assert {one.value for one in found} == {record.value}


async def test_requests_run_again_under_the_router_s_eyes(spine: Spine, caller: Caller) -> None:
    request: dict[str, Any] = {"task": "intent", "text": SURE, "privacy": "high"}
    answered = await caller.ask(request)
    name = answered.body["id"]
    unnamed = await put_aside(caller, "requests", "k", json.dumps(request).encode())
    of_a_plan = await put_aside(caller, "joins", name, b"\x00 a plan")
    lost = await put_aside(caller, "cloud.nlp.intent", f"{new_id()}/intent/cloud/0", b"\x00 a subtask")
    listed = await command(spine, "replay", "--all", "--dry-run", "--topic", "cloud.nlp.intent")
    assert f"{lost}  refused" in listed.out, "what would be refused is told before"
    assert listed.code == 1, listed.err
    done = await command(spine, "replay", unnamed, of_a_plan, lost, "0/999999", "--new-ids", "--json")
    assert done.code == 1, done.err
    assert "no dead letter at 0/999999" in done.err
    first, second, third = map(json.loads, done.out.splitlines())
    for told in (first, second):
        answer = await caller.answer(told["id"])
        assert (answer.status, answer.body["output"]["intent"]) == ("ok", SURE_INTENT)
        assert answer.body["sides"] == {"intent": "local"}, "what is private stays so"
        assert answer.body["privacy"]["level"] == "high"
    assert third["to"] is None
    assert "its privacy verdict" in third["refused"]
    kept = await command(spine, "replay", of_a_plan, "--json")
    assert json.loads(kept.out)["id"] is None
    assert "--new-ids" in kept.err
    await asyncio.sleep(1)
    assert len(caller.all_of(name)) == 1, "an id is answered once"
