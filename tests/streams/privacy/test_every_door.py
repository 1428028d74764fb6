"""No code path publishes to `cloud.*` what was declared or found to be sensitive: every door, from outside.

The router and the aggregator are the real ones, between them the log of the tests; workers are what a test
says.
"""

from __future__ import annotations

import ast
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas import codec
from schemas.cards import Card, Heartbeat, Live, Offer
from schemas.claims import as_value
from schemas.messages import Claim, Failure, Partial, Request, Result, Subtask
from schemas.rules import Rules
from schemas.topics import parse_capability_topic
from streams.aggregator import Errands, Limits
from streams.cache import MemoryCache
from streams.claims import NO_OBJECTS, Objects, open_objects
from streams.delivery import Batch, Cleared, Outgoing
from streams.delivery.dead_letters import dead_letter
from streams.registry import Registry
from streams.router import Planner, Router
from streams.stores import MemorySeenStore
from tests.helpers.aggregation import Host, World
from tests.helpers.routing import RequestLane, RequestRecord, ruled

ROOT = Path(__file__).resolve().parents[3]
MAIL = "jane.roe@corp.example"
PLANTED = (MAIL, "DE89370400440532013000", "+49 30 901820 55")
TASKS: dict[str, Any] = {
    "intent": {"local_threshold": 0.9, "slow_ms": 500},
    "away": {"side": "cloud"},
    "home": {"side": "local"},
    "caption": {"local_threshold": 0.7, "fallback_url": "https://api.example.com/caption"},
    "report": {
        "steps": [
            {"name": "read", "side": "local"},
            {
                "name": "sum",
                "side": "cloud",
                "after": ["read"],
                "inputs": {"x": "steps.read.text", "q": "query"},
            },
            {"name": "ask", "after": ["read"], "inputs": {"x": "steps.read"}, "local_threshold": 0.9},
        ]
    },
    "twice": {
        "steps": [{"name": "one", "side": "cloud"}, {"name": "two", "side": "cloud", "after": ["one"]}]
    },
}
DETECTORS = {"detectors": ["formats", "phones", "names"]}
MASKING = {**DETECTORS, "mask": ["email", "person"]}
Answer = Callable[[str, Subtask], Partial | None]


class Edge:
    """A router and an aggregator; `cloud` is whatever was published to a topic of the cloud."""

    def __init__(
        self,
        privacy: dict[str, Any] = DETECTORS,
        tasks: dict[str, Any] = TASKS,
        objects: Objects = NO_OBJECTS,
        **more: Any,
    ) -> None:
        self.objects = objects
        self.rules: Rules = ruled(tasks, privacy=privacy, **more)
        self.world = World()
        cache = MemoryCache(lambda: self.world.clock.time / 1000)
        self.host = Host(
            self.world, Limits(), errands=Errands(self.world.clock, cache, None, keep_s=300), objects=objects
        )
        registry = Registry()
        cards = [
            Card(capability=c, side=s, version="1", model="m", max_cost=0.0)
            for s, c in self.rules.capabilities
        ]
        offers = tuple(Offer(card=card, live=Live()) for card in cards)
        self._beat = Heartbeat(worker="w", offers=offers)
        self._registry = registry
        planner, clock = Planner(self.rules), self.world.clock
        seen = MemorySeenStore(lambda: clock.time)
        self.router = Router(planner, registry, clock, seen=seen, cache=cache, objects=objects)
        self.cloud: list[bytes] = []
        self._read = 0
        self._offset = 0

    async def send(self, record: RequestRecord) -> list[tuple[str, Subtask]]:
        """Have the router read `record` now."""
        record.timestamp = self.world.clock.time
        self._registry.observe(self._beat, self.world.clock.time)
        lane = RequestLane()
        await self.router.handle(Batch(lane, [record]))  # type: ignore[arg-type]
        await self.router.rest(5.0)
        return [found for output in lane.outputs for found in self._written(output)]

    async def ask(self, answer: Answer | None = None, **fields: Any) -> list[Result]:
        """Send a request, let `answer` work until nothing is left to do, and let the deadline pass."""
        self._offset += 1
        record = RequestRecord(codec.encode(Request(**fields)), self._offset)
        await self.work(await self.send(record), answer or confident)
        return self.world.answers()

    async def work(self, pending: list[tuple[str, Subtask]], answer: Answer) -> None:
        for _ in range(8):
            for side, subtask in pending:
                partial = answer(side, subtask)
                if partial is not None:
                    self.world.append(partial)
            await self.host.settled()
            await self.host.pass_time(600)
            pending = self._fresh()
        await self.host.pass_time(60_000)
        self._fresh()

    def _fresh(self) -> list[tuple[str, Subtask]]:
        """The subtasks that the aggregator has published since."""
        records, self._read = self.world.others[self._read :], len(self.world.others)
        return [found for record in records for found in self._written(record)]

    def _written(self, output: Any) -> Iterator[tuple[str, Subtask]]:
        record: Outgoing = output.record if isinstance(output, Cleared) else output
        if record.topic.startswith("cloud."):
            self.cloud.append(repr((record.topic, record.key, record.headers)).encode() + record.value)
        if record.topic == "joins":
            self.world.write(record)
        elif record.topic.startswith(("cloud.", "local.")):
            yield parse_capability_topic(record.topic)[0], codec.decode(record.value, Subtask)

    def leaked(self, *texts: str) -> list[str]:
        return [text for text in texts if any(text.encode() in value for value in self.cloud)]


