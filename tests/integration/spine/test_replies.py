"""`reply_to`, and the trace that goes with a request."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.helpers.caller import Caller, new_id, read_topics, topic_names
from tests.helpers.spine import NO_REPLY_TOPIC, REPLY, Spine
from tests.integration.spine.samples import SURE, UNSURE

pytestmark = pytest.mark.integration

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.mark.parametrize("named", [REPLY, REPLY.removeprefix("results.")])
async def test_a_listed_topic_gets_a_copy(spine: Spine, caller: Caller, named: str) -> None:
    answer = await caller.ask({"task": "intent", "text": SURE, "reply_to": named})
    assert "warnings" not in answer.body
    async with asyncio.timeout(10):
        while not (
            copies := [
                record
                for record in await read_topics(spine.kafka, [REPLY])
                if record.key == answer.record.key
            ]
        ):
            await asyncio.sleep(0.1)
    assert [copy.value for copy in copies] == [answer.record.value]


@pytest.mark.parametrize("named", ["results.unlisted", "joins", "cloud.nlp.intent", "../etc", "results"])
async def test_an_unlisted_topic_gets_nothing(spine: Spine, caller: Caller, named: str) -> None:
    before = await topic_names(spine.kafka)
    answer = await caller.ask({"task": "intent", "text": SURE, "reply_to": named}, partition=0)
    assert answer.status == "ok"
    (warning,) = answer.body["warnings"]
    assert "not listed in the rules" in warning
    assert (await caller.ask({"task": "intent", "text": SURE}, partition=0)).status == "ok"
    assert await topic_names(spine.kafka) == before


async def test_a_listed_topic_that_does_not_exist_stalls_nothing(spine: Spine, caller: Caller) -> None:
    request_id = new_id()
    for each in (request_id, *(new_id() for _ in range(6))):
        asked = {"id": each, "task": "intent", "text": SURE}
        await caller.send(json.dumps(asked | {"reply_to": NO_REPLY_TOPIC}).encode())
        assert (await caller.answer(each, within_s=10)).status == "ok"
    assert NO_REPLY_TOPIC not in await topic_names(spine.kafka)


async def test_a_trace_goes_through_every_topic(spine: Spine, caller: Caller) -> None:
    request_id = new_id()
    headers = [("traceparent", PARENT.encode()), ("tracestate", b"vendor=1")]
    asked = {"id": request_id, "task": "intent", "text": UNSURE}
    await caller.send(json.dumps(asked).encode(), headers=headers)
    answer = await caller.answer(request_id)
    assert TRACE in answer.headers["traceparent"].decode()
    assert answer.headers["tracestate"] == b"vendor=1"
    topics = ["local.nlp.intent", "cloud.nlp.intent", "joins"]
    records = [
        record
        for record in await read_topics(spine.kafka, topics)
        if (record.key or b"").startswith(request_id.encode())
    ]
    assert {record.topic for record in records} == set(topics)
    for record in records:
        assert TRACE in dict(record.headers).get("traceparent", b"").decode(), (record.topic, record.headers)


async def test_a_broken_trace_counts_as_none(caller: Caller) -> None:
    request_id = new_id()
    asked = {"id": request_id, "task": "intent", "text": SURE}
    await caller.send(json.dumps(asked).encode(), headers=[("traceparent", b"00-zz\xff")])
    answer = await caller.answer(request_id)
    assert answer.status == "ok"
    assert answer.headers["traceparent"].endswith(b"-00")
