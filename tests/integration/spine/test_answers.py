"""Requests that are answered: in both formats, by every kind of task, on both sides."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from schemas import ids
from tests.helpers.caller import JSON, MSGPACK, Caller, new_id
from tests.integration.spine.samples import (
    SURE,
    SURE_INTENT,
    UNSURE,
    UNSURE_INTENT,
    decomposed,
    escalated,
    explained,
    images,
    raw,
)

pytestmark = pytest.mark.integration


async def test_a_bare_line_of_json_is_a_whole_request(caller: Caller) -> None:
    line = json.dumps({"task": "intent", "text": SURE}).encode()
    sent = await caller.send(line, partition=1)
    # It named no id: its place in the log makes one.
    answer = await caller.answer(ids.derived("requests", sent.partition, sent.offset, sent.timestamp))
    assert (answer.status, answer.body["output"]["intent"]) == ("ok", SURE_INTENT)
    assert answer.headers["content-type"].decode() == JSON
    assert answer.record.value.startswith(b"{")
    assert answer.record.key == answer.body["id"].encode()


@pytest.mark.parametrize(
    ("prefix", "headers"),
    [
        (b"\xef\xbb\xbf", []),
        (b" \r\n\t", []),
        (b"", [("Content-Type", b"application/json; charset=utf-8")]),
        (b"", [("content-type", b"text/plain")]),
        (b"", [("content-type", b"\xff\xfe")]),
    ],
    ids=["byte order mark", "white space", "charset", "other type", "odd type"],
)
async def test_json_as_others_write_it(
    caller: Caller, prefix: bytes, headers: list[tuple[str, bytes]]
) -> None:
    request_id = new_id()
    line = json.dumps({"id": request_id, "task": "intent", "text": SURE}, ensure_ascii=False)
    await caller.send(prefix + line.encode() + b"\n", headers=headers)
    answer = await caller.answer(request_id)
    assert answer.status == "ok"
    assert answer.headers["content-type"].decode() == JSON


async def test_unknown_keys_of_a_request_are_inputs(caller: Caller) -> None:
    loose = await caller.ask({"task": "intent", "text": UNSURE})
    proper = await caller.ask({"task": "intent", "inputs": {"text": UNSURE}})
    assert loose.body["output"] == proper.body["output"]
    assert loose.body["digest"] == proper.body["digest"]


@pytest.mark.parametrize("headers", [[("content-type", MSGPACK.encode())], []], ids=["told", "sniffed"])
async def test_msgpack_is_answered_in_msgpack(caller: Caller, headers: list[tuple[str, bytes]]) -> None:
    request = {"v": 1, "type": "request", "id": new_id(), "task": "intent", "inputs": {"text": SURE}}
    await caller.send(msgspec.msgpack.encode(request), headers=headers)
    answer = await caller.answer(request["id"])
    assert answer.headers["content-type"].decode() == MSGPACK
    assert msgspec.msgpack.decode(answer.record.value)["output"]["intent"] == SURE_INTENT


async def test_results_carry_cloudevents_headers(caller: Caller) -> None:
    answer = await caller.ask({"task": "intent", "text": SURE})
    assert answer.headers["ce_specversion"] == b"1.0"
    assert answer.headers["ce_type"] == b"edgeway.result"
    assert answer.headers["ce_source"] == b"edgeway/aggregator"
    assert answer.headers["ce_id"].decode() == answer.body["id"]


async def test_the_edge_answers_alone_what_it_is_sure_of(caller: Caller) -> None:
    answer = await caller.ask({"task": "intent", "text": SURE})
    body = answer.body
    assert (body["sides"], body["cost"]) == ({"intent": "local"}, 0)
    assert body["confidence"] >= 0.9
    assert not body.get("approximate")
    assert "went to the edge" in explained(answer)


async def test_the_cloud_answers_what_the_edge_is_not_sure_of(caller: Caller) -> None:
    answer = await escalated(caller, {"task": "intent", "text": UNSURE})
    body = answer.body
    assert (body["output"]["intent"], body["sides"]) == (UNSURE_INTENT, {"intent": "cloud"})
    assert body["cost"] > 0
    assert not body.get("approximate")
    assert "its answer was not enough, and that of the cloud was taken" in explained(answer)


async def test_pixels_as_numbers_and_as_raw_bytes_give_one_answer(caller: Caller) -> None:
    seen = set()
    for pixels in images()[:5]:
        numbers = await caller.ask({"task": "image_class", "pixels": pixels})
        request = {"id": new_id(), "task": "image_class", "inputs": {"pixels": raw(pixels)}}
        await caller.send(msgspec.msgpack.encode(request), headers=[("content-type", MSGPACK.encode())])
        as_bytes = await caller.answer(request["id"])
        assert (numbers.status, as_bytes.status) == ("ok", "ok")
        assert numbers.body["output"]["label"] == as_bytes.body["output"]["label"]
        assert numbers.body["output"]["scores"] == pytest.approx(as_bytes.body["output"]["scores"], abs=1e-5)
        assert numbers.body["sides"] == {"classify": "local"}
        seen.add(numbers.body["output"]["label"])
    assert len(seen) > 1, "a model that says the same of everything proves nothing"


FINANCE = [
    ({"query": "生成财报分析"}, "demo-finance-1", "CNY"),
    ({"query": "请为我 生成财报分析，谢谢"}, "demo-finance-1", "CNY"),
    ({"query": "Write a Financial Report analysis"}, "demo-finance-2", "USD"),
    ({"task": "financial_report"}, "demo-finance-2", "USD"),
]


@pytest.mark.parametrize(("asked", "sample", "currency"), FINANCE)
async def test_a_financial_report_is_split_and_fused(
    caller: Caller, asked: dict[str, Any], sample: str, currency: str
) -> None:
    answer = await caller.ask({**asked, "inputs": decomposed(sample)})
    body, output = answer.body, answer.body["output"]
    assert (answer.status, body["task"]) == ("ok", "financial_report")
    assert body["sides"] == {
        "tokenize": "local",
        "entities": "local",
        "indicators": "cloud",
        "chart": "cloud",
    }
    # Two steps estimate it: the fused one is theirs together.
    assert output["revenue"] == pytest.approx(1.26e9)
    assert output["token_count"] > 10
    assert output["companies"]
    assert output["growth"]
    assert {row["currency"] for row in output["chart"]["data"]["values"]} == {currency}
    assert set(body["timings"]) == set(body["models"]) == set(body["sides"])
    # With `max_local_tokens` the edge's own steps may leave it too, and their sides are scored.
    assert explained(answer).count("the rules name this side") == 2
    assert explained(answer).count("it scored") == 2


TRAFFIC = [
    ({"query": "实时路况预测"}, "demo-traffic-1"),
    ({"query": "live traffic, please"}, "demo-traffic-2"),
    ({"task": "traffic_forecast"}, "demo-traffic-2"),
]


@pytest.mark.parametrize(("asked", "sample"), TRAFFIC)
async def test_a_traffic_forecast_takes_the_cloud_over_the_edge(
    caller: Caller, asked: dict[str, Any], sample: str
) -> None:
    answer = await caller.ask({**asked, "inputs": decomposed(sample)})
    body, output = answer.body, answer.body["output"]
    assert (answer.status, body["task"]) == ("ok", "traffic_forecast")
    assert body["sides"] == {"gps_check": "local", "forecast": "cloud", "congestion": "cloud"}
    # The edge says `slow` of these tracks.
    assert output["level"] == "heavy"
    assert "mean_speed_kmh" in output, "what only the edge says is kept"
    assert output["forecast"]
