"""The original's `image_captioning` on the library's baseline: what that is unsure of goes to the URL."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.caller import Caller
from tests.helpers.endpoint import Endpoint, endpoint
from tests.helpers.kafka import Kafka
from tests.helpers.roles import Role, command

pytestmark = pytest.mark.integration

PHOTOS = Path(__file__).parents[1] / "data" / "vision"


def photo(name: str) -> str:
    return base64.b64encode((PHOTOS / name).read_bytes()).decode()


@pytest.fixture
def server() -> Iterator[Endpoint]:
    yield from endpoint()


@pytest.fixture
def roles(own_kafka: Kafka, server: Endpoint, tmp_path: Path) -> Iterator[list[Role]]:
    rules = tmp_path / "rules.json"
    # On a busy machine a model that takes its time is not silent.
    patient = {"deadline_ms": 60_000, "slow_ms": 50_000}
    task = {"local_threshold": 0.6, "fallback_url": server.url + "/vision/caption", **patient}
    said = {"tasks": {"image_captioning": task}, "privacy": {"detectors": []}}
    rules.write_text(json.dumps(said), encoding="utf-8")
    about = ("--kafka", own_kafka.bootstrap, "--rules", str(rules), "--log-format", "text")
    done = command("topics", "apply", *about[:4], "--partitions", "1", "--fix")
    assert done.returncode == 0, done.stdout + done.stderr
    local = ("worker", "--capabilities", "local/image_captioning", "--app", "workers.library")
    commands = [local, ("worker", "--side", "cloud"), ("router",), ("aggregator",)]
    started = [Role(tmp_path, *words, *about).start() for words in commands]
    try:
        for role in started:
            role.wait_ready()
        yield started
    finally:
        for role in started:
            role.kill()


async def test_a_sure_caption_stays_and_an_unsure_one_goes_on(
    own_kafka: Kafka, roles: list[Role], server: Endpoint
) -> None:
    async with Caller(own_kafka.bootstrap) as caller:
        answer = await caller.ask({"task": "image_captioning", "image": photo("cat.jpg")})
        assert answer.body["output"]["caption"].startswith("a photo of a cat"), answer.body
        assert answer.body["sides"] == {"image_captioning": "local"}
        assert server.calls == []

        answer = await caller.ask({"task": "image_captioning", "image": photo("rocket.jpg")})
        assert answer.body["output"] == {"caption": "a crayfish"}
        assert answer.body["sides"] == {"image_captioning": "cloud"}
        (call,) = server.calls
        assert call.path == "/vision/caption"
        assert json.loads(call.body)["image"] == photo("rocket.jpg")

        answer = await caller.ask(
            {"task": "image_captioning", "image": photo("rocket.jpg"), "privacy": "high"}
        )
        assert answer.body["output"]["unsure"] is True
        assert answer.body["output"]["caption"] is None
        assert len(server.calls) == 1
