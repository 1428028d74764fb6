from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from schemas import codec, headers, ids
from schemas.cards import Card, Heartbeat, Live, Offer
from schemas.messages import Claim, Failure, Request, Verdict
from schemas.rules import Rules, parse_rules
from streams import metrics
from streams.cache import NOTHING, MemoryCache
from streams.delivery import Batch, Cleared
from streams.registry import Registry
from streams.registry.breaker import OPEN_MS, TRIALS
from streams.router import Planner, Router
from streams.stores import MemorySeenStore, SeenStore, StoreUnavailable
from streams.tracing import within
from tests.helpers.routing import (
    NOW,
    RequestLane,
    RequestRecord,
    Words,
    asked,
    plan_in,
    record_in,
    ruled,
    rules_of,
    topic_of,
)

RULES = parse_rules(
    b'{"intent": {}, "at_home": {"side": "local"}, "away": {"side": "cloud"}, "privacy": {"detectors": []}}'
)
IN = {"text": "where is my card"}


class FixedClock:
    def __init__(self, ms: int = NOW + 10) -> None:
        self.ms = ms

    def now(self) -> int:
        return self.ms


class BrokenStore:
    async def first_seen(self, entries: Sequence[tuple[str, str]], ttl_s: int) -> list[str | None]:
        raise StoreUnavailable("away")

    async def close(self) -> None: ...


def registry_of(rules: Rules, **live: float) -> Registry:
    registry = Registry()
    offers = tuple(
        Offer(
            card=Card(capability=capability, side=side, version="1", model="m", max_cost=0.0),
            live=Live(**live),  # type: ignore[arg-type]
        )
        for side, capability in rules.capabilities
    )
    registry.observe(Heartbeat(worker="w1", offers=offers), NOW)
    return registry


def router_of(rules: Rules = RULES, **fields: Any) -> Router:
    how = {name: fields.pop(name) for name in ("constraints", "examiner", "decomposers") if name in fields}
    registry, clock = fields.pop("registry", None), fields.pop("clock", FixedClock())
    return Router(Planner(rules, **how), registry or registry_of(rules), clock, **fields)


async def handled(router: Router, *records: RequestRecord) -> RequestLane:
    lane = RequestLane()
    await router.handle(Batch(lane, list(records)))  # type: ignore[arg-type]
    await router.rest(5.0)
    return lane


def error_of(lane: RequestLane) -> str:
    (plan,) = lane.plans
    assert lane.subtasks == []
    assert plan.answer is not None
    assert plan.answer.error is not None
    return plan.answer.error.code


async def test_plan_and_subtask_are_sent_together():
    lane = await handled(router_of(), asked(7, id="r1", task="at_home", inputs=IN))
    ((offsets, outputs),) = lane.settles
    assert offsets == [7]
    assert [topic_of(output) for output in outputs] == ["joins", "local.at_home"]
    assert [record_in(output).key for output in outputs] == [b"r1", b"r1/at_home/local/0"]
    assert all(record_in(output).partition is None for output in outputs)
    ((_, subtask),) = lane.subtasks
    assert subtask.inputs == IN
    assert subtask.deadline == NOW + 30_000


async def test_one_settle_for_a_batch():
    records = [asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(150)]
    lane = await handled(router_of(), *records)
    ((offsets, outputs),) = lane.settles
    assert offsets == list(range(150))
    assert len(outputs) == 300


async def test_a_cloud_subtask_is_cleared_for_its_bytes():
    lane = await handled(router_of(), asked(id="r1", task="away", inputs=IN))
    (cloud,) = [output for output in lane.outputs if topic_of(output) == "cloud.away"]
    assert isinstance(cloud, Cleared)
    assert cloud.clearance.covers(cloud.record.value)


async def test_high_privacy_stays_local():
    lane = await handled(router_of(), asked(id="r1", task="intent", inputs=IN, privacy="high"))
    assert [topic for topic, _ in lane.subtasks] == ["local.intent"]
    assert lane.plans[0].request.privacy == Verdict(level="high", reasons=("declared",))
    lane = await handled(router_of(), asked(id="r1", task="away", inputs=IN, privacy="high"))
    assert error_of(lane) == "no_placement"


