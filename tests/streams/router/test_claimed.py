"""Requests whose inputs lie in an object store."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import msgspec
import pytest

from schemas.claims import as_value, claim_of, claims_in
from schemas.messages import Claim, Plan, Request, Subtask
from streams.cache import MemoryCache
from streams.cache.keys import answer_key
from streams.claims import FsspecStore, Objects, StoreAway, open_objects
from streams.claims.values import object_of
from streams.delivery import Batch
from streams.delivery.claimed import claims_allow
from streams.router import Planner, Router
from tests.helpers.routing import RequestLane, Words, asked, record_in, ruled
from tests.streams.router.test_router import FixedClock, registry_of

RULES = ruled(
    {
        "away": {"side": "cloud"},
        "home": {"side": "local"},
        "auto": {"local_threshold": 0.9, "capability": "intent"},
        "two": {
            "steps": [
                {"name": "look", "side": "local", "inputs": {"image": "inputs.image"}},
                {"name": "say", "side": "cloud", "inputs": {"text": "inputs.text"}},
            ]
        },
    }
)
IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2000
SECRET = "the patient is jane roe"


def stores(cloud: bool = True) -> Objects:
    name = uuid.uuid4().hex
    return open_objects(f"memory://edge-{name}", f"memory://cloud-{name}" if cloud else None)


async def kept(objects: Objects, value: Any, content_type: str | None = None, tenant: Any = None) -> Claim:
    data, kind = object_of(value, content_type)
    assert objects.local is not None
    return await objects.local.put(data, content_type=kind, tenant=tenant)


def router_of(objects: Objects, **fields: Any) -> Router:
    rules = fields.pop("rules", RULES)
    planner = Planner(rules, examiner=fields.pop("examiner", Words(secret=["jane roe"])))
    return Router(planner, registry_of(rules), FixedClock(), objects=objects, **fields)


async def planned(router: Router, **fields: Any) -> tuple[Plan, dict[str, Subtask], RequestLane]:
    """The plan of one request, its subtasks by topic, and the lane."""
    lane = RequestLane()
    await router.handle(Batch(lane, [asked(**fields)]))  # type: ignore[arg-type]
    await router.rest(10.0)
    assert lane.failed == []
    (plan,) = lane.plans
    return plan, dict(lane.subtasks), lane


def cloud_words(objects: Objects) -> bytes:
    """All that lies in the cloud's store."""
    store: Any = objects.cloud
    return b"".join(
        content.getvalue() for path, content in store._fs.store.items() if path.startswith(store._root)
    )


async def test_an_image_goes_to_the_cloud_by_a_claim_of_its_copy_there() -> None:
    objects = stores()
    claim = await kept(objects, IMAGE, "image/png")
    _, subtasks, lane = await planned(router_of(objects), task="away", inputs={"image": as_value(claim)})
    sent = claim_of(subtasks["cloud.away"].inputs["image"])
    assert sent is not None
    assert sent.dataref != claim.dataref
    assert (sent.sha256, sent.content_type) == (claim.sha256, "image/png")
    assert objects.is_cloud(sent.dataref)
    assert await objects.get(sent, tenant=None) == IMAGE
    (cloud,) = [record_in(output) for output in lane.outputs if record_in(output).topic == "cloud.away"]
    assert claims_allow(cloud.value, objects.is_cloud)
    assert lane.absorbed == [0], "it is planned beside"


@pytest.mark.parametrize("kind", ["image/4111-1111-1111-1111", "image/png; charset=jane-doe", "4111 1111"])
async def test_no_word_of_the_callers_goes_along_as_a_content_type(kind: str) -> None:
    objects = stores()
    assert objects.local is not None
    claim = await objects.local.put(IMAGE, content_type=kind, tenant=None)
    _, subtasks, _ = await planned(router_of(objects), task="away", inputs={"image": as_value(claim)})
    sent = claim_of(subtasks["cloud.away"].inputs["image"])
    assert sent is not None
    assert sent.content_type in ("image/png", "application/octet-stream")


async def test_a_step_at_the_edge_gets_the_claim_untouched() -> None:
    objects = stores()
    claim = await kept(objects, IMAGE)
    plan, subtasks, _ = await planned(router_of(objects), task="auto", inputs={"a": [{"b": as_value(claim)}]})
    assert list(claims_in(subtasks["local.intent"].inputs)) == [claim]
    assert list(claims_in(plan.inputs)) == [claim]
    assert [attempt.side for attempt in plan.steps[0].attempts] == ["local", "cloud"]
    assert plan.examination is not None, "the aggregator examines it again as the rules say"
    assert cloud_words(objects) == b""