def said(subtask: Subtask, output: Any, confidence: float | None = 0.99, **fields: Any) -> Partial:
    return Partial(
        subtask=subtask.id, deadline=subtask.deadline, output=output, confidence=confidence, **fields
    )


def confident(side: str, subtask: Subtask) -> Partial:
    return said(subtask, {"text": f"seen on the {side} side"})


def weak(side: str, subtask: Subtask) -> Partial:
    return said(subtask, {"text": "perhaps"}, 0.1 if side == "local" else 0.99)


def failing(side: str, subtask: Subtask) -> Partial:
    failure = Failure(code="backend_error", message="it broke")
    return said(subtask, None, None, error=failure) if side == "local" else confident(side, subtask)


def silent(side: str, subtask: Subtask) -> Partial | None:
    return None if side == "local" else confident(side, subtask)


def telling(side: str, subtask: Subtask) -> Partial:
    """A local step that brings personal data to light."""
    return said(subtask, {"text": f"the mail is {MAIL}"} if side == "local" else {"text": "fine"}, 0.5)


WORKERS = [confident, weak, failing, silent, telling]


@pytest.mark.parametrize("answer", WORKERS)
@pytest.mark.parametrize("task", TASKS)
async def test_what_a_harmless_request_may_do_shows_that_these_doors_open(task: str, answer: Answer) -> None:
    edge = Edge()
    results = await edge.ask(
        answer, task=task, query="where is my card", inputs={"text": "harmless", "mark": 7}
    )
    assert [result.id for result in results] == [results[0].id]
    opened = {"away": True, "twice": True, "home": False}
    escalates = answer in (weak, failing, silent, telling) and task in ("intent", "caption")
    assert bool(edge.cloud) == opened.get(
        task, escalates or (task == "report" and answer in (confident, weak))
    )
    assert edge.leaked(MAIL) == []


@pytest.mark.parametrize("answer", WORKERS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    "fields",
    [
        {"inputs": {"text": f"write to {MAIL}"}},
        {"inputs": {"text": "hello", "rows": [{"deep": [{MAIL: 1}]}]}},
        {"inputs": {"text": "hello"}, "params": {"cc": MAIL.encode()}},
        {"inputs": {"text": "hello"}, "query": f"write to {MAIL}"},
        {"inputs": {"text": "hello"}, "id": MAIL},
        {"inputs": {"text": "so it goes " * 2_000 + MAIL}},
        {"inputs": {"text": "so it goes " * 20_000}},
        {"inputs": {"text": MAIL}, "privacy": "high"},
    ],
    ids=["value", "key", "param", "query", "id", "long", "too long", "declared"],
)
async def test_what_is_sensitive_goes_out_by_no_attempt(
    task: str, answer: Answer, fields: dict[str, Any]
) -> None:
    edge = Edge()
    results = await edge.ask(answer, task=task, **fields)
    assert edge.cloud == []
    assert len({result.id for result in results}) == 1
    assert all(result.privacy is None or result.privacy.level == "high" for result in results)


@pytest.mark.parametrize("answer", WORKERS)
@pytest.mark.parametrize("task", TASKS)
async def test_masked_requests_leave_masked_by_every_attempt(task: str, answer: Answer) -> None:
    edge = Edge(MASKING)
    results = await edge.ask(
        answer, task=task, query="hello", inputs={"text": f"write to {MAIL}", "n": {MAIL: 1}}
    )
    assert edge.leaked(MAIL) == []
    assert len({result.id for result in results}) == 1
    if task in ("away", "twice"):
        assert edge.leaked("[EMAIL_1]") == ["[EMAIL_1]"]


