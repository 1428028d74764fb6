"""The original's `image_captioning` as it stands: a weak local answer goes to the `fallback_url`, and what is
private does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.caller import Caller
from tests.helpers.endpoint import Endpoint, Reply, endpoint
from tests.helpers.kafka import Kafka
from tests.helpers.roles import Role, command

pytestmark = pytest.mark.integration

URL = "https://example.com/cat.png"
APP = """
from workers.backends.function import capability

@capability("local/image_captioning", calibrated=True)
def caption(image_url: str, sure: float = 0.3):
    return {"caption": "something"}, sure
"""


@pytest.fixture
def server() -> Iterator[Endpoint]:
    yield from endpoint()


@pytest.fixture
def rules(tmp_path: Path, server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAPTION_KEY", "key-of-mine")
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    task = {
        "local_threshold": 0.7,
        "fallback_url": server.url + "/vision/caption?key=word",
        "fallback_headers": {"X-Key": "CAPTION_KEY"},
    }
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"image_captioning": task}), encoding="utf-8")
    return path


@pytest.fixture
def roles(own_kafka: Kafka, rules: Path, tmp_path: Path) -> Iterator[list[Role]]:
    about = ("--kafka", own_kafka.bootstrap, "--rules", str(rules), "--log-format", "text")
    done = command("topics", "apply", *about[:4], "--partitions", "1", "--fix")
    assert done.returncode == 0, done.stdout + done.stderr
    local = ("worker", "--side", "local", "--app", str(tmp_path / "app.py"))
    commands = [local, ("worker", "--side", "cloud"), ("router",), ("aggregator",)]
    started = [Role(tmp_path, *words, *about).start() for words in commands]
    try:
        for role in started:
            role.wait_ready()
        yield started
    finally:
        for role in started:
            role.kill()


async def test_the_original_entry_end_to_end(
    own_kafka: Kafka, roles: list[Role], server: Endpoint, rules: Path
) -> None:
    image = {"task": "image_captioning", "image_url": URL}
    async with Caller(own_kafka.bootstrap) as caller:
        answer = await caller.ask(image | {"sure": 0.9})
        assert answer.body["output"] == {"caption": "something"}
        assert server.calls == []

        answer = await caller.ask(image | {"params": {"length": 40}})
        assert answer.body["output"] == {"caption": "a crayfish"}
        assert answer.body["sides"] == {"image_captioning": "cloud"}
        (call,) = server.calls
        assert call.path == "/vision/caption?key=word"
        assert json.loads(call.body) == {"image_url": URL, "params": {"length": 40}}
        assert call.headers["x-key"] == "key-of-mine"
        assert call.headers["idempotency-key"].endswith("/image_captioning/cloud/1")

        answer = await caller.ask(image | {"privacy": "high"})
        assert answer.body["output"] == {"caption": "something"}
        assert len(server.calls) == 1

        server.reply = lambda _: Reply(500, b"secret words")
        answer = await caller.ask(image)
        assert answer.body["output"] == {"caption": "something"}
        assert answer.body["approximate"] is True
        assert len(server.calls) == 2
    for role in roles:
        assert "key=word" not in role.said
        assert "key-of-mine" not in role.said
        assert "secret words" not in role.said