@pytest.mark.parametrize(
    ("objects", "broken", "why"),
    [
        (stores(cloud=False), {}, "no_cloud_store"),
        (stores(), {"sha256": "0" * 64}, "object_unread"),
        (stores(), {"size": 17 * 2**20}, "object_unread"),
        (stores(), {"dataref": "memory://elsewhere/_/20260101/x"}, "object_unread"),
        (Objects(), {}, "no_cloud_store"),
    ],
)
async def test_what_cannot_be_examined_and_copied_closes_the_cloud_by_name(
    objects: Objects, broken: dict[str, Any], why: str
) -> None:
    claim = await kept(objects if objects.local else stores(), "hello", "text/plain")
    changed = as_value(msgspec.structs.replace(claim, **broken))
    plan, subtasks, _ = await planned(router_of(objects), task="auto", inputs={"text": changed})
    assert subtasks.keys() == {"local.intent"}
    assert [attempt.side for attempt in plan.steps[0].attempts] == ["local"]
    assert plan.decisions[0].forbidden["cloud"] == (why,)
    plan, subtasks, _ = await planned(router_of(objects), task="away", inputs={"text": changed})
    assert plan.answer is not None
    assert plan.answer.error is not None
    assert plan.answer.error.code == "no_placement"
    assert why in plan.answer.error.message
    assert cloud_words(objects) == b"" if objects.cloud else True


async def test_a_sensitive_text_keeps_the_whole_request_at_the_edge() -> None:
    objects = stores()
    for content_type, value in (
        ("text/plain", SECRET),
        ("application/json", {"rows": [{"who": SECRET}]}),
        (None, {"deep": [SECRET]}),
        ("application/octet-stream", SECRET.encode()),
    ):
        claim = await kept(objects, value, content_type)
        plan, subtasks, _ = await planned(router_of(objects), task="auto", inputs={"x": [as_value(claim)]})
        assert plan.request.privacy.level == "high"
        assert plan.decisions[0].forbidden["cloud"] == ("privacy",)
        assert subtasks.keys() == {"local.intent"}
        plan, _, _ = await planned(router_of(objects), task="away", inputs={"x": as_value(claim)})
        assert plan.answer is not None
    assert cloud_words(objects) == b""


async def test_a_masked_text_is_copied_with_placeholders() -> None:
    objects = stores()
    claim = await kept(objects, f"{SECRET}, or so", "text/plain")
    router = router_of(objects, examiner=Words(maskable=["jane roe"]))
    plan, subtasks, _ = await planned(router, task="away", inputs={"text": as_value(claim), "n": 1})
    sent = claim_of(subtasks["cloud.away"].inputs["text"])
    assert sent is not None
    assert await objects.get(sent, tenant=None) == b"the patient is [PERSON_1], or so"
    assert plan.request.privacy.masked
    assert b"jane" not in cloud_words(objects)


async def test_steps_that_take_no_claim_may_leave_where_others_may_not() -> None:
    objects = stores(cloud=False)
    claim = await kept(objects, IMAGE)
    _, subtasks, _ = await planned(
        router_of(objects), task="two", inputs={"image": as_value(claim), "text": "hello"}
    )
    assert subtasks.keys() == {"local.look", "cloud.say"}


async def test_a_claim_among_params_leaves_for_nowhere() -> None:
    objects = stores()
    claim = await kept(objects, "hello")
    plan, subtasks, _ = await planned(
        router_of(objects), task="auto", inputs={"text": "x"}, params={"p": as_value(claim)}
    )
    assert subtasks.keys() == {"local.intent"}
    assert plan.decisions[0].forbidden["cloud"] == ("object_unread",)


class Broken:
    """A cloud store that takes nothing."""

    def __init__(self, base: str) -> None:
        self.base = base

    async def put(self, data: bytes, **_: Any) -> Claim:
        raise StoreAway("away")

    async def get(self, claim: Claim, **_: Any) -> bytes:
        raise StoreAway("away")

    async def close(self) -> None: ...


async def test_a_copy_that_fails_plans_the_request_again_without_the_cloud() -> None:
    objects = stores()._replace(cloud=Broken("memory://cloud"))
    claim = await kept(objects, IMAGE)
    plan, _, _ = await planned(router_of(objects), task="away", inputs={"image": as_value(claim)})
    assert plan.answer is not None
    assert plan.answer.decisions[0].forbidden["cloud"] == ("no_cloud_store",)


