"""What is declared sensitive: answered at the edge or not at all, and on no topic of the cloud."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.caller import Caller, new_id, read_topics, topic_names
from tests.helpers.spine import Spine
from tests.integration.spine.samples import UNSURE, decomposed, escalated, explained

pytestmark = pytest.mark.integration

HIGH = [{"privacy": "high"}, {"privacy_level": "HIGH"}, {"privacy": "normal", "privacy_level": "high"}]


async def cloud_bytes(kafka: str) -> bytes:
    """Everything that was ever written to a topic of the cloud: keys, values, headers."""
    topics = sorted(name for name in await topic_names(kafka) if name.startswith("cloud."))
    assert len(topics) > 3
    records = await read_topics(kafka, topics)
    return b"\n".join(
        part
        for record in records
        for part in (record.key or b"", record.value or b"", *(value for _, value in record.headers))
    )


async def test_nothing_sensitive_reaches_the_cloud(spine: Spine, caller: Caller) -> None:
    open_mark = new_id("openmark")
    answer = await escalated(caller, {"task": "intent", "text": f"{UNSURE} {open_mark}"})
    open_id = str(answer.body["id"])
    marks: list[str] = []
    for declared in HIGH:
        request_id, mark = new_id("secret"), new_id("secretmark")
        answer = await caller.ask(
            {"id": request_id, "task": "intent", "text": f"{UNSURE} {mark}", **declared}
        )
        assert (answer.status, answer.body["sides"]) == ("ok", {"intent": "local"})
        assert answer.body["confidence"] < 0.9, (
            "the edge was unsure, and the cloud was not asked all the same"
        )
        assert "must not leave the edge" in explained(answer)
        marks += [request_id, mark]
    written = await cloud_bytes(spine.kafka)
    assert open_id.encode() in written
    assert open_mark.encode() in written
    assert [mark for mark in marks if mark.encode() in written] == []


@pytest.mark.parametrize(
    "asked",
    [
        {"task": "only_cloud"},
        {"query": "生成财报分析", **decomposed("demo-finance-1")},
        {"query": "live traffic", **decomposed("demo-traffic-2")},
    ],
    ids=["one step", "financial report", "live traffic"],
)
async def test_steps_fixed_to_the_cloud_are_refused(
    spine: Spine, caller: Caller, asked: dict[str, Any]
) -> None:
    request_id = new_id("secret")
    answer = await caller.ask({"id": request_id, "privacy": "high", "note": "secret", **asked})
    assert (answer.status, answer.code) == ("error", "no_placement")
    assert "cloud: privacy" in answer.message
    assert "must not leave the edge" in explained(answer)
    assert request_id.encode() not in await cloud_bytes(spine.kafka)


async def test_a_misspelt_privacy_is_refused_rather_than_ignored(spine: Spine, caller: Caller) -> None:
    request_id = new_id("secret")
    answer = await caller.ask({"id": request_id, "task": "intent", "text": UNSURE, "Privacy": "high"})
    assert (answer.status, answer.code) == ("error", "malformed")
    assert "`privacy`" in answer.message
    assert request_id.encode() not in await cloud_bytes(spine.kafka)