async def test_what_the_cloud_says_of_placeholders_is_restored_and_masked_again() -> None:
    edge = Edge(MASKING)

    def echo(side: str, subtask: Subtask) -> Partial:
        return said(subtask, {"text": subtask.inputs})

    (result,) = await edge.ask(echo, task="twice", inputs={"text": f"write to {MAIL}"})
    assert result.output is not None
    assert MAIL in repr(result.output)
    assert edge.leaked(MAIL) == []


@pytest.mark.parametrize("level", ["declared", "tenant", "task"])
async def test_what_is_declared_is_not_even_masked(level: str) -> None:
    high = {**TASKS, "intent": {**TASKS["intent"], "privacy": "high"}} if level == "task" else TASKS
    edge = Edge(MASKING, high, tenants={"t": {"privacy": "high"}})
    fields = {"declared": {"privacy": "high"}, "tenant": {"tenant": "t"}, "task": {}}[level]
    await edge.ask(weak, task="intent", inputs={"text": f"write to {MAIL}"}, **fields)
    assert edge.cloud == []


async def test_requests_sent_again_are_judged_again() -> None:
    edge = Edge()
    for text in ("hello", f"write to {MAIL}", "hello", f"write to {MAIL}"):
        await edge.ask(weak, id="same", task="intent", inputs={"text": text})
    assert edge.leaked(MAIL) == []
    assert edge.cloud


async def test_a_record_read_twice_is_judged_twice() -> None:
    edge = Edge()
    record = RequestRecord(codec.encode(Request(task="away", inputs={"text": MAIL})), 3)
    for _ in range(3):
        await edge.work(await edge.send(record), confident)
    edge.router.adopt(Planner(edge.rules))
    await edge.work(await edge.send(record), confident)
    assert edge.cloud == []


async def test_a_dead_letter_that_is_sent_again_is_examined_as_any_request() -> None:
    edge = Edge()
    request = Request(id="d", task="away", inputs={"text": f"write to {MAIL}"})
    failure = Failure(code="malformed", message="it was not read")
    for fmt in ("json", "msgpack"):
        origin = RequestRecord(codec.encode(request, fmt), 3)  # type: ignore[arg-type]
        letter = dead_letter(origin, failure, group="edgeway-router", attempt=3)  # type: ignore[arg-type]
        again = RequestRecord(letter.value, 9, headers=letter.headers)
        await edge.work(await edge.send(again), confident)
    assert edge.cloud == []


async def test_kept_answers_open_no_door() -> None:
    tasks = {name: {**TASKS[name], "cache": True} for name in ("away", "intent")}
    edge = Edge(MASKING, tasks)
    for task in tasks:
        for number in range(3):
            await edge.ask(weak, id=f"{task}-{number}", task=task, inputs={"text": "hello"})
    assert any(result.cached for result in edge.world.answers())
    sent = len(edge.cloud)
    assert sent
    for number, fields in enumerate(
        (
            {"privacy": "high", "inputs": {"text": "hello"}},
            {"inputs": {"text": f"so {MAIL}", "ip": "203.0.113.77"}},
        )
    ):
        for task in (*tasks, *tasks):
            await edge.ask(weak, id=f"{task}-high-{number}", task=task, **fields)
    assert len(edge.cloud) == sent


async def test_claim_checked_inputs_do_not_pass_unseen() -> None:
    edge = Edge()
    claim = Claim(dataref="s3://bucket/x", sha256="0" * 64, size=300_000)
    await edge.ask(confident, task="away", inputs={}, claim=claim)
    assert edge.cloud == []


def stores() -> Objects:
    name = uuid.uuid4().hex
    return open_objects(f"memory://edge-{name}", f"memory://cloud-{name}")


async def put(objects: Objects, data: bytes, content_type: str | None) -> dict[str, Any]:
    assert objects.local is not None
    return as_value(await objects.local.put(data, content_type=content_type, tenant=None))


def copies(objects: Objects) -> list[bytes]:
    """All that lies in the cloud's store."""
    store: Any = objects.cloud
    return [data.getvalue() for path, data in store._fs.store.items() if path.startswith(f"{store._root}/")]