@pytest.mark.parametrize("content_type", ["application/json", "application/msgpack", None])
async def test_the_claim_of_all_inputs_is_taken_apart(content_type: str | None) -> None:
    objects = stores()
    content = {"text": "from the object", "mark": 7, "big": "x" * 300_000}
    data = (
        msgspec.json.encode(content)
        if content_type == "application/json"
        else msgspec.msgpack.encode(content)
    )
    assert objects.local is not None
    claim = await objects.local.put(data, content_type=content_type, tenant="acme")
    _, subtasks, _ = await planned(
        router_of(objects), task="home", tenant="acme", claim=claim, inputs={"mark": 8}
    )
    inputs = subtasks["local.home"].inputs
    assert (inputs["text"], inputs["mark"]) == ("from the object", 8)
    big = claim_of(inputs["big"])
    assert big is not None
    assert big.content_type is not None
    assert await objects.get(big, tenant="acme") == b"x" * 300_000
    assert subtasks["local.home"].claim is None


@pytest.mark.parametrize(
    ("value", "changed", "told"),
    [
        ({"a": 1}, {"sha256": "0" * 64}, "sha256"),
        ({"a": 1}, {"dataref": "memory://nowhere/_/20260101/x"}, "another object store"),
        ([1, 2], {}, "no map of inputs"),
        (b"\xc1", {"content_type": "application/msgpack"}, "application/msgpack"),
        ({"a": 1}, {"size": 65 * 2**20}, "at most"),
    ],
)
async def test_a_claim_that_cannot_be_read_is_answered(
    value: Any, changed: dict[str, Any], told: str
) -> None:
    objects = stores()
    claim = msgspec.structs.replace(await kept(objects, value), **changed)
    plan, subtasks, _ = await planned(router_of(objects), task="home", claim=claim)
    assert subtasks == {}
    assert plan.answer is not None
    assert plan.answer.error is not None
    assert plan.answer.error.code == "object_missing"
    assert told in plan.answer.error.message


async def test_of_another_tenant_nothing_is_read() -> None:
    objects = stores()
    claim = await kept(objects, {"text": SECRET}, tenant="acme")
    plan, _, _ = await planned(router_of(objects), task="home", claim=claim, tenant="evil")
    assert plan.answer is not None
    assert plan.answer.error is not None
    assert plan.answer.error.code == "object_missing"
    plan, _, _ = await planned(
        router_of(objects), task="auto", inputs={"text": as_value(claim)}, tenant="evil"
    )
    assert plan.decisions[0].forbidden["cloud"] == ("object_unread",)


async def test_a_store_that_hangs_holds_up_nobody_else() -> None:
    class Hanging(FsspecStore):
        async def get(self, *_: Any, **__: Any) -> bytes:
            await asyncio.sleep(60)
            return b""

    objects = stores()._replace(local=Hanging("memory://hangs"))
    claim = Claim(dataref="memory://hangs/_/20260101/x", sha256="0" * 64, size=9)
    lane, router = RequestLane(), router_of(objects)
    slow = asked(0, id="slow", task="home", claim=claim)
    async with asyncio.timeout(2):
        await router.handle(Batch(lane, [slow, asked(1, id="quick", task="home", inputs={"a": 1})]))  # type: ignore[arg-type]
    assert [plan.request.id for plan in lane.plans] == ["quick"]
    assert lane.absorbed == [0]
    await router.close()
    assert [offsets for offsets, _ in lane.settles] == [[1]], "the next owner reads it again"


def test_equal_objects_make_equal_keys() -> None:
    def key(**fields: Any) -> str:
        claim = {"dataref": "memory://a/x", "sha256": "a" * 64, "size": 3, **fields}
        return answer_key(Request(task="t", inputs={"image": claim}), "t", "v", ())

    assert key() == key(dataref="memory://a/y")
    assert key() != key(sha256="b" * 64)
    assert key() != key(content_type="image/png")


async def test_an_answer_is_kept_for_an_equal_object() -> None:
    rules = ruled({"away": {"side": "cloud", "cache": True}})
    cache = MemoryCache(lambda: 1.0)
    objects = stores()
    router = router_of(objects, rules=rules, cache=cache)
    claims = [await kept(objects, IMAGE) for _ in range(2)]
    keys = {
        (await planned(router, id=claim.dataref[-9:], task="away", inputs={"image": as_value(claim)}))[
            0
        ].cache
        for claim in claims
    }
    assert len(keys) == 1
    assert None not in keys
