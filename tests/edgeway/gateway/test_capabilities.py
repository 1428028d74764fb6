"""POST /local/... and /cloud/...: one step as a request, asked and answered as at a worker's own door."""

from __future__ import annotations

import msgspec
import pytest

from schemas.messages import Failure, Model, Request, Result, Timings
from tests.edgeway.gateway.test_tenants import TOKENS, bearer
from tests.helpers.gateway import gateway


async def answered(request: Request) -> Result:
    return Result(
        id=request.id or "",
        tenant=request.tenant,
        status="ok",
        output={"summary": "s"},
        confidence=0.9,
        timings={"summarize": Timings(queue_ms=1.0, service_ms=2.0, total_ms=4.0)},
        models={"summarize": Model(name="m", version="1")},
        approximate=True,
        warnings=("w",),
    )


@pytest.mark.parametrize("path", ["/local/nlp/summarize", "/local/summarize", "/local/nlp/summarize/"])
async def test_the_body_and_the_answer_are_those_of_a_worker(path: str) -> None:
    async with gateway(answered) as served:
        answer = await served.client.post(path, json={"text": "a"})
        assert answer.status_code == 200, answer.text
        (sent,) = served.exchange.sent
        assert (sent.task, sent.inputs, sent.deadline_ms) == ("local/nlp/summarize", {"text": "a"}, 30_000)
        said = answer.json()
        assert said["id"] == sent.id
        assert (said["capability"], said["output"]) == ("local/nlp/summarize", {"summary": "s"})
        assert (said["confidence"], said["model"]) == (0.9, {"name": "m", "version": "1"})
        assert said["timings"] == {"queue_ms": 1.0, "service_ms": 2.0, "total_ms": 4.0}
        assert (said["approximate"], said["warnings"]) == (True, ["w"])


async def test_the_other_ways_to_say_it() -> None:
    async with gateway(answered) as served:
        post = served.client.post
        whole = {"inputs": {"text": "a"}, "params": {"n": 1}, "deadline_ms": 50, "id": "k"}
        assert (await post("/cloud/nlp/summarize", json=whole)).json()["id"] == "k"
        text = {"content-type": "text/plain"}
        assert (await post("/local/summarize", content="grün".encode(), headers=text)).status_code == 200
        image = {"content-type": "image/png", "idempotency-key": "i", "edgeway-deadline-ms": "70"}
        assert (await post("/local/caption", content=b"\x89", headers=image)).json()["id"] == "i"
        packed = {"content-type": "application/msgpack"}
        reply = await post("/local/summarize", content=msgspec.msgpack.encode({"text": b"a"}), headers=packed)
        assert msgspec.msgpack.decode(reply.content)["output"] == {"summary": "s"}
        curl = {"content-type": "application/x-www-form-urlencoded"}
        assert (await post("/local/summarize", content=b'{"text": "a"}', headers=curl)).status_code == 200
        sent = served.exchange.sent
        assert (sent[0].task, sent[0].params, sent[0].deadline_ms) == ("cloud/nlp/summarize", {"n": 1}, 50)
        assert [each.inputs for each in sent[1:4]] == [{"text": "grün"}, {"image": b"\x89"}, {"text": b"a"}]
        assert sent[2].deadline_ms == 70


async def test_what_is_refused() -> None:
    async def failing(request: Request) -> Result:
        return Result(id=request.id or "", status="error", error=Failure(code="bad_input", message="no"))

    async with gateway(failing) as served:
        post = served.client.post
        unknown = await post("/local/nlp/nothing", json={})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_capability")
        assert "/local/nlp/summarize" in unknown.json()["detail"]
        assert (await post("/local/", json={})).status_code == 404
        assert (await post("/local/summarize", json={"text": "a"})).status_code == 422
        assert (await post("/local/summarize", json=[1])).status_code == 400
        assert (await post("/local/summarize", json={"inputs": {}, "max_batch": 1})).status_code == 400
        assert (await post("/local/caption", json={"image_url": "..."})).json()["field"] == "image_url"
        assert (await served.client.get("/local/summarize")).status_code == 405
        assert (await post("/summarize", json={})).status_code == 404


async def test_it_is_the_tokens_tenants() -> None:
    async with gateway(answered, rules=TOKENS) as served:
        assert (await served.client.post("/local/summarize", json={})).status_code == 401
        done = await served.client.post("/local/summarize", json={"text": "a"}, headers=bearer("t-beta"))
        assert done.status_code == 200
        assert served.exchange.sent[0].tenant == "beta"
