"""POST /route: what is sent, who waits how long, and what comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from edgeway.errors import KafkaUnreachable
from edgeway.gateway import asking
from edgeway.gateway.problems import STATUSES
from schemas.errors import ERROR_CODES
from schemas.messages import Decision, Failure, Request, Result
from tests.helpers.gateway import gateway

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def never(request: Request) -> Result | None:
    return None


async def test_a_request_is_sent_as_it_is_and_answered_with_its_reasons() -> None:
    async def weak(request: Request) -> Result:
        decisions = (Decision(step="summarize", side="local", rule="score"),)
        said = {"approximate": True, "warnings": ("possibly inaccurate",), "decisions": decisions}
        return Result(id=request.id or "", status="ok", output={"summary": b"\x01"}, **said)

    async with gateway(weak) as served:
        answer = await served.route({"task": "summarize", "text": "a", "inputs": {"n": 2}, "privacy": "high"})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        (sent,) = served.exchange.sent
        assert (sent.task, sent.inputs, sent.privacy) == ("summarize", {"text": "a", "n": 2}, "high")
        said = answer.json()
        assert (said["id"], said["status"], said["output"]) == (sent.id, "ok", {"summary": "AQ=="})
        assert (said["approximate"], said["warnings"]) == (True, ["possibly inaccurate"])
        assert said["decisions"][0]["rule"] == "score"
        assert (said["cost"], said["missing"], said["claim"]) == (0.0, [], None), "defaults are said as well"
        assert answer.headers["x-request-id"] == sent.id


async def test_what_curl_sends_without_being_told_a_type_is_json() -> None:
    async with gateway() as served:
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer = await served.client.post(
            "/route", content=b'{"task": "summarize", "text": "a"}', headers=form
        )
        assert answer.json()["output"] == {"text": "a"}
        bare = await served.client.post("/route", content=b'{"task": "summarize"}')
        assert bare.status_code == 200
        odd = await served.client.post("/route", content=b"text=a", headers=form)
        assert (odd.status_code, odd.json()["code"]) == (400, "malformed")


async def test_msgpack_in_and_out() -> None:
    async with gateway() as served:
        body = msgspec.msgpack.encode({"task": "summarize", "image": b"\x00\xff"})
        kind = {"content-type": "application/msgpack"}
        answer = await served.client.post("/route", content=body, headers=kind)
        assert answer.headers["content-type"] == "application/msgpack"
        assert msgspec.msgpack.decode(answer.content, type=Result).output == {"image": b"\x00\xff"}
        assert served.exchange.headers[-1][2] == "msgpack"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 400),
        (b"[1]", {}, 400),
        (b'{"task": 1}', {}, 400),
        (b'{"task": "a", "deadline_ms": 0}', {}, 400),
        (b'{"task": "a"}', {"content-type": "text/plain"}, 415),
        (b'{"task": "a"}', {"content-type": "application/json", "content-length": "x"}, 400),
        (b'{"task": "a"}', {"content-length": "99999999999"}, 413),
        (b'{"task": "a", "text": "' + b"x" * 2_000_000 + b'"}', {}, 413),
        (b'{"task": "a", "id": "k"}', {"idempotency-key": "other"}, 400),
        (b'{"task": "a"}', {"edgeway-deadline-ms": "soon"}, 400),
        (b"--x\r\n", {"content-type": "multipart/form-data; boundary=x"}, 400),
        (b"--x\r\n", {"content-type": "multipart/form-data"}, 400),
    ],
)
async def test_what_cannot_be_read_is_a_problem(body: bytes, headers: dict[str, str], status: int) -> None:
    async with gateway() as served:
        answer = await served.client.post("/route", content=body, headers=headers)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert (problem["status"], problem["type"]) == (status, f"urn:edgeway:error:{problem['code']}")
        assert served.exchange.sent == []
        assert served.gateway.lobby.open == served.gateway.lobby.bytes == 0


@pytest.mark.parametrize("code", ERROR_CODES)
async def test_an_error_result_has_its_codes_status_and_tells_the_whole_result(code: Any) -> None:
    async def failing(request: Request) -> Result:
        failure = Failure(code=code, message="it did not go")
        return Result(id=request.id or "", status="error", error=failure, cost=0.5)

    async with gateway(failing) as served:
        answer = await served.route({"task": "summarize"})
        assert answer.status_code == STATUSES[code][0]
        problem = answer.json()
        assert (problem["code"], problem["detail"], problem["result"]["cost"]) == (code, "it did not go", 0.5)
        assert ("retry-after" in answer.headers) == (answer.status_code == 503)


async def test_a_repeated_key_refers_to_the_first_request() -> None:
    async with gateway() as served:
        key = {"Idempotency-Key": "k1"}
        first = await served.route({"task": "summarize", "text": "a"}, headers=key)
        again = await served.route({"task": "summarize", "text": "a"}, headers=key)
        assert first.json() == again.json()
        assert len(served.exchange.sent) == 1
        other = await served.route({"task": "summarize", "text": "b"}, headers=key)
        assert (other.status_code, other.json()["code"], other.json()["id"]) == (409, "id_conflict", "k1")


async def test_a_repeat_of_what_is_open_waits_for_the_same_answer() -> None:
    async with gateway(never) as served:
        body, key = {"task": "summarize", "text": "a"}, {"Idempotency-Key": "k1"}
        both = [asyncio.create_task(served.route(body, headers=key)) for _ in range(2)]
        await asyncio.sleep(0.05)
        conflict = await served.route({"task": "summarize", "text": "b"}, headers=key)
        assert conflict.status_code == 409
        served.exchange.reply(Result(id="k1", status="ok", output=1))
        assert [(await each).json()["output"] for each in both] == [1, 1]


async def test_a_caller_who_does_not_wait_is_told_where_the_answer_will_be() -> None:
    async with gateway(never) as served:
        answer = await served.route({"task": "summarize", "id": "a/b"}, headers={"Prefer": "respond-async"})
        assert (answer.status_code, answer.headers["preference-applied"]) == (202, "respond-async")
        assert answer.headers["retry-after"] == "1"
        where = answer.headers["location"]
        assert where.startswith("/requests/a%2Fb?until=")
        assert answer.json() == {"id": "a/b", "status": "open", "location": where}
        assert served.gateway.lobby.open == 1, "it counts until it is answered"
        assert (await served.client.get(where)).status_code == 202
        served.exchange.reply(Result(id="a/b", status="ok", output=1))
        assert (await served.client.get(where)).json()["output"] == 1


async def test_a_caller_who_waits_a_while_is_told_then() -> None:
    async with gateway(never) as served:
        answer = await served.route({"task": "summarize", "id": "a"}, headers={"Prefer": "wait=1"})
        assert (answer.status_code, answer.headers["preference-applied"]) == (202, "wait=1")
    async with gateway() as served:
        prefer = {"Prefer": "respond-async, wait=5"}
        assert (await served.route({"task": "summarize"}, headers=prefer)).status_code == 200


async def test_without_an_answer_by_the_deadline_and_some_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "GRACE_S", 0.1)
    async with gateway(never) as served:
        answer = await served.route({"task": "summarize", "deadline_ms": 50})
        assert (answer.status_code, answer.json()["code"]) == (504, "unanswered")
        assert served.gateway.lobby.open == 0


async def test_a_key_of_an_hour_ago_has_its_answer_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "GRACE_S", 0.1)
    async with gateway() as served:
        body = {"task": "summarize", "id": "k", "deadline_ms": 50}
        first = await served.route(body)
        served.exchange.forget("k")
        again = await served.route(body)
        assert (again.status_code, again.json()) == (200, first.json())


def test_the_patience_is_that_of_the_routers_deadline() -> None:
    async def run() -> None:
        tenants = {"tenants": {"acme": {"deadline_ms": 60_000}}}
        async with gateway(rules=tenants) as served:
            patience = served.gateway._asking.patience_s
            grace = asking.GRACE_S
            assert patience(Request(task="voice")) == 2 + grace
            assert patience(Request(task="summarize")) == 30 + grace
            assert patience(Request(task="voice", tenant="acme")) == 60 + grace
            assert patience(Request(task="voice", tenant="acme", deadline_ms=100)) == 0.1 + grace

    asyncio.run(run())


async def test_while_kafka_is_away() -> None:
    async with gateway() as served:
        served.exchange.fail_with = KafkaUnreachable("k:9092", "nobody")
        answer = await served.route({"task": "summarize"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "k:9092" not in answer.text
        served.ready = False
        assert (await served.route({"task": "summarize"})).status_code == 503


async def test_an_unknown_outcome_of_sending_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with gateway() as served:
        served.exchange.lose("k")
        waiting = asyncio.create_task(served.route({"task": "summarize", "id": "k"}))
        await asyncio.sleep(0.05)
        served.exchange.reply(Result(id="k", status="ok", output=1))
        assert (await waiting).json()["output"] == 1
        lost = await served.route({"task": "summarize", "id": "k2"}, headers={"Prefer": "respond-async"})
        assert (lost.status_code, lost.json()["id"]) == (503, "k2")


async def test_traces_and_correlation_ids_go_through() -> None:
    async with gateway() as served:
        headers = {"traceparent": TRACE, "tracestate": "a=1", "X-Request-Id": "mine"}
        answer = await served.route({"task": "summarize"}, headers=headers)
        assert served.exchange.headers[-1][:2] == (TRACE, "a=1")
        assert (answer.headers["traceparent"], answer.headers["x-request-id"]) == (TRACE, "mine")
        own = await served.route({"task": "summarize"}, headers={"traceparent": "odd", "tracestate": "a=1"})
        made = served.exchange.headers[-1]
        assert (own.headers["traceparent"], made[1]) == (made[0], None)


async def test_a_broken_exchange_is_told_without_its_words() -> None:
    async def breaking(request: Request) -> Result | None:
        return None

    async with gateway(breaking) as served:

        async def broken(*_: Any, **__: Any) -> Any:
            raise RuntimeError("4111-secret")

        served.exchange.send = broken  # type: ignore[method-assign]
        answer = await served.route({"task": "summarize"})
        assert (answer.status_code, answer.json()["code"]) == (500, "internal")
        assert "secret" not in answer.text


async def test_other_paths_and_methods() -> None:
    async with gateway() as served:
        assert (await served.client.get("/nowhere")).status_code == 404
        wrong = await served.client.get("/route")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        assert (await served.client.get("/readyz")).status_code == 200
        assert "edgeway_gateway_requests_total" in (await served.client.get("/metrics")).text
        assert "summarize" in (await served.client.get("/docs")).text
        assert (await served.client.get("/")).status_code == 307


@pytest.mark.parametrize("path", ["/route", "/requests/a", "/local/nlp/summarize", "/nowhere", "/healthz"])
@pytest.mark.parametrize("method", ["PROPFIND", "get", "OPTIONS", "PUT"])
async def test_whatever_is_no_answer_is_a_problem(method: str, path: str) -> None:
    async with gateway() as served:
        request = served.client.build_request("POST", "/", content=b"{}")
        request.method, request.url = method, request.url.copy_with(raw_path=path.encode())
        answer = await served.client.send(request)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
        assert answer.status_code == (405 if "allow" in answer.headers else 404)
        assert answer.headers.get("allow", "POST") in ("POST", "GET, DELETE")


@pytest.mark.parametrize(
    "kind", ["application/json", "application/msgpack", "multipart/form-data; boundary=x"]
)
async def test_a_compressed_body_is_refused_whatever_it_is(kind: str) -> None:
    async with gateway() as served:
        headers = {"Content-Encoding": "gzip", "Content-Type": kind}
        answer = await served.client.post("/route", content=b'{"task": "summarize"}', headers=headers)
        assert answer.status_code == 415
        assert served.exchange.sent == []


@pytest.mark.parametrize("name", ["Idempotency-Key", "Edgeway-Deadline-Ms", "Authorization", "Content-Type"])
async def test_what_is_said_twice_is_refused(name: str) -> None:
    async with gateway() as served:
        headers = [(name, "1000"), (name.lower(), "2000")]
        answer = await served.client.post("/route", content=b'{"task": "summarize"}', headers=headers)
        assert (answer.status_code, name in answer.json()["detail"]) == (400, True)
        assert served.exchange.sent == []


async def test_pages_of_other_origins() -> None:
    from streams.settings import Settings

    foreign = {"Origin": "https://app.example.com"}
    async with gateway() as served:
        refused = await served.route({"task": "summarize"}, headers=foreign)
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers
        for none in ("http://[", "null", "http://a]b"):
            assert (await served.route({"task": "summarize"}, headers={"Origin": none})).status_code == 403
    async with gateway(settings=Settings(cors_origins=("https://app.example.com",))) as served:
        answer = await served.route({"task": "summarize"}, headers=foreign)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, foreign["Origin"])
        asked = {**foreign, "Access-Control-Request-Method": "POST"}
        assert (await served.client.options("/route", headers=asked)).status_code == 200
        other = await served.route({"task": "summarize"}, headers={"Origin": "https://evil.example.com"})
        assert other.status_code == 403