async def test_a_judge_can_raise_the_level_but_not_lower_it():
    lane = await handled(router_of(examiner=Words(secret=["card"])), asked(id="r1", task="away", inputs=IN))
    assert error_of(lane) == "no_placement"
    lenient = router_of(examiner=Words())
    lane = await handled(lenient, asked(id="r1", task="away", inputs=IN, privacy="high"))
    assert error_of(lane) == "no_placement"


async def test_a_judge_that_fails_means_local():
    class Fails(Words):
        def __call__(self, request: Request) -> Verdict:
            raise OSError("model gone")

    lane = await handled(router_of(examiner=Fails()), asked(id="r1", task="intent", inputs=IN))
    assert [topic for topic, _ in lane.subtasks] == ["local.intent"]
    assert lane.plans[0].request.privacy.reasons == ("verdict_failed",)


async def test_a_plain_json_request_without_headers():
    record = RequestRecord(b'{"task": "at_home", "text": "hello", "privacy_level": "HIGH"}', 3)
    lane = await handled(router_of(), record)
    (plan,) = lane.plans
    assert plan.request.id == ids.derived("requests", 0, 3, NOW)
    assert plan.request.reply_format == "json"
    assert plan.request.privacy.level == "high"
    assert lane.subtasks[0][1].inputs == {"text": "hello"}


async def test_redelivery_gives_the_same_records():
    record = RequestRecord(b'{"task": "intent", "text": "hello"}', 3)
    once, again = await handled(router_of(), record), await handled(router_of(), record)
    assert once.outputs[0] == again.outputs[0]
    assert [record_in(output).value for output in once.outputs] == [
        record_in(output).value for output in again.outputs
    ]


async def test_trace_and_reply_travel():
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    record = asked(id="r1", task="at_home", inputs=IN, reply_to="results.mine", tenant="acme")
    record.headers = headers.build("request", "r1", "test", traceparent=parent, tracestate="v=1")
    lane = await handled(router_of(), record)
    info = lane.plans[0].request
    info_scope = ids.scoped("acme", "r1")
    assert (info.traceparent, info.tracestate, info.reply_to) == (parent, "v=1", "results.mine")
    assert lane.subtasks[0][1].traceparent == within(parent, info_scope, "at_home/local/0")
    assert lane.subtasks[0][1].id == "\x1facme\x1fr1/at_home/local/0"
    assert headers.read(record_in(lane.outputs[0]).headers).traceparent == within(parent, info_scope, "plan")


@pytest.mark.parametrize(
    ("asked_ms", "task_ms", "allowed"),
    [(None, None, 30_000), (None, 5_000, 5_000), (700, 5_000, 700), (600_000, None, 600_000)],
)
async def test_deadline(asked_ms, task_ms, allowed):
    task = {"side": "local"} if task_ms is None else {"side": "local", "deadline_ms": task_ms}
    rules = rules_of(t=task)
    lane = await handled(router_of(rules), asked(id="r1", task="t", inputs=IN, deadline_ms=asked_ms))
    assert lane.plans[0].request.deadline == NOW + allowed
    assert lane.plans[0].request.accepted == NOW


async def test_overdue_work_is_answered_at_once():
    router = router_of(clock=FixedClock(NOW + 5_000))
    lane = await handled(router, asked(id="r1", task="intent", inputs=IN, deadline_ms=5_000))
    assert error_of(lane) == "deadline_exceeded"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"task": "nothing"}, "unknown_task"),
        ({"inputs": IN}, "invalid_request"),
        ({"task": "intent", "claim": Claim(dataref="s3://b/k", sha256="0", size=1)}, "object_missing"),
    ],
)
async def test_refusals_are_answers(fields, code):
    lane = await handled(router_of(), asked(id="r1", tenant="acme", **fields))
    assert error_of(lane) == code
    assert lane.failed == []
    (plan,) = lane.plans
    assert plan.answer is not None
    assert (plan.answer.id, plan.answer.tenant, plan.answer.status) == ("r1", "acme", "error")
    assert lane.settles[0][0] == [0]


