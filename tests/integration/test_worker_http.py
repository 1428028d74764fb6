"""A worker that is asked over HTTP, as it is run: alone, and beside Kafka."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from edgeway.cli import main
from tests.helpers.caller import Caller
from tests.helpers.faulty_server import faulty
from tests.helpers.inference_server import rest_answer
from tests.helpers.kafka import Kafka
from tests.helpers.redis import RedisServer, free_port
from tests.helpers.roles import Role, command, edgeway, fetch

APP = '''
import time
from pathlib import Path
from workers.sdk import capability

def load() -> None:
    time.sleep(LOAD_S)

@capability("local/test/double", max_batch=16, load=load)
def double(n: int) -> int:
    """Twice a number."""
    return 2 * n

@capability("local/test/slow", max_batch=8, batch=True)
def slow(rows):
    time.sleep(rows[0].inputs["s"])
    return [len(rows) for _ in rows]

@capability("local/test/secret")
def secret(text: str) -> str:
    raise RuntimeError(text)
'''
REMOTE = """
from workers.backends.open_inference import OpenInferenceBackend
away = OpenInferenceBackend("cloud/math/double", url="URL", model="double", ready_s=0.2)
"""
SECRET = "4111-secret"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "served_app.py"
    path.write_text(APP.replace("LOAD_S", "0"), encoding="utf-8")
    return path


def started(folder: Path, *words: str) -> Role:
    return Role(folder, "worker", "--log-format", "text", *words).start()


@pytest.fixture
def alone(app: Path, tmp_path: Path) -> Iterator[Role]:
    role = started(tmp_path, "--app", str(app), "--no-kafka", "--hang-s", "4")
    try:
        yield role.wait_ready()
    finally:
        role.kill()


def url(role: Role, path: str) -> str:
    return f"http://127.0.0.1:{role.port}{path}"


def test_the_originals_first_curl(tmp_path: Path) -> None:
    """Word for word, but for where `local-nlp` is: that is a host's name of the original's deployment."""
    curl = shutil.which("curl")
    assert curl is not None
    named = ("--app", "workers.library", "--capabilities", "local/nlp/summarize")
    role = started(tmp_path, *named, "--no-kafka")
    text = "The council met on Monday. It voted on the new bridge. The bridge will cost two million euros."
    try:
        role.wait_ready()
        words = ["-X", "POST", "http://local-nlp/summarize", "-H", "Content-Type: application/json"]
        to = ["--connect-to", f"local-nlp:80:127.0.0.1:{role.port}"]
        done = subprocess.run(
            [curl, "-sS", "--max-time", "20", *to, *words, "-d", json.dumps({"text": text})],
            capture_output=True,
            text=True,
            check=True,
        )
        told = json.loads(done.stdout)
        assert told["capability"] == "local/nlp/summarize"
        assert "bridge" in json.dumps(told["output"])
        assert role.terminate() == 0
    finally:
        role.kill()


def test_a_worker_alone_answers_and_says_nothing_of_what_it_was_asked(alone: Role) -> None:
    assert httpx.post(url(alone, "/double"), json={"n": 4}).json()["output"] == 8
    assert httpx.post(url(alone, "/secret"), json={"text": SECRET}).status_code == 500
    assert httpx.post(url(alone, f"/{SECRET}"), json={"text": SECRET}).status_code == 404
    assert fetch(alone.port, "/readyz") == (200, '{"ready":true}')
    with socket.create_connection(("127.0.0.1", alone.port), 5) as odd:
        odd.sendall(b"GARBAGE\r\n\r\n")
        assert odd.recv(100).startswith(b"HTTP/1.1 400")
    assert alone.terminate() == 0
    (told,) = (line for line in alone.said.splitlines() if "Invalid HTTP request" in line)
    assert "uvicorn" in told, "as all other lines of the log are"
    assert "POST /local/test/double" in alone.said
    assert SECRET not in alone.said


def test_a_service_that_is_away_keeps_nothing_else_from_being_served(app: Path, tmp_path: Path) -> None:
    with faulty(rest_answer) as server:
        pass
    with app.open("a", encoding="utf-8") as file:
        file.write(REMOTE.replace("URL", server.url))
    role = started(tmp_path, "--app", str(app), "--no-kafka").wait_ready()
    try:
        status, body = fetch(role.port, "/readyz")
        assert status == 200
        assert "cannot be reached" in json.loads(body)["waits_for"]["cloud/math/double"]
        assert httpx.post(url(role, "/local/test/double"), json={"n": 4}).json()["output"] == 8
        away = httpx.post(url(role, "/math/double"), json={"x": [1, 2]})
        assert (away.status_code, away.json()["code"]) == (500, "backend_error")
        server.start()
        until = time.monotonic() + 20
        while fetch(role.port, "/readyz")[1] != '{"ready":true}':
            assert time.monotonic() < until, role.said
            time.sleep(0.1)
        assert httpx.post(url(role, "/math/double"), json={"x": [1, 2]}).json()["output"] == {"y": [2, 4]}
        assert role.terminate() == 0
    finally:
        server.stop()
        role.kill()


def test_what_was_accepted_is_answered_after_a_sigterm(alone: Role) -> None:
    async def ask() -> list[httpx.Response]:
        async with httpx.AsyncClient(timeout=30) as client:
            calls = [
                asyncio.create_task(client.post(url(alone, "/slow"), json={"s": 1.0})) for _ in range(12)
            ]
            await asyncio.sleep(0.5)
            assert not any(call.done() for call in calls)
            ended = asyncio.create_task(asyncio.to_thread(alone.terminate))
            await asyncio.sleep(0.3)
            late = await client.post(url(alone, "/slow"), json={"s": 1.0})
            assert (late.status_code, late.headers["retry-after"]) == (503, "1")
            assert fetch(alone.port, "/readyz")[0] == 503
            answers = await asyncio.gather(*calls)
            assert await ended == 0
            return answers

    assert [answer.status_code for answer in asyncio.run(ask())] == [200] * 12


def test_a_model_that_hangs_is_no_health_and_is_got_rid_of(alone: Role) -> None:
    asking = httpx.Client(timeout=0.2)
    with pytest.raises(httpx.TimeoutException):
        asking.post(url(alone, "/slow"), json={"s": 60.0})
    assert fetch(alone.port, "/healthz")[0] == 200
    until = time.monotonic() + 20
    while (found := fetch(alone.port, "/healthz"))[0] == 200 and time.monotonic() < until:
        time.sleep(0.1)
    assert found[0] == 503
    told = json.loads(found[1])
    assert (told["ok"], told["hung_s"] >= 2.0) == (False, True)
    # The others go on meanwhile.
    assert httpx.post(url(alone, "/double"), json={"n": 4}).json()["output"] == 8
    # Then it starts itself again.
    while "starting again" not in alone.said and time.monotonic() < until:
        time.sleep(0.1)
    assert "a model has been running for" in alone.said
    while fetch(alone.port, "/healthz")[0] == 503 and time.monotonic() < until:
        time.sleep(0.1)
    alone.wait_ready()
    assert httpx.post(url(alone, "/double"), json={"n": 5}).json()["output"] == 10


def test_a_worker_is_ready_once_its_models_are_loaded(app: Path, tmp_path: Path) -> None:
    app.write_text(APP.replace("LOAD_S", "1"), encoding="utf-8")
    role = started(tmp_path, "--app", f"{app}:double", "--no-kafka")
    try:
        until = time.monotonic() + 30
        while fetch(role.port, "/readyz")[0] == 0 and time.monotonic() < until:
            time.sleep(0.02)
        assert fetch(role.port, "/readyz")[0] == 503
        early = httpx.post(url(role, "/double"), json={"n": 1})
        assert (early.status_code, early.headers["retry-after"]) == (503, "1")
        role.wait_ready()
        assert httpx.post(url(role, "/double"), json={"n": 1}).json()["output"] == 2
    finally:
        role.kill()


def test_wrong_flags_are_told(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--app", str(app), "--no-kafka"]) == 2
    assert "--port" in capsys.readouterr().err
    assert main(["worker", "--app", f"{app}:absent", "--no-kafka", "--port", str(free_port())]) == 2
    assert "double, secret, slow can be served" in capsys.readouterr().err


def test_a_model_that_cannot_be_loaded_is_told_with_its_place(app: Path) -> None:
    app.write_text(APP.replace("time.sleep(LOAD_S)", 'raise OSError("no such model file")'), encoding="utf-8")
    done = edgeway("worker", "--app", str(app), "--no-kafka", "--port", str(free_port()))
    assert done.returncode == 2
    assert "test/double cannot be loaded: OSError: no such model file" in done.stderr
    assert f"{app}:7 in load" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_budget_holds_over_http_too(app: Path, tmp_path: Path, redis_server: RedisServer) -> None:
    rules = tmp_path / "rules.json"
    said = {
        "budget": {"per_day": 1.0},
        "prices": {"local/test/double": {"per_call": 0.6}},
        "tasks": {"double": {"capability": "test/double", "side": "local"}},
    }
    rules.write_text(json.dumps(said), encoding="utf-8")
    words = ("--app", f"{app}:double", "--no-kafka", "--rules", str(rules))
    counted = started(tmp_path, *words, "--redis", redis_server.url)
    ledgerless = started(tmp_path, *words)
    try:
        counted.wait_ready()
        paid, refused = (httpx.post(url(counted, "/double"), json={"n": 4}) for _ in range(2))
        assert (paid.status_code, paid.json()["cost"]) == (200, 0.6)
        assert (refused.status_code, refused.json()["code"]) == (402, "over_budget")
        ledgerless.wait_ready()
        assert httpx.post(url(ledgerless, "/double"), json={"n": 4}).status_code == 402
    finally:
        counted.kill()
        ledgerless.kill()


@pytest.mark.integration
async def test_kafka_and_http_share_one_worker(own_kafka: Kafka, app: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    step = {"capability": "test/double", "side": "local"}
    rules.write_text(json.dumps({"builtin": False, "tasks": {"double": step}}), encoding="utf-8")
    about = ("--kafka", own_kafka.bootstrap, "--rules", str(rules), "--log-format", "text")
    done = command("topics", "apply", *about[:4], "--partitions", "1", "--fix")
    assert done.returncode == 0, done.stdout + done.stderr
    commands = [("worker", "--app", str(app)), ("router",), ("aggregator",)]
    roles = [Role(tmp_path, *words, *about).start() for words in commands]
    worker = roles[0]
    try:
        for role in roles:
            role.wait_ready()
        async with Caller(own_kafka.bootstrap) as caller, httpx.AsyncClient(timeout=30) as client:
            asked = [caller.ask({"task": "double", "n": n}) for n in range(100)]
            called = [client.post(url(worker, "/double"), json={"n": n}) for n in range(100)]
            results, answers = await asyncio.gather(asyncio.gather(*asked), asyncio.gather(*called))
        assert [result.body["output"] for result in results] == [2 * n for n in range(100)]
        assert [answer.json()["output"] for answer in answers] == [2 * n for n in range(100)]
        health = json.loads(fetch(worker.port, "/healthz")[1])
        assert health["ok"]
        assert "edgeway.local.test.double" in " ".join(health["groups"])
        _listed(own_kafka.bootstrap)
        assert worker.terminate() == 0
    finally:
        for role in roles:
            role.kill()
    nobody = command("capabilities", "list", "--kafka", own_kafka.bootstrap)
    assert (nobody.returncode, "no worker beats" in nobody.stderr) == (5, True)


def _listed(kafka: str) -> None:
    """`edgeway capabilities` tells of the worker, from its heartbeats."""
    shown = command("capabilities", "list", "--kafka", kafka, "--json", "--wait", "10")
    assert shown.returncode == 0, shown.stderr
    (row,) = json.loads(shown.stdout)
    facts: dict[str, Any] = {"capability": "local/test/double", "workers": 1, "versions": ["1"]}
    assert {name: row[name] for name in facts} == facts
    page = command("capabilities", "show", "test/double", "--kafka", kafka)
    assert "Twice a number." in page.stdout
    assert "breaker: closed" in page.stdout
    absent = command("capabilities", "show", "test/absent", "--kafka", kafka)
    assert (absent.returncode, "local/test/double" in absent.stderr) == (5, True)
