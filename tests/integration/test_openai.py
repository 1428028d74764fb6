"""A task whose cloud side is a chat model behind an OpenAI-compatible API, llama.cpp's own server: what it
costs follows from its tokens, and the budget counts that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.helpers.caller import Caller
from tests.helpers.kafka import Kafka
from tests.helpers.redis import RedisServer
from tests.helpers.roles import Role, command
from tests.helpers.servers import LlamaServer

pytestmark = pytest.mark.integration

MAX_TOKENS = 16
PROMPT_PRICE, ANSWER_PRICE = 0.001, 0.002
APP = """
from workers.backends.function import capability
from workers.backends.openai import OpenAIBackend

@capability("local/nlp/say", calibrated=True)
def say(text: str):
    return {{"text": text}}, 0.3

chat = OpenAIBackend(
    "cloud/nlp/say", url="{url}", model="tiny", key_file="{key}", max_tokens={most}, max_prompt_bytes=700,
    input_per_1m_tokens=1000, output_per_1m_tokens=2000, logprobs=True, extra={{"ignore_eos": True}},
)
"""


@pytest.fixture
def rules(tmp_path: Path, llama_server: LlamaServer) -> Path:
    key = tmp_path / "key"
    key.write_text("word-of-mouth-4111")
    app = APP.format(url=llama_server.url, key=key, most=MAX_TOKENS)
    (tmp_path / "app.py").write_text(app, encoding="utf-8")
    said = {
        "tasks": {"say": {"capability": "nlp/say", "local_threshold": 0.7}},
        "budget": {"per_day": 2.0},
        "cache_s": 0,
    }
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    return path


@pytest.fixture
def roles(own_kafka: Kafka, redis_server: RedisServer, rules: Path, tmp_path: Path) -> Iterator[list[Role]]:
    kafka = ("--kafka", own_kafka.bootstrap, "--rules", str(rules))
    done = command("topics", "apply", *kafka, "--partitions", "1", "--fix")
    assert done.returncode == 0, done.stdout + done.stderr
    about = (*kafka, "--redis", redis_server.url, "--log-format", "text")
    app = ("--app", str(tmp_path / "app.py"))
    commands = [("worker", "--side", "local", *app), ("worker", "--side", "cloud", *app)]
    started = [Role(tmp_path, *words, *about).start() for words in (*commands, ("router",), ("aggregator",))]
    try:
        for role in started:
            role.wait_ready()
        yield started
    finally:
        for role in started:
            role.kill()


def prompt_tokens(server: LlamaServer, text: str) -> int:
    """As the server itself counts them."""
    asked = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 1}
    said = httpx.post(f"{server.url}/chat/completions", json=asked, timeout=10).json()
    return int(said["usage"]["prompt_tokens"])


async def test_a_request_is_answered_and_paid_by_its_tokens(
    own_kafka: Kafka, redis_server: RedisServer, llama_server: LlamaServer, roles: list[Role], rules: Path
) -> None:
    costs = []
    async with Caller(own_kafka.bootstrap) as caller:
        for word in ("cat", "dog"):
            answer = await caller.ask({"task": "say", "text": f"the {word} sat", "deadline_ms": 20_000})
            assert answer.status == "ok", answer.body
            assert answer.body["sides"] == {"say": "cloud"}
            assert answer.body["output"]["truncated"] is True
            prompt = prompt_tokens(llama_server, f"the {word} sat")
            costs.append(prompt * PROMPT_PRICE + MAX_TOKENS * ANSWER_PRICE)
            assert answer.body["cost"] == pytest.approx(costs[-1])
        answer = await caller.ask({"task": "say", "text": "the cow sat", "max_cost": 0.5})
        assert answer.body["sides"] == {"say": "local"}, "a call may cost more than 0.5"
        assert answer.body["approximate"] is True
        llama_server.kill()
        answer = await caller.ask({"task": "say", "text": "the sow sat"})
        assert answer.body["sides"] == {"say": "local"}
        assert answer.body["cost"] == 0.0, "nobody was there to be paid"
    done = command("budget", "--redis", redis_server.url, "--rules", str(rules), "--json")
    assert json.loads(done.stdout)["all"] | {"left": 0} == {
        "limit": 2.0,
        "spent": pytest.approx(sum(costs)),
        "reserved": 0.0,
        "left": 0,
    }
    for role in roles:
        assert "4111" not in role.said