async def test_a_query_of_a_million_letters_is_answered():
    lane = await handled(router_of(), asked(id="r1", query="x" * 1_000_000))
    assert error_of(lane) == "unknown_task"


async def test_a_request_whose_plan_does_not_fit_is_answered():
    lane = await handled(router_of(), asked(id="r1", task="intent", inputs={"text": "x" * (2**20 - 100)}))
    assert error_of(lane) == "too_large"


async def test_bad_records_fail_alone():
    lane = await handled(
        router_of(),
        asked(0, id="r0", task="intent", inputs=IN),
        RequestRecord(b"\xff\x00nonsense", 1),
        RequestRecord(None, 2),
        RequestRecord(b'{"v": 99, "id": "r3", "task": "intent"}', 3),
        RequestRecord(b'{"id": "r4", "x": "' + b"x" * 2**20 + b'"}', 4),
        asked(5, id="x" * 129, task="intent"),
        asked(6, id="r6", task="intent", tenant="a\x1fb"),
        asked(7, id="r7", task="intent", reply_to="r" * 300),
        asked(8, id="r8", task="intent", inputs=IN),
    )
    assert [(offset, failure.code) for offset, failure in lane.failed] == [
        (1, "malformed"),
        (2, "malformed"),
        (3, "unsupported_version"),
        (4, "too_large"),
        (5, "malformed"),
        (6, "malformed"),
        (7, "malformed"),
    ]
    assert lane.settles[0][0] == [0, 8]
    assert [plan.request.id for plan in lane.plans] == ["r0", "r8"]


def test_refuse_answers_where_an_id_can_be_read():
    router = router_of()
    failure = Failure(code="unsupported_version", message="no")
    (output,) = router.refuse(RequestRecord(b'{"v": 99, "id": "r3", "task": "intent"}'), failure)
    plan = plan_in(output)
    assert topic_of(output) == "joins"
    assert record_in(output).key == b"r3"
    assert plan.answer is not None
    assert plan.answer.error == failure
    assert router.refuse(RequestRecord(b"\xff\x00nonsense"), failure) == ()
    assert router.refuse(RequestRecord(None), failure) == ()


def test_refuse_answers_the_tenant_in_its_format_and_knows_the_bytes_again():
    def info(raw):
        (output,) = router_of().refuse(RequestRecord(raw), Failure(code="malformed", message="no"))
        return plan_in(output).request

    one = info(b'{"id": "r", "tenant": "acme", "task": 5}')
    assert (one.tenant, one.reply_format) == ("acme", "json")
    assert one.digest is not None
    assert one.digest == info(b'{"id": "r", "tenant": "acme", "task": 5}').digest
    assert one.digest != info(b'{"id": "r", "tenant": "acme", "task": 6}').digest
    assert info(b"\x82\xa2id\xa1r\xa4task\x05").reply_format == "msgpack"


def test_refuse_knows_the_request_of_a_handler_error():
    failure = Failure(code="handler_error", message="no")
    record = asked(4, id="r4", tenant="acme", reply_to="results.mine", task="intent")
    (output,) = router_of().refuse(record, failure)
    info = plan_in(output).request
    assert (info.id, info.tenant, info.reply_to) == ("r4", "acme", "results.mine")
    (output,) = router_of().refuse(RequestRecord(b'{"task": "intent"}', 9), failure)
    assert plan_in(output).request.id == ids.derived("requests", 0, 9, NOW)


def test_refuse_never_raises():
    failure = Failure(code="handler_error", message="no")
    assert router_of().refuse(asked(6, id="r6", tenant="a\x1fb"), failure) == ()