@pytest.mark.parametrize("answer", WORKERS)
@pytest.mark.parametrize("task", TASKS)
async def test_harmless_claims_open_the_doors_that_values_open(task: str, answer: Answer) -> None:
    edge = Edge(objects=stores())
    claim = await put(edge.objects, b"harmless", "text/plain")
    await edge.ask(answer, task=task, query="where is my card", inputs={"text": claim, "mark": 7})
    plain = Edge()
    await plain.ask(answer, task=task, query="where is my card", inputs={"text": "harmless", "mark": 7})
    assert len(edge.cloud) == len(plain.cloud)
    assert set(copies(edge.objects)) <= {b"harmless"}
    assert edge.leaked("memory://edge-") == [], "the cloud is told of no place at the edge"


@pytest.mark.parametrize("answer", [weak, failing, telling])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("privacy", [DETECTORS, MASKING], ids=["plain", "masking"])
@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (f"write to {MAIL}".encode(), "text/plain"),
        (f'{{"a": [{{"{MAIL}": 1}}]}}'.encode(), "application/json"),
        (b"\x00\x01 write to " + MAIL.encode(), None),
    ],
    ids=["text", "json", "bytes"],
)
async def test_what_is_sensitive_in_an_object_leaves_by_no_attempt(
    task: str, answer: Answer, privacy: dict[str, Any], data: bytes, content_type: str | None
) -> None:
    edge = Edge(privacy, objects=stores())
    claim = await put(edge.objects, data, content_type)
    results = await edge.ask(answer, task=task, query="hello", inputs={"text": "x", "deep": [{"c": claim}]})
    assert len({result.id for result in results}) == 1
    assert edge.leaked(MAIL) == []
    assert not [copy for copy in copies(edge.objects) if MAIL.encode() in copy]
    if privacy is DETECTORS:
        assert edge.cloud == []


async def test_a_plan_that_was_read_back_from_the_log_is_examined_again() -> None:
    """A crash between the router and the cloud: the successor goes by the plan alone."""
    edge = Edge()
    pending = await edge.send(
        RequestRecord(codec.encode(Request(id="r", task="report", query="q", inputs={"text": "x"})), 1)
    )
    await edge.host.settled()
    await edge.host.crash()
    await edge.work(pending, telling)
    assert edge.leaked(MAIL) == []
    assert edge.world.answers("r")


async def test_detectors_that_fail_close_every_door(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, text: str) -> Any:
        raise RuntimeError(text)

    monkeypatch.setattr("streams.privacy.detectors.formats.Formats.find", broken)
    for task in TASKS:
        edge = Edge()
        await edge.ask(weak, task=task, inputs={"text": "hello"})
        assert edge.cloud == []


LEAVES = st.none() | st.integers(0, 99) | st.text("xyz ", max_size=5)
NESTED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    around=NESTED,
    planted=st.sampled_from(PLANTED),
    where=st.sampled_from(["inputs", "params", "query", "key", "bytes"]),
    task=st.sampled_from(sorted(TASKS)),
    privacy=st.sampled_from([DETECTORS, MASKING]),
)
async def test_nothing_planted_anywhere_leaves(
    around: Any, planted: str, where: str, task: str, privacy: dict[str, Any]
) -> None:
    edge = Edge(privacy)
    text = f"so {planted} then"
    inner: Any = (
        text.encode() if where == "bytes" else {text: around} if where == "key" else [around, {"x": text}]
    )
    fields: dict[str, Any] = {"inputs": {"text": "hello", "more": around}, "query": "hello"}
    if where == "query":
        fields["query"] = text
    else:
        fields["params" if where == "params" else "inputs"] = {"deep": [inner]}
    await edge.ask(weak, task=task, **fields)
    assert edge.leaked(planted) == []


def calls(name: str) -> set[tuple[str, str]]:
    """(file, the call's first argument) of every call of `name` in the code."""
    found: set[tuple[str, str]] = set()
    for package in ("schemas", "streams", "workers", "edgeway"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name and node.args:
                    found.add((str(path.relative_to(ROOT)), ast.unparse(node.args[0])))
    return found


def test_two_places_clear_and_both_by_the_verdict_on_what_they_send() -> None:
    expected = {
        ("streams/router/outputs.py", "sent.verdict"),
        ("streams/aggregator/publisher.py", "load.verdict"),
    }
    assert calls("clear") == expected
    assert {(place, argument.split("(")[0]) for place, argument in calls("Cleared")} == {
        (place, "clear") for place, _ in expected
    }


def test_no_one_else_writes_into_a_clearance() -> None:
    for path in sorted((ROOT / "streams").rglob("*.py")) + sorted((ROOT / "edgeway").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.name != "clearance.py":
            assert "Clearance(" not in text, path
            assert "object.__new__(Clearance" not in text, path
            assert ".digest = " not in text or "clearance" not in text.lower(), path
