"""Requests that cannot be answered well: each is told what is wrong and how to mend it, in time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.helpers.caller import Answer, Caller, new_id
from tests.helpers.spine import NO_TOPIC, Spine
from tests.integration.spine.samples import SURE, explained, images

pytestmark = pytest.mark.integration

GRACE_MS = 1000
MAX_RECORD = 1024 * 1024


async def refused(caller: Caller, request: dict[str, Any], code: str) -> Answer:
    answer = await caller.ask(request)
    assert (answer.status, answer.code) == ("error", code), answer.body
    assert f"It failed: {answer.message}" in explained(answer)
    return answer


@pytest.mark.parametrize(
    ("pixels", "says"),
    [
        ([0.5] * 783, ("783", "784")),
        ([0.5] * 783 + ["dark"], ("number",)),
        ("a picture", ("pixels",)),
        (None, ("pixels",)),
    ],
    ids=["too few", "a word among them", "text", "none"],
)
async def test_wrong_pixels(caller: Caller, pixels: object, says: tuple[str, ...]) -> None:
    answer = await refused(caller, {"task": "image_class", "pixels": pixels}, "bad_input")
    assert "classify" in answer.message
    for word in says:
        assert word in answer.message
    assert "dark" not in answer.message
    assert "a picture" not in answer.message


async def test_a_bad_row_fails_alone(caller: Caller) -> None:
    good, bad = images()[0], [0.0]
    asked = [{"id": new_id(), "task": "image_class", "pixels": bad if n % 2 else good} for n in range(8)]
    for request in asked:
        await caller.send(_json(request), partition=0)
    for n, request in enumerate(asked):
        answer = await caller.answer(str(request["id"]))
        assert (answer.status, answer.code) == (("error", "bad_input") if n % 2 else ("ok", None))


async def test_an_unknown_task_is_told_the_known_ones(caller: Caller) -> None:
    answer = await refused(caller, {"task": "intnet", "text": SURE}, "unknown_task")
    assert "known tasks: intent" in answer.message


async def test_a_query_without_any_phrase(caller: Caller) -> None:
    answer = await refused(caller, {"query": "make me a sandwich"}, "unknown_task")
    assert "`query`" in answer.message
    assert "financial_report" in answer.message


async def test_neither_task_nor_query(caller: Caller) -> None:
    answer = await refused(caller, {"text": SURE}, "invalid_request")
    assert "`task`" in answer.message


async def test_a_value_of_a_wrong_type(caller: Caller) -> None:
    answer = await refused(caller, {"task": "intent", "text": SURE, "deadline_ms": "soon"}, "malformed")
    assert "deadline_ms" in answer.message


@pytest.mark.parametrize("deadline_ms", [0, -1, 600_001, 1e300])
async def test_a_deadline_out_of_bounds(caller: Caller, deadline_ms: float) -> None:
    asked = {"task": "intent", "text": SURE, "deadline_ms": deadline_ms}
    assert "deadline_ms" in (await refused(caller, asked, "malformed")).message


async def test_a_capability_that_nobody_offers(caller: Caller) -> None:
    answer = await refused(caller, {"task": "nowhere"}, "no_placement")
    assert "test/nowhere" in answer.message
    assert "no worker offers the capability there now" in explained(answer)


async def test_a_deadline_that_is_over_when_the_request_is_read(caller: Caller) -> None:
    await refused(caller, {"task": "intent", "text": SURE, "deadline_ms": 1}, "deadline_exceeded")


@pytest.mark.parametrize("deadline_ms", [300, 1200])
async def test_silence_is_answered_by_the_deadline(caller: Caller, deadline_ms: int) -> None:
    request_id = new_id()
    sent = await caller.send(_json({"id": request_id, "task": "asleep", "deadline_ms": deadline_ms}))
    answer = await caller.answer(request_id)
    assert (answer.status, answer.code) == ("error", "deadline_exceeded")
    assert "asleep" in answer.message
    assert deadline_ms <= answer.record.timestamp - sent.timestamp <= deadline_ms + GRACE_MS


async def test_at_the_deadline_what_is_there_is_given(caller: Caller) -> None:
    answer = await caller.ask({"task": "half", "text": SURE, "deadline_ms": 700})
    assert (answer.status, answer.code) == ("partial", "deadline_exceeded")
    assert answer.body["missing"] == ["asleep"]
    assert answer.body["output"]["known"]["intent"] == "country_support"
    text = explained(answer)
    assert "Without an answer: asleep" in text
    assert "no answer came in time" in text


async def test_a_topic_that_was_never_made_stalls_nothing(spine: Spine, caller: Caller) -> None:
    request_id, next_id = new_id(), new_id()
    await caller.send(_json({"id": request_id, "task": "topicless"}), partition=2)
    await caller.send(_json({"id": next_id, "task": "intent", "text": SURE}), partition=2)
    assert (await caller.answer(next_id, within_s=5)).status == "ok"
    answer = await caller.answer(request_id, within_s=10)
    assert (answer.status, answer.code) == ("error", "unknown_capability")
    assert f"topic {NO_TOPIC} does not exist; run `edgeway topics apply`" in answer.message


@pytest.mark.parametrize("spare", [0, 300, 2000])
async def test_inputs_that_all_but_fill_a_record(caller: Caller, spare: int) -> None:
    """The plan and the subtask carry the inputs and more: what does not fit must be said, not lost."""
    request: dict[str, Any] = {"id": new_id(), "task": "image_class", "pixels": [], "note": ""}
    request["note"] = "x" * (MAX_RECORD - spare - len(_json(request)))
    assert len(_json(request)) == MAX_RECORD - spare
    answer = await caller.ask(request)
    assert answer.status == "error"
    assert answer.code in ("too_large", "bad_input")


def _json(request: dict[str, Any]) -> bytes:
    return json.dumps(request).encode()
