"""The exchange before the whole of Edgeway: answers, and the events that lead to them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from edgeway.exchange import Event, KafkaExchange
from schemas.messages import Request
from streams.settings import Settings
from tests.helpers.caller import Caller, new_id
from tests.helpers.spine import Spine
from tests.integration.spine.samples import SURE, UNSURE, UNSURE_INTENT, escalated

pytestmark = pytest.mark.integration
WAIT_S = 30.0


@pytest.fixture
async def exchange(spine: Spine) -> AsyncIterator[KafkaExchange]:
    async with KafkaExchange(Settings(kafka=spine.kafka), source="edgeway/test") as exchange:
        yield exchange


def asked(text: str, **fields: Any) -> Request:
    return Request(id=new_id("exchange"), task="intent", inputs={"text": text}, **fields)


async def test_a_weak_answer_is_seen_to_go_to_the_cloud(exchange: KafkaExchange, caller: Caller) -> None:
    await escalated(caller, {"task": "intent", "text": UNSURE})
    # A text of its own, which no cached answer is for.
    sent = await exchange.send(asked(f"{UNSURE} {'please ' * random.randrange(2, 9)}"))
    events = [event async for event in exchange.events(sent.key, timeout_s=WAIT_S)]
    kinds = [event.kind for event in events]
    assert kinds[:3] == ["accepted", "planned", "partial"], events
    assert kinds[-1] == "result"
    by_kind: dict[str, Event] = {event.kind: event for event in events}
    assert by_kind["escalated"].data["trigger"] == "weak"
    assert (by_kind["escalated"].data["from"], by_kind["escalated"].data["to"]) == ("local", "cloud")
    assert by_kind["partial"].data["side"] == "cloud"
    assert by_kind["result"].data["sides"] == {"intent": "cloud"}
    times = [event.at for event in events[1:-1]]
    assert times == sorted(times)
    result = exchange.known(sent.key)
    assert result is not None
    assert UNSURE not in repr(events[:-1])
    assert UNSURE_INTENT in repr(result.output)


async def test_a_sure_answer_is_planned_and_given(exchange: KafkaExchange) -> None:
    sent = await exchange.send(asked(SURE, tenant="acme"))
    result = await exchange.answer(sent, WAIT_S)
    assert result.status == "ok"
    # Also after the answer, for it was sent through here.
    kinds = [event.kind async for event in exchange.events(sent.key, timeout_s=WAIT_S)]
    assert (kinds[:2], kinds[-1]) == (["accepted", "planned"], "result")


async def test_other_content_under_an_id_is_a_conflict(exchange: KafkaExchange) -> None:
    first = asked(SURE)
    sent = await exchange.send(first)
    assert (await exchange.answer(sent, WAIT_S)).status == "ok"
    again = await exchange.send(first)
    assert (await exchange.answer(again, WAIT_S)).id == first.id
    other = await exchange.send(Request(id=first.id, task="intent", inputs={"text": UNSURE}))
    refused = await exchange.answer(other, WAIT_S)
    assert refused.error is not None
    assert refused.error.code == "id_conflict"