class TestRepeats:
    @pytest.fixture
    def store(self) -> SeenStore:
        return MemorySeenStore(clock=lambda: 0.0)

    async def test_redelivery_goes_on(self, store):
        record = asked(1, id="r1", task="intent", inputs=IN)
        router = router_of(seen=store)
        once, again = await handled(router, record), await handled(router, record)
        assert len(once.outputs) == len(again.outputs) == 2

    async def test_a_repeat_refers_to_the_first(self, store):
        router = router_of(seen=store)
        lane = await handled(
            router, asked(1, id="r1", task="intent", inputs=IN), asked(2, id="r1", task="intent", inputs=IN)
        )
        assert lane.settles[0][0] == [1, 2]
        assert len(lane.outputs) == 2

    async def test_other_content_is_a_conflict_under_another_id(self, store):
        router = router_of(seen=store)
        await handled(router, asked(1, id="r1", task="intent", inputs=IN))
        lane = await handled(router, asked(2, id="r1", task="intent", inputs={"text": "other"}))
        assert error_of(lane) == "id_conflict"
        (plan,) = lane.plans
        assert plan.request.id == ids.conflicting("r1", plan.request.digest)
        assert record_in(lane.outputs[0]).key == plan.request.id.encode()

    async def test_tenants_do_not_meet(self, store):
        router = router_of(seen=store)
        await handled(router, asked(1, id="r1", task="intent", tenant="a", inputs=IN))
        lane = await handled(router, asked(2, id="r1", task="intent", tenant="b", inputs={"text": "other"}))
        assert len(lane.subtasks) == 1

    async def test_derived_ids_are_not_asked_for(self):
        class Forbidden(BrokenStore):
            async def first_seen(self, entries: Sequence[tuple[str, str]], ttl_s: int) -> list[str | None]:
                raise AssertionError("asked")

        lane = await handled(router_of(seen=Forbidden()), asked(1, task="intent", inputs=IN))
        assert len(lane.outputs) == 2

    async def test_without_the_store_it_goes_on(self):
        lane = await handled(router_of(seen=BrokenStore()), asked(1, id="r1", task="intent", inputs=IN))
        assert len(lane.outputs) == 2


async def test_nothing_is_settled_where_planning_fails():
    def broken(_: object) -> list[str]:
        raise RuntimeError("bug")

    from streams.router import Rule

    router = router_of(constraints=[Rule("broken", broken)])  # type: ignore[arg-type]
    lane = RequestLane()
    with pytest.raises(RuntimeError):
        await router.handle(
            Batch(lane, [RequestRecord(b"\xff"), asked(1, id="r1", task="intent", inputs=IN)])  # type: ignore[arg-type]
        )
    assert lane.settles == []
    assert lane.failed == []


async def test_a_half_open_breaker_gets_a_few_trials():
    registry = registry_of(RULES, error_ratio=0.9, served=100)
    clock = FixedClock(NOW + OPEN_MS)
    router = router_of(registry=registry, clock=clock)
    lane = await handled(router, *[asked(n, id=f"r{n}", task="at_home", inputs=IN) for n in range(20)])
    assert metrics.BREAKER.labels("at_home", "local")._value.get() == 1
    assert len(lane.subtasks) == TRIALS
    assert sum(plan.answer is not None for plan in lane.plans) == 20 - TRIALS


async def test_the_states_of_breakers_are_metrics():
    registry = registry_of(RULES, error_ratio=0.9, served=100)
    clock = FixedClock()
    router = router_of(registry=registry, clock=clock)

    async def shown(ms: int) -> float:
        clock.ms = ms
        await handled(router, asked(id=f"r{ms}", task="away", inputs=IN))
        return metrics.BREAKER.labels("intent", "cloud")._value.get()

    assert await shown(NOW + 10) == 2
    assert await shown(NOW + OPEN_MS) == 1
    good = Offer(
        card=Card(capability="intent", side="cloud", version="1", model="m"),
        live=Live(served=101, p90_ms=5.0),
    )
    registry.observe(Heartbeat(worker="w1", offers=(good,)), NOW + OPEN_MS + 10)
    assert await shown(NOW + OPEN_MS + 20) == 0
    registry.observe(Heartbeat(worker="w1", leaving=True), NOW + OPEN_MS + 30)
    clock.ms = NOW + OPEN_MS + 40
    await handled(router, asked(id="last", task="away", inputs=IN))
    samples = next(iter(metrics.BREAKER.collect())).samples
    assert {"capability": "intent", "side": "cloud"} not in [sample.labels for sample in samples]


