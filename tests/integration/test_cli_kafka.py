"""The commands against a real Kafka: topics, send, results, audit."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic

from edgeway import kafka
from edgeway.cli import main
from edgeway.client_records import to_json
from edgeway.embedded import BrokerSettings, EmbeddedKafka
from edgeway.errors import TopicsWrong
from edgeway.tail import Tail
from edgeway.topics_admin import apply_topics, check_topics, describe, require_topics, verify_topics
from schemas import codec, headers, ids, topics
from schemas.messages import Plan, Request, Result
from schemas.rules import parse_rules
from schemas.topics import TopicSpec
from streams.settings import Settings

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
RULES = '{"tasks": {"intent": {"capability": "nlp/intent"}}}'


@pytest.fixture
def settings(bootstrap: str) -> Settings:
    return Settings(kafka=bootstrap, partitions=3)


@pytest.fixture
def made(bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cluster with all topics; the working folder holds rules.json."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.json").write_text(RULES)
    assert main(["topics", "apply", "--kafka", bootstrap, "--rules", "rules.json", "--partitions", "3"]) == 0
    return bootstrap


@contextlib.asynccontextmanager
async def answering(settings: Settings, reply: Callable[[Request], Result | None]) -> AsyncIterator[None]:
    """A stand-in for all roles: answers requests, and plans that carry an answer."""
    async with (
        Tail(settings, topics.REQUESTS) as asked,
        Tail(settings, topics.JOINS) as plans,
        kafka.producer(settings) as producer,
    ):
        task = asyncio.create_task(_answer(asked, plans, producer, reply))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled(), task.exception()


async def _answer(
    asked: Tail, plans: Tail, producer: AIOKafkaProducer, reply: Callable[[Request], Result | None]
) -> None:
    while True:
        results: list[Result | None] = []
        for record in await asked.more(50):
            fmt = codec.format_of(headers.read(record.headers).content_type, record.value)
            results.append(reply(codec.decode_request(record.value, fmt)))
        for record in await plans.more(50):
            plan = codec.decode(record.value, Plan)
            assert record.key.decode() == ids.scoped(plan.request.tenant, plan.request.id)
            assert record.partition == topics.partition_for(record.key, 3)
            results.append(plan.answer)
        for result in results:
            if result is not None:
                await put(producer, result)


async def put(producer: AIOKafkaProducer, result: Result) -> None:
    key = ids.scoped(result.tenant, result.id).encode()
    partition = topics.partition_for(key, 3)
    await producer.send_and_wait(topics.RESULTS, codec.encode(result), key, partition=partition)


async def write(settings: Settings, *results: Result) -> None:
    async with kafka.producer(settings) as producer:
        for result in results:
            await put(producer, result)


def run_with(settings: Settings, argv: list[str], reply: Callable[[Request], Result | None]) -> int:
    """The exit code of a command, run in a thread beside the stand-in."""

    async def both() -> int:
        async with answering(settings, reply):
            return await asyncio.to_thread(main, argv)

    return asyncio.run(both())


def test_topics_are_made_checked_and_found_good(made: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    args = ["--kafka", made, "--rules", "rules.json", "--partitions", "3", "--json"]
    for verb in ("apply", "check"):
        assert main(["topics", verb, *args]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report == {"created": [], "changed": [], "problems": [], "auto_create": False, "good": True}


async def test_topics_are_as_the_table_says(made: str, settings: Settings) -> None:
    specs = topics.topics_for(parse_rules(RULES.encode()), 3)
    assert await verify_topics(settings, specs) == []
    names = {spec.name for spec in specs}
    assert {"requests", "joins", "results", "local.nlp.intent", "cloud.nlp.intent"} <= names


async def test_differences_are_found_and_mended(settings: Settings) -> None:
    async with kafka.admin(settings) as client:
        configs = {"cleanup.policy": "compact", "retention.ms": "86400000", "segment.ms": "7200000"}
        configs["message.timestamp.type"] = "CreateTime"
        await client.create_topics([NewTopic("odd", 1, 1, topic_configs=configs)])
        while "odd" not in (there := await describe(client)) or there["odd"].leaderless:
            await asyncio.sleep(0.05)
    specs = [TopicSpec("odd", 2)]
    found = {
        problem.what.split(" is ")[0].split(" ")[0]
        for problem in (await check_topics(settings, specs)).problems
    }
    assert found == {"cleanup.policy", "retention.ms", "message.timestamp.type", "has"}
    with pytest.raises(TopicsWrong, match=r"odd: cleanup.policy is compact, delete is wanted"):
        await require_topics(settings, specs)
    reported = await apply_topics(settings, specs)
    assert not reported.good
    assert reported.changed == ()
    mended = await apply_topics(settings, specs, fix=True, grow=True)
    assert mended.problems == ()
    assert "odd: 2 partitions" in mended.changed
    async with kafka.admin(settings) as client:
        from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

        (answer,) = await client.describe_configs(
            [ConfigResource(ConfigResourceType.TOPIC, "odd", {"segment.ms": None})]
        )
        assert answer.resources[0][4][0][1] == "7200000", "a setting that is not ours must survive --fix"


async def test_verify_names_what_is_missing_within_seconds(settings: Settings) -> None:
    start = time.monotonic()
    with pytest.raises(TopicsWrong) as caught:
        await require_topics(settings, [TopicSpec("not-there", 3)])
    assert time.monotonic() - start < 10
    assert "not-there: is missing" in str(caught.value)
    assert f"edgeway topics apply --kafka {settings.bootstrap}" in str(caught.value)
    async with kafka.admin(settings) as client:
        assert "not-there" not in await client.list_topics()


def test_a_replication_that_the_cluster_cannot_give_is_refused(
    bootstrap: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.json").write_text('{"tasks": {"x": {"capability": "never/made"}}}')
    assert main(["topics", "apply", "--kafka", bootstrap, "--rules", "more.json", "--replication", "3"]) == 4
    assert "was not made: InvalidReplicationFactorError" in capsys.readouterr().err


def test_commands_name_a_missing_topic(capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.ExitStack() as stack:
        cluster = EmbeddedKafka(BrokerSettings())
        cluster.start_sync()
        stack.callback(cluster.stop_sync)
        for argv in (["send", "--task", "t"], ["results"], ["audit"]):
            assert main([*argv, "--kafka", cluster.bootstrap]) == 4
            said = capsys.readouterr().err
            assert "is missing" in said
            assert "edgeway topics apply --kafka" in said


@pytest.mark.parametrize("fmt", ["msgpack", "json"])
def test_one_request_is_sent_and_its_result_explained(
    fmt: str, made: str, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Request] = []

    def reply(request: Request) -> Result:
        seen.append(request)
        return Result(
            id=request.id or "", tenant=request.tenant, status="ok", output={"echo": request.inputs}
        )

    argv = [
        "send",
        "--kafka",
        made,
        "--task",
        "intent",
        "--text",
        "where is my card",
        "--input",
        "n=5",
        "--tenant",
        "x",
    ]
    capsys.readouterr()
    assert run_with(settings, [*argv, "--format", fmt, "--wait", "--json"], reply) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["output"] == {"echo": {"n": 5, "text": "where is my card"}}
    assert run_with(settings, [*argv, "--wait", "--id", f"human-{fmt}"], reply) == 0
    assert capsys.readouterr().out.startswith(f"human-{fmt}: ok\n  output: ")
    assert {request.task for request in seen} == {"intent"}


def test_errors_and_silence_have_their_codes(
    made: str, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["send", "--kafka", made, "--task", "intent", "--wait", "--timeout", "1s", "--id"]

    def failing(request: Request) -> Result:
        from schemas.messages import Failure

        return Result(id=request.id or "", status="error", error=Failure(code="overloaded", message="full"))

    assert run_with(settings, [*argv, "e1"], failing) == 1
    assert "It failed: full (overloaded)." in capsys.readouterr().out
    assert run_with(settings, [*argv, "e2"], lambda _: None) == 5
    assert "e2" in capsys.readouterr().err


def test_a_file_is_sent_at_a_rate_and_bad_lines_lose_nothing(
    made: str, settings: Settings, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = [json.dumps({"task": "intent", "text": str(number), "id": f"f{number}"}) for number in range(40)]
    lines.insert(5, "{broken")
    lines.insert(9, "")
    (tmp_path / "requests.jsonl").write_text("\n".join(lines))
    argv = ["send", "--kafka", made, "--file", "requests.jsonl", "--rate", "100", "--wait", "--json"]
    capsys.readouterr()
    start = time.monotonic()
    assert run_with(settings, argv, lambda request: Result(id=request.id or "", status="ok")) == 2
    assert time.monotonic() - start >= 0.39
    done = capsys.readouterr()
    assert {json.loads(line)["id"] for line in done.out.splitlines()} == {
        f"f{number}" for number in range(40)
    }
    assert "line 6: " in done.err
    assert "40 sent, 1 bad lines, 0 not acknowledged, 40 answered" in done.err


def test_results_are_printed_followed_and_looked_up(
    made: str, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Result(id="look-1", status="ok", output=1, tenant="t1")
    asyncio.run(write(settings, mine, Result(id="look-2", status="ok", output=2)))
    capsys.readouterr()
    assert main(["results", "--kafka", made, "--tenant", "t1", "--json"]) == 0
    assert capsys.readouterr().out.splitlines() == [to_json(mine)]
    assert main(["results", "--kafka", made, "--id", "look-2"]) == 0
    assert capsys.readouterr().out.startswith("look-2: ok\n")
    assert main(["results", "--kafka", made, "--id", "look-none"]) == 5

    async def follow() -> int:
        command = asyncio.create_task(
            asyncio.to_thread(main, ["results", "--kafka", made, "--follow", "--id", "late"])
        )
        while not command.done():
            await write(settings, Result(id="late", status="ok"))
            await asyncio.sleep(0.2)
        return await command

    assert asyncio.run(asyncio.wait_for(follow(), 30)) == 0
    assert capsys.readouterr().out.startswith("late: ok")


def test_following_ends_well_by_interrupt_and_by_a_reader_that_leaves(made: str, settings: Settings) -> None:
    argv = [sys.executable, "-m", "edgeway", "results", "--kafka", made, "--follow", "--since", "1h"]
    follower = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert follower.stdout is not None
    asyncio.run(write(settings, Result(id="seen", status="ok")))
    follower.stdout.readline()
    follower.send_signal(signal.SIGINT)
    _, said = follower.communicate(timeout=20)
    assert (follower.returncode, said) == (130, b"")
    reader = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None
    assert reader.stderr is not None
    reader.stdout.readline()
    reader.stdout.close()
    asyncio.run(write(settings, Result(id="unseen", status="ok")))
    assert reader.wait(20) == 0
    assert reader.stderr.read() == b""
    reader.stderr.close()


def test_audit_finds_what_has_no_answer_and_has_it_answered(
    made: str, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = int(time.time() * 1000) - 1

    async def ask() -> None:
        async with kafka.producer(settings) as producer:
            for number in range(10):
                raw = codec.encode(Request(id=f"a{number}", tenant="x", task="intent", deadline_ms=1))
                await producer.send_and_wait(topics.REQUESTS, raw)
            await producer.send_and_wait(
                topics.REQUESTS, b'{"task": "intent", "deadline_ms": 1}', partition=0
            )
            await producer.send_and_wait(topics.REQUESTS, b"\xc1 nothing")
            for number in range(9):
                await put(producer, Result(id=f"a{number}", tenant="x", status="ok"))

    asyncio.run(ask())
    argv = ["audit", "--kafka", made, "--from", str(begun), "--grace", "0s", "--json"]
    capsys.readouterr()
    assert main(argv) == 5
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (report["requests"], report["answered"], report["unreadable"]) == (12, 9, 1)
    first, second = sorted(report["unanswered"], key=lambda asked: len(asked["id"]))
    assert (first["id"], first["tenant"]) == ("a9", "x")
    assert second["id"] == ids.derived("requests", 0, second["offset"], second["accepted_ms"])
    assert run_with(settings, [*argv, "--answer"], lambda _: None) == 0
    assert json.loads(capsys.readouterr().out)["answered_now"] == 2
    assert main(argv) == 0
    assert json.loads(capsys.readouterr().out)["unanswered"] == []


def test_audit_of_another_window_is_empty(made: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["audit", "--kafka", made, "--from", "2020-01-01", "--to", "2020-01-02", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"] == 0


async def test_an_address_that_is_no_kafka_is_unreachable(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgeway.errors import KafkaUnreachable

    monkeypatch.setattr(kafka, "START_S", 1.0)
    monkeypatch.setattr(kafka, "REQUEST_MS", 1000)

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(KafkaUnreachable, match=f"127.0.0.1:{port}"):
            await verify_topics(replace(settings, kafka=f"127.0.0.1:{port}"), [])
