"""/requests/{id}: answers, cancelling, events, outputs."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import msgspec

from edgeway.errors import ExchangeFull
from edgeway.exchange import Event
from edgeway.gateway import events
from schemas.messages import Claim, Failure, Request, Result
from streams.claims import Objects, open_store
from streams.settings import Settings
from tests.edgeway.gateway.test_route import never
from tests.helpers.gateway import Served, gateway


def told(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of a stream."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            assert lines.keys() == {"id", "event", "data"}
            found.append((lines["event"], json.loads(lines["data"])))
    return found


async def test_an_answer_is_there_for_whoever_knows_the_id() -> None:
    async with gateway() as served:
        sent = (await served.route({"task": "summarize", "text": "a", "id": "r 1/2?"})).json()
        found = await served.client.get("/requests/r%201%2F2%3F")
        assert (found.status_code, found.json()) == (200, sent)
        packed = await served.client.get("/requests/r%201%2F2%3F", headers={"Accept": "application/msgpack"})
        assert msgspec.msgpack.decode(packed.content, type=Result).output == {"text": "a"}
        missing = await served.client.get("/requests/other")
        assert (missing.status_code, missing.json()["id"]) == (404, "other")
        for path in ("/requests/", "/requests/a/b", "/requests/a/events/b", f"/requests/{'x' * 200}"):
            assert (await served.client.get(path)).status_code in (400, 404), path
        assert (await served.client.put("/requests/a")).headers["allow"] == "GET, DELETE"


async def test_an_error_is_an_answer_too() -> None:
    async def failing(request: Request) -> Result:
        return Result(id="r", status="error", error=Failure(code="bad_input", message="no"))

    async with gateway(failing) as served:
        assert (await served.route({"task": "summarize", "id": "r"})).status_code == 422
        found = await served.client.get("/requests/r")
        assert (found.status_code, found.json()["error"]["code"]) == (200, "bad_input")


async def test_another_replica_knows_by_the_location_that_a_request_is_open() -> None:
    async with gateway(never) as served:
        where = (
            await served.route({"task": "voice", "id": "r"}, headers={"Prefer": "respond-async"})
        ).headers
    async with gateway() as other:
        assert (await other.client.get("/requests/r")).status_code == 404
        assert (await other.client.get(where["location"])).status_code == 202
        waiting = asyncio.create_task(other.client.get(where["location"], headers={"Prefer": "wait=5"}))
        await asyncio.sleep(0.05)
        other.exchange.reply(Result(id="r", status="ok", output=1))
        assert (await waiting).json()["output"] == 1
        gone = f"/requests/r2?until={int(time.time() * 1000) - 1}"
        assert (await other.client.get(gone)).status_code == 404
        forged = f"/requests/r2?until={int(time.time() * 1000) + 86_400_000}"
        assert (await other.client.get(forged)).status_code == 404
        assert (await other.client.get("/requests/r2?until=soon")).status_code == 400


async def test_what_is_open_says_all_that_its_answer_needs_in_any_language() -> None:
    """Whoever follows a Location gets one that leads on: with its tenant, and by when it is answered."""
    async with gateway(never) as served:
        body, later = {"task": "voice", "id": "é漢/x ?", "tenant": "acme"}, {"Prefer": "respond-async"}
        where = (await served.route(body, headers=later)).headers["location"]
    async with gateway() as other:
        for _ in range(3):
            answer = await other.client.get(where)
            assert (answer.status_code, answer.headers["location"]) == (202, where)
            where = answer.json()["location"]
        for part in ("report", "output"):
            place = where.replace("?", f"/{part}?")
            assert (await other.client.get(place)).headers["location"] == place
        other.exchange.reply(Result(id="é漢/x ?", tenant="acme", status="ok", output=1))
        assert (await other.client.get(where)).json()["output"] == 1


async def test_a_request_is_cancelled_once() -> None:
    async with gateway(never) as served:
        waiting = asyncio.create_task(served.route({"task": "summarize", "id": "r", "tenant": "acme"}))
        await asyncio.sleep(0.05)
        done = await served.client.delete("/requests/r?tenant=acme")
        assert (done.status_code, done.json()) == (202, {"id": "r", "status": "cancelling"})
        assert ((await waiting).status_code, (await waiting).json()["code"]) == (409, "cancelled")
        assert [(each.id, each.tenant) for each in served.exchange.cancelled] == [("r", "acme")]
        again = await served.client.delete("/requests/r?tenant=acme")
        assert (again.status_code, again.json()["error"]["code"]) == (200, "cancelled")
        assert len(served.exchange.cancelled) == 1
        assert (await served.client.delete("/requests/elsewhere")).status_code == 202


async def scripted(served: Served) -> None:
    await asyncio.sleep(0.02)
    served.exchange.tell("r", "planned", {"task": "summarize"})
    served.exchange.tell("r", "partial", {"step": "summarize", "side": "local"})
    served.exchange.tell("r", "escalated", {"step": "summarize", "from": "local", "to": "cloud"})
    await asyncio.sleep(0.02)
    served.exchange.reply(Result(id="r", status="ok", output=1))


async def test_events_of_a_request_that_is_sent_with_them() -> None:
    async with gateway(never) as served:
        script = asyncio.create_task(scripted(served))
        accept = {"Accept": "text/event-stream"}
        answer = await served.route({"task": "summarize", "id": "r"}, headers=accept)
        await script
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        kinds = [kind for kind, _ in told(answer.text)]
        assert kinds == ["accepted", "planned", "partial", "escalated", "result"]
        assert told(answer.text)[-1][1]["output"] == 1
        assert served.gateway.lobby.open == 0

        later = await served.client.get("/requests/r/events")
        assert told(later.text) == told(answer.text)
        last = [line for line in later.text.splitlines() if line.startswith("id: ")][-1].removeprefix("id: ")
        rest = await served.client.get("/requests/r/events", headers={"Last-Event-ID": last})
        assert [kind for kind, _ in told(rest.text)][-1] == "result"
        assert len(told(rest.text)) < len(kinds)
        assert (await served.client.get("/requests/unknown/events")).status_code == 404


async def test_a_silent_stream_has_comments(monkeypatch: Any) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.02)
    async with gateway(never) as served:
        waiting = asyncio.create_task(
            served.route({"task": "summarize", "id": "r"}, headers={"Accept": "text/event-stream"})
        )
        await asyncio.sleep(0.15)
        served.exchange.reply(Result(id="r", status="ok"))
        assert (await waiting).text.count("\n:\n") >= 2


async def test_a_stream_that_cannot_go_on_ends() -> None:
    async with gateway(never) as served:

        async def broken(*_: Any, **__: Any) -> Any:
            yield Event("accepted", 1, {})
            raise ExchangeFull(1)

        served.exchange.events = broken  # type: ignore[method-assign]
        answer = await served.route({"task": "summarize"}, headers={"Accept": "text/event-stream"})
        assert [kind for kind, _ in told(answer.text)] == ["accepted"]
        assert served.gateway.lobby.open == 0


async def test_large_outputs_have_a_bound_together(tmp_path: Any) -> None:
    store = open_store(tmp_path.as_uri())
    claim = await store.put(b"x" * 700_000, content_type=None, tenant=None)
    settings = Settings(gateway_bytes=1024 * 1024)
    async with gateway(never, objects=Objects(local=store), settings=settings) as served:
        served.exchange.reply(Result(id="big", status="ok", claim=claim))
        for _ in range(3):
            done = await served.client.get("/requests/big/output")
            assert (len(done.content), done.headers["content-length"]) == (700_000, "700000")
        assert served.gateway.lobby.bytes == served.gateway.lobby.open == 0
        with_it = served.gateway.lobby.seat()
        with_it.add(500_000)
        assert (await served.client.get("/requests/big/output")).status_code == 503
        with_it.leave()
    await store.close()


async def test_outputs_alone(tmp_path: Any) -> None:
    store = open_store(tmp_path.as_uri())
    claim = await store.put(b"\x89PNG", content_type="image/png", tenant="acme")
    foreign = await store.put(b"x", content_type=None, tenant="other")
    async with gateway(never, objects=Objects(local=store)) as served:
        tell = served.exchange.reply
        tell(Result(id="big", tenant="acme", status="ok", claim=claim))
        tell(Result(id="not-mine", tenant="acme", status="ok", claim=foreign))
        tell(
            Result(
                id="gone",
                tenant="acme",
                status="ok",
                claim=Claim(**{**_of(claim), "dataref": claim.dataref + "x"}),
            )
        )
        tell(Result(id="small", status="ok", output={"a": 1}))
        tell(Result(id="raw", status="ok", output=b"\x00"))
        big = await served.client.get("/requests/big/output?tenant=acme")
        assert (big.status_code, big.content, big.headers["content-type"]) == (200, b"\x89PNG", "image/png")
        assert big.headers["content-security-policy"].startswith("sandbox")
        for name in ("not-mine", "gone"):
            away = await served.client.get(f"/requests/{name}/output?tenant=acme")
            assert (away.status_code, away.json()["code"]) == (502, "object_missing")
        assert (await served.client.get("/requests/small/output")).json() == {"a": 1}
        packed = await served.client.get("/requests/small/output", headers={"Accept": "application/msgpack"})
        assert packed.headers["content-type"] == "application/msgpack"
        assert msgspec.msgpack.decode(packed.content) == {"a": 1}
        assert (await served.client.get("/requests/raw/output")).content == b"\x00"
        assert (await served.client.get("/requests/big/output")).status_code == 404, "another tenant's"
    await store.close()


def _of(claim: Claim) -> dict[str, Any]:
    return dict(msgspec.structs.asdict(claim))


async def test_reports() -> None:
    async with gateway() as served:
        await served.route({"task": "summarize", "id": "r", "text": "<script>x</script>"})
        text = await served.client.get("/requests/r/report")
        assert text.headers["content-type"].startswith("text/markdown")
        page = await served.client.get("/requests/r/report", headers={"Accept": "text/html"})
        assert page.headers["content-type"].startswith("text/html")
        assert "<script>x" not in page.text
        assert page.headers["content-security-policy"].startswith("sandbox")
        claim = Claim(dataref="file:///a/b", sha256="0" * 64, size=9)
        served.exchange.reply(Result(id="big", tenant="acme", status="ok", claim=claim))
        apart = await served.client.get("/requests/big/report?tenant=acme")
        assert "/requests/big/output?tenant=acme" in apart.text
        assert (await served.client.get("/requests/none/report")).status_code == 404
