"""The gateway as it is run: beside all roles, alone as a replica, killed while callers wait."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from edgeway.gateway.tenants import hash_of
from tests.helpers.endpoint import Endpoint, Reply, endpoint
from tests.helpers.roles import Role

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

CAT = Path(__file__).parents[1] / "data" / "vision" / "cat.jpg"
APP = '''
import os, time
from workers.sdk import capability

@capability("local/test/slow", max_batch=1)
def slow(key: str, s: float) -> str:
    """Says so, and takes its time."""
    with open(os.environ["TEST_RUNS"], "a") as runs:
        runs.write(key + "\\\\n")
    time.sleep(s)
    return key

@capability("local/test/size")
def size(data: bytes) -> int:
    """How many bytes there are."""
    return len(data)

@capability("local/test/long")
def long(n: int) -> bytes:
    """So many bytes."""
    return b"x" * n
'''


@dataclass
class Stack:
    """All roles in one process with a gateway, and a gateway beside it."""

    up: Role
    replica: Role
    images: Endpoint
    runs: Path

    def url(self, path: str, role: Role | None = None) -> str:
        return f"http://127.0.0.1:{(role or self.up).port}{path}"

    def ran(self, key: str) -> int:
        return self.runs.read_text().splitlines().count(key) if self.runs.exists() else 0


@pytest.fixture(scope="module")
def stack(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("gateway")
    with contextlib.contextmanager(endpoint)() as images:
        runs = folder / "runs"
        app = folder / "gateway_app.py"
        app.write_text(
            APP.replace('os.environ["TEST_RUNS"]', repr(str(runs))).replace("\\\\n", "\\n"), encoding="utf-8"
        )
        rules = folder / "rules.json"
        said = {
            "tasks": {
                "image_captioning": {"side": "local", "slow_ms": 50_000, "deadline_ms": 60_000},
                "slow": {"capability": "test/slow", "side": "local", "slow_ms": 50_000},
                "size": {"capability": "test/size", "side": "local"},
                "long": {"capability": "test/long", "side": "local"},
            },
            "apps": [str(app), "workers.library"],
            "hosts": [images.url.removeprefix("http://")],
            "privacy": {"detectors": []},
            "tenants": {"acme": {"max_open": 1}},
            "builtin": False,
        }
        rules.write_text(json.dumps(said), encoding="utf-8")
        objects = (folder / "objects").as_uri()
        about = ("--kafka", bootstrap, "--rules", str(rules), "--log-format", "text", "--objects", objects)
        wanted = "local/image_captioning,local/test/slow,local/test/size,local/test/long"
        up = Role(folder, "up", *about, "--partitions", "2", "--capabilities", wanted)
        replica = Role(folder, "gateway", *about)
        try:
            up.start().wait_ready()
            replica.start().wait_ready()
            yield Stack(up, replica, images, runs)
            assert replica.terminate() == 0, replica.said
            assert up.terminate() == 0, up.said
        finally:
            up.kill()
            replica.kill()


def curl(*words: str) -> tuple[int, dict[str, Any]]:
    program = shutil.which("curl")
    assert program is not None
    shown = [program, "-sS", "--max-time", "60", "-w", "\\n%{http_code}", *words]
    done = subprocess.run(shown, capture_output=True, text=True, check=True)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body)


def test_the_originals_second_curl(stack: Stack) -> None:
    """Word for word, but for where `hybrid-gateway` is, and for the dots."""
    stack.images.reply = lambda _: Reply(200, CAT.read_bytes(), {"content-type": "image/jpeg"})
    to = ["--connect-to", f"hybrid-gateway:80:127.0.0.1:{stack.up.port}"]
    call = [*to, "-X", "POST", "http://hybrid-gateway:80/route", "-d"]
    status, said = curl(
        *call,
        '{"task": "image_captioning", "image_url": "URL"}'.replace("URL", stack.images.url + "/cat.jpg"),
    )
    assert (status, said["status"]) == (200, "ok"), said
    assert "cat" in said["output"]["caption"]
    assert said["decisions"]
    status, said = curl(*call, '{"task": "image_captioning", "image_url": "..."}')
    assert (status, said["field"]) == (400, "image_url")
    assert said["detail"].startswith("image_url: ")


async def test_any_replica_answers(stack: Stack) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        body = {"task": "slow", "key": "replica", "s": 0.6, "id": uuid.uuid4().hex}
        later = await client.post(stack.url("/route"), json=body, headers={"Prefer": "respond-async"})
        assert (later.status_code, later.headers["retry-after"]) == (202, "1"), later.text
        where = later.headers["location"]
        elsewhere = stack.url(where, stack.replica)
        assert (await client.get(elsewhere)).status_code == 202
        done = await client.get(elsewhere, headers={"Prefer": "wait=20"})
        assert (done.status_code, done.json()["output"]) == (200, "replica")
        both = [await client.get(stack.url(where, role)) for role in (stack.up, stack.replica)]
        assert both[0].json() == both[1].json()
        again = await client.post(stack.url("/route", stack.replica), json=body)
        assert again.json() == done.json()
        assert stack.ran("replica") == 1
        assert (await client.get(stack.url("/requests/none"))).status_code == 404


async def test_events_come_from_a_replica_that_it_was_not_sent_through(stack: Stack) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        accept = {"Accept": "text/event-stream"}
        body = {"task": "slow", "key": "events", "s": 0.5, "id": uuid.uuid4().hex}
        own = await client.post(stack.url("/route"), json=body, headers=accept)
        kinds = [line.removeprefix("event: ") for line in own.text.splitlines() if line.startswith("event: ")]
        assert kinds == ["accepted", "planned", "partial", "result"], own.text
        other = {**body, "id": uuid.uuid4().hex}
        later = await client.post(stack.url("/route"), json=other, headers={"Prefer": "respond-async"})
        path, _, query = later.headers["location"].partition("?")
        seen = await client.get(stack.url(f"{path}/events?{query}", stack.replica))
        assert "event: planned" in seen.text
        assert "event: result" in seen.text


async def test_a_cancelled_request_that_has_not_begun_does_not(stack: Stack) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        route = stack.url("/route", stack.replica)
        keys = [uuid.uuid4().hex for _ in range(3)]
        calls = {
            key: asyncio.create_task(
                client.post(route, json={"task": "slow", "key": key, "s": 1.0, "id": key})
            )
            for key in keys
        }
        while not any(map(stack.ran, keys)):
            await asyncio.sleep(0.02)
        last = [key for key in keys if not stack.ran(key)][-1]
        assert (await client.delete(stack.url(f"/requests/{last}"))).status_code == 202
        cancelled = await calls.pop(last)
        assert (cancelled.status_code, cancelled.json()["code"]) == (409, "cancelled")
        assert [(await call).status_code for call in calls.values()] == [200, 200]
        await asyncio.sleep(0.3)
        assert stack.ran(last) == 0


async def test_a_killed_gateways_callers_try_again_and_nothing_runs_twice(stack: Stack) -> None:
    keys = [uuid.uuid4().hex for _ in range(3)]

    async def insist(client: httpx.AsyncClient, key: str) -> dict[str, Any]:
        body = {"task": "slow", "key": key, "s": 0.8}
        for _ in range(200):
            with contextlib.suppress(httpx.TransportError):
                url = stack.url("/route", stack.replica)
                answer = await client.post(url, json=body, headers={"Idempotency-Key": key})
                if answer.status_code != 503:
                    return dict(answer.json())
            await asyncio.sleep(0.1)
        raise AssertionError(f"no answer:\n{stack.replica.said}")

    async with httpx.AsyncClient(timeout=30) as client:
        calls = [asyncio.create_task(insist(client, key)) for key in keys]
        await asyncio.sleep(0.5)
        stack.replica.kill()
        stack.replica.start()
        answers = await asyncio.wait_for(asyncio.gather(*calls), 60)
    assert [answer["output"] for answer in answers] == keys
    assert [stack.ran(key) for key in keys] == [1, 1, 1]


async def test_large_uploads_and_large_outputs(stack: Stack) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        files = {"data": ("a.bin", b"x" * 3_000_000, "application/octet-stream")}
        answer = await client.post(stack.url("/route"), data={"task": "size"}, files=files)
        assert (answer.status_code, answer.json()["output"]) == (200, 3_000_000), answer.text
        large = await client.post(stack.url("/route"), json={"task": "long", "n": 3_000_000, "id": "long"})
        assert large.status_code == 200, large.text
        for role in (stack.up, stack.replica):
            whole = await client.get(stack.url("/requests/long/output", role))
            assert (whole.status_code, len(whole.content)) == (200, 3_000_000), whole.text[:200]


async def test_single_capabilities_and_limits(stack: Stack) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        one = await client.post(stack.url("/local/test/slow"), json={"key": "one", "s": 0.0})
        assert (one.status_code, one.json()["output"], one.json()["capability"]) == (
            200,
            "one",
            "local/test/slow",
        )
        assert (await client.post(stack.url("/cloud/test/nothing"), json={})).status_code == 404
        wrong = await client.post(stack.url("/local/test/slow"), json={"key": 1})
        assert wrong.status_code == 422, wrong.text
        body = {"task": "slow", "key": "limit", "s": 0.5, "tenant": "acme"}
        both = await asyncio.gather(*(client.post(stack.url("/route"), json=body) for _ in range(2)))
        assert sorted(answer.status_code for answer in both) == [200, 429]
        schema = (await client.get(stack.url("/openapi.json", stack.replica))).json()
        body_schema = schema["paths"]["/local/test/slow"]["post"]["requestBody"]["content"][
            "application/json"
        ]
        assert "key" in body_schema["schema"]["anyOf"][0]["properties"], "from the workers' heartbeats"
        shown = (await client.get(stack.url("/metrics"))).text
        assert 'edgeway_gateway_requests_total{route="route",status="429"}' in shown
        assert "edgeway_gateway_open" in shown
    assert f"curl -X POST http://127.0.0.1:{stack.up.port}/route" in stack.up.said


def test_a_stop_finishes_those_who_wait(stack: Stack, bootstrap: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    token = {
        "tenants": {"acme": {"tokens": [hash_of("t")]}},
        "tasks": {"slow": {"capability": "test/slow", "side": "local"}},
    }
    rules.write_text(json.dumps(token), encoding="utf-8")
    role = Role(tmp_path, "gateway", "--kafka", bootstrap, "--rules", str(rules), "--log-format", "text")
    try:
        role.start().wait_ready()
        url, headers = f"http://127.0.0.1:{role.port}/route", {"Authorization": "Bearer t"}
        assert httpx.post(url, json={"task": "slow"}).status_code == 401

        async def run() -> httpx.Response:
            async with httpx.AsyncClient(timeout=30) as client:
                body = {"task": "slow", "key": "stop", "s": 1.2}
                waiting = asyncio.create_task(client.post(url, json=body, headers=headers))
                await asyncio.sleep(0.5)
                code = asyncio.create_task(asyncio.to_thread(role.terminate))
                answer = await waiting
                assert await code == 0, role.said
                return answer

        answer = asyncio.run(run())
        assert (answer.status_code, answer.json()["tenant"]) == (200, "acme")
        assert answer.headers["connection"] == "close"
    finally:
        role.kill()