async def test_breakers_are_shown_while_no_request_comes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("streams.router.agent.SHOW_EVERY_S", 0.005)
    registry = registry_of(RULES, error_ratio=0.9, served=100)
    clock = FixedClock(NOW + 10)
    task = asyncio.create_task(router_of(registry=registry, clock=clock).watch())

    async def until(shown: float | None) -> None:
        async with asyncio.timeout(2):
            while breakers().get(("intent", "cloud")) != shown:
                await asyncio.sleep(0.002)

    def breakers() -> dict[tuple[str, str], float]:
        (family,) = metrics.BREAKER.collect()
        return {(one.labels["capability"], one.labels["side"]): one.value for one in family.samples}

    await until(2)
    clock.ms = NOW + OPEN_MS
    await until(1)
    registry.observe(Heartbeat(worker="w1", leaving=True), NOW + OPEN_MS + 10)
    clock.ms = NOW + OPEN_MS + 20
    await until(None)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_new_rules_are_adopted():
    router = router_of()
    other = rules_of(other={"side": "local", "scale_to_zero": True})
    router.adopt(Planner(other))
    lane = await handled(router, asked(id="r1", task="other", inputs=IN))
    assert lane.plans[0].rules == other.version
    assert lane.plans[0].answer is None


async def test_a_dead_letter_code_is_kept_in_the_answer():
    record = RequestRecord(codec.encode(Request(id="r1", task="intent")))
    (output,) = router_of().refuse(record, Failure(code="killed_its_process", message="third time"))
    answer = plan_in(output).answer
    assert answer is not None
    assert answer.error is not None
    assert answer.error.code == "killed_its_process"


async def test_a_cancelled_request_is_answered_as_such_and_never_executed():
    stage = metrics.CANCELLED.labels("router")
    before = stage._value.get()
    router = router_of(cancelled={"\x1facme\x1fr1"}, cache=MemoryCache(lambda: 0.0))
    lane = await handled(
        router,
        asked(0, id="r1", tenant="acme", task="at_home", inputs=IN),
        asked(1, id="r1", task="at_home", inputs=IN),
        asked(2, id="r2", tenant="acme", task="at_home", inputs=IN),
    )
    answer = lane.plans[0].answer
    assert answer is not None
    assert answer.error is not None
    assert (answer.status, answer.error.code, answer.tenant) == ("error", "cancelled", "acme")
    assert [plan.answer for plan in lane.plans[1:]] == [None, None]
    assert [subtask.id for _, subtask in lane.subtasks] == [
        "r1/at_home/local/0",
        "\x1facme\x1fr2/at_home/local/0",
    ]
    assert stage._value.get() == before + 1


async def test_whoever_waits_for_an_equal_request_may_be_cancelled():
    rules = ruled({"t": {"capability": "x/y", "side": "local", "cache": True}}, cache_s=60)
    cancelled: set[str] = set()
    cache = MemoryCache(lambda: 0.0)
    router = router_of(rules, cancelled=cancelled, cache=cache)
    lane = await handled(router, asked(0, id="a", task="t", inputs=IN), asked(1, id="b", task="t", inputs=IN))
    (plan,) = lane.plans
    assert (plan.request.id, lane.absorbed) == ("a", [1])
    cancelled.add("b")
    task = asyncio.create_task(router.follow())
    assert plan.cache is not None
    await cache.put([(plan.cache, NOTHING)], 5.0)
    async with asyncio.timeout(5):
        while len(lane.plans) < 2:
            await asyncio.sleep(0.01)
    task.cancel()
    answer = lane.plans[1].answer
    assert answer is not None
    assert answer.error is not None
    assert (answer.id, answer.error.code) == ("b", "cancelled")
