"""What an operator does first: build the image, start the compose file, send a request from this host."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from schemas import topics
from schemas.claims import INLINE_BYTES
from schemas.codec import decode
from schemas.messages import Result
from tests.helpers.docker import ROOT, build_image, need_docker, run
from tests.helpers.redis import free_port

pytestmark = [pytest.mark.integration, pytest.mark.containers, pytest.mark.timeout(900)]

START_S = 180
ANSWER_S = 60.0
UNPRIVILEGED = "10001"


class Stack:
    """The compose file under a project name, a port and an image tag of its own."""

    def __init__(self) -> None:
        self.name = f"edgeway-test-{secrets.token_hex(4)}"
        self.image = f"{self.name}:latest"
        self.port, self.http_port = free_port(), free_port()
        self._env = {"EDGEWAY_IMAGE": self.image, "EDGEWAY_KAFKA_PORT": str(self.port)}
        self._env["EDGEWAY_HTTP_PORT"] = str(self.http_port)

    @property
    def kafka(self) -> str:
        return f"localhost:{self.port}"

    def compose(self, *words: str, timeout_s: float = 120) -> str:
        return run(["docker", "compose", "-p", self.name, *words], timeout_s=timeout_s, env=self._env)

    def start(self) -> None:
        build_image(self.image, ROOT / "deploy" / "docker" / "Dockerfile")
        try:
            up = ["up", "-d", "--wait", "--wait-timeout", str(START_S), "--no-build"]
            self.compose(*up, timeout_s=START_S + 60)
        except AssertionError as error:
            pytest.fail(
                f"{error}\n{self.compose('ps', '-a')}\n{self.compose('logs', '--no-color', '--tail', '40')}"
            )

    def remove(self) -> None:
        self.compose("down", "-v", "--timeout", "5", "--remove-orphans")
        subprocess.run(["docker", "rmi", "-f", self.image], capture_output=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    need_docker()
    stack = Stack()
    try:
        stack.start()
        yield stack
    finally:
        stack.remove()


async def answer(kafka: str, request: dict[str, object]) -> Result:
    """Send one request as plain JSON, without key or headers, and wait for the result of its id."""
    consumer = AIOKafkaConsumer(topics.RESULTS, bootstrap_servers=kafka, auto_offset_reset="earliest")
    producer = AIOKafkaProducer(bootstrap_servers=kafka, acks="all")
    async with asyncio.timeout(ANSWER_S), consumer, producer:
        await producer.send_and_wait(topics.REQUESTS, json.dumps(request).encode())
        async for record in consumer:
            result = decode(record.value, Result)
            if result.id == request["id"]:
                return result
    raise AssertionError("the consumer ended by itself")


async def test_a_request_sent_from_this_host_is_answered(stack: Stack) -> None:
    result = await answer(stack.kafka, {"id": "from-the-host", "task": "intent", "text": "where is my card"})
    assert (result.status, result.error) == ("ok", None)
    assert result.decisions, "the answer says why it ran where it ran"


async def test_the_edge_and_the_cloud_worker_both_have_their_part(stack: Stack) -> None:
    text = "Acme reports revenue of 120 million USD for 2024, against 100 million USD in 2023."
    request = {"id": "two-sided", "query": "financial report", "text": text}
    result = await answer(stack.kafka, request)
    assert (result.status, result.error) == ("ok", None)
    assert set(result.sides.values()) == {"local", "cloud"}


def test_a_request_over_http_from_this_host_and_from_inside(stack: Stack) -> None:
    body = {"task": "intent", "text": "where is my card"}
    reply = httpx.post(f"http://localhost:{stack.http_port}/route", json=body, timeout=60)
    assert (reply.status_code, reply.json()["status"]) == (200, "ok"), reply.text
    url = "http://hybrid-gateway:80/route"
    ask = f"import urllib.request as u; print(u.urlopen('{url}', BODY).read().decode())"
    words = [
        "exec",
        "-T",
        "worker-edge",
        "python",
        "-c",
        ask.replace("BODY", repr(json.dumps(body).encode())),
    ]
    assert json.loads(stack.compose(*words))["status"] == "ok"


def test_a_file_too_large_for_a_record_goes_by_the_volume_that_all_share(stack: Stack) -> None:
    text = ("where is my card? " * 20_000).encode()
    assert len(text) > INLINE_BYTES
    url = f"http://localhost:{stack.http_port}/route"
    form = {"data": {"task": "intent"}, "files": {"text": ("question.txt", text, "text/plain")}}
    reply = httpx.post(url, **form, timeout=60)
    # The worker has read it: nobody else counts its characters.
    assert (reply.status_code, reply.json()["code"]) == (422, "bad_input"), reply.text
    assert f"{len(text)} characters" in reply.json()["detail"]


@pytest.mark.parametrize("service", ["router", "aggregator", "worker-edge", "worker-cloud", "hybrid-gateway"])
def test_roles_run_without_privileges_and_report_their_health(stack: Stack, service: str) -> None:
    assert stack.compose("exec", "-T", service, "id", "-u").strip() == UNPRIVILEGED
    (container,) = stack.compose("ps", "-q", service).split()
    state = run(["docker", "inspect", "--format", "{{.State.Health.Status}}", container])
    assert state.strip() == "healthy"


def test_a_stopped_role_ends_in_order(stack: Stack) -> None:
    (container,) = stack.compose("ps", "-q", "worker-cloud").split()
    stack.compose("stop", "--timeout", "15", "worker-cloud")
    assert run(["docker", "inspect", "--format", "{{.State.ExitCode}}", container]).strip() == "0"
