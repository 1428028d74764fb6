"""Rules edited many times under load, every third edit a bad one: nothing is lost and nothing mixed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.codec import decode
from schemas.messages import JoinEvent, Plan
from schemas.rules import Rules, parse_rules
from tests.helpers.caller import Caller, new_id
from tests.helpers.kafka import Kafka, read_all
from tests.helpers.roles import Role, command, fetch
from tests.helpers.spine import PARTITIONS, Spine

pytestmark = pytest.mark.integration

EDITS, FEW_EDITS = 100, 36
RATE = 40.0
POLL_S = 0.05
SEEN_S = 30.0
APP = """
from workers.backends.function import capability


@capability("local/n/a")
@capability("cloud/n/a")
@capability("local/n/b")
def step(n: int) -> dict:
    return {"n": n}
"""
A, B = {"capability": "n/a"}, {"capability": "n/b", "side": "local"}
# The first uses all capabilities: a worker serves those that some task uses when it starts.
SHAPES: list[list[dict[str, Any]]] = [
    [
        {"name": "one", **A, "side": "cloud"},
        {"name": "two", **A},
        {"name": "four", **B, "after": ["one", "two"]},
    ],
    [{"name": "one", **B}],
    [{"name": "one", **A}, {"name": "two", **B}],
    [{"name": "two", **B}, {"name": "three", **A, "after": ["two"]}],
]
CYCLE = {"steps": [{"name": "x", "after": ["y"]}, {"name": "y", "after": ["x"]}]}


def rules(edit: int, app: Path, **more: Any) -> bytes:
    """Rules of their own version for each edit, whose steps have the shapes by turns."""
    work = {"steps": SHAPES[edit % len(SHAPES)], "deadline_ms": 60_000 + edit}
    said = {"apps": [str(app)], "builtin": False, "privacy": {"detectors": []}, "cache_s": 0}
    return json.dumps({**said, "tasks": {"work": work, **more}}, indent=1).encode()


def bad(edit: int, app: Path) -> bytes:
    """A bad edit, each of another kind and content."""
    kinds: list[Callable[[], bytes]] = [
        lambda: rules(edit, app)[: -5 - edit],
        lambda: rules(edit, app, typo={"sid": "local"}),
        lambda: rules(edit, app, circle=CYCLE),
        lambda: rules(edit, app, merged={"merge": {"strategy": "nobodys"}}),
        lambda: rules(edit, app, torn={"side": "local", "fallback_url": "https://a.example/b"}),
    ]
    return kinds[(edit // 3) % len(kinds)]()


class Mounted:
    """`rules.json` as Kubernetes mounts a ConfigMap: a link through `..data`, which each change swaps."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rules.json"
        self._folder = folder
        self._numbers = itertools.count()

    def write(self, raw: bytes) -> None:
        fresh = self._folder / f"..{next(self._numbers)}"
        fresh.mkdir()
        (fresh / "rules.json").write_bytes(raw)
        link = self._folder / "..data_tmp"
        link.symlink_to(fresh.name)
        link.rename(self._folder / "..data")
        if not self.path.is_symlink():
            self.path.symlink_to("..data/rules.json")


class Edited:
    """`rules.json` as some editors save it: emptied and written again, in pieces."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rules.json"

    def write(self, raw: bytes) -> None:
        with self.path.open("wb", buffering=0) as file:
            for start in range(0, len(raw), len(raw) // 2 + 1):
                file.write(raw[start : start + len(raw) // 2 + 1])


def figure(role: Role, name: str) -> float:
    """A metric's value; 0 where it has none yet."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", fetch(role.port, "/metrics")[1], re.MULTILINE)
    return 0.0 if found is None else float(found[1])


async def until(role: Role, seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(SEEN_S):
        while not await asyncio.to_thread(seen):
            await asyncio.sleep(POLL_S / 2)


async def taken(roles: list[Role], version: str) -> None:
    """Return once every role follows `version`."""
    for role in roles:
        await until(role, lambda role=role: figure(role, f'edgeway_rules_info{{version="{version}"}}') == 1)


async def turned_down(roles: list[Role], times: int) -> None:
    name = 'edgeway_rules_reloads_total{outcome="refused"}'
    for role in roles:
        await until(role, lambda role=role: figure(role, name) == times)
        assert figure(role, "edgeway_rules_refused") == 1


@contextlib.asynccontextmanager
async def load(caller: Caller) -> AsyncIterator[list[str]]:
    """Requests at a steady rate; all are answered `ok`, once."""
    sent: list[str] = []

    async def run() -> None:
        while True:
            request = {"id": new_id("load"), "task": "work", "n": len(sent)}
            await caller.send(json.dumps(request).encode(), partition=len(sent) % PARTITIONS)
            sent.append(str(request["id"]))
            await asyncio.sleep(1 / RATE)

    task = asyncio.create_task(run())
    try:
        yield sent
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    answers = [await caller.answer(request_id) for request_id in sent]
    assert [answer.body for answer in answers if answer.status != "ok"] == []
    assert [name for name in sent if len(caller.all_of(name)) != 1] == []


async def beats_are_read(caller: Caller) -> None:
    """The workers' first beats go out once all roles are ready: until the router has them it refuses."""
    async with asyncio.timeout(SEEN_S):
        while (await caller.ask({"task": "work", "n": 0})).status != "ok":
            await asyncio.sleep(POLL_S)


def verify(rules_by_version: dict[str, Rules], plans: list[Plan], caller: Caller) -> set[str]:
    """Every plan and answer is of one version as a whole; the versions that planned something."""
    used = set()
    for plan in plans:
        wanted = rules_by_version[plan.rules].tasks["work"]
        assert [(step.name, step.capability, step.after) for step in plan.steps] == [
            (step.name, step.capability, step.after) for step in wanted.steps
        ]
        accepted = plan.request.accepted
        assert plan.request.deadline - accepted == wanted.deadline_ms
        body = caller.all_of(plan.request.id)[0].body
        assert body["rules"] == plan.rules
        assert body["sides"].keys() == {step.name for step in wanted.steps}
        used.add(plan.rules)
    return used


def started(form: str, spine: Spine) -> list[Role]:
    fast = ("--rules-poll-s", f"{POLL_S}")
    kinds = {
        "up": [("up", "--partitions", str(PARTITIONS))],
        "pieces": [("router",), ("aggregator",), ("worker",)],
    }
    return [spine.start(*words, *fast) for words in kinds[form]]


@pytest.fixture
def spine(own_kafka: Kafka, tmp_path: Path) -> Iterator[Spine]:
    """A Kafka of its own: the roles of other tests follow other rules."""
    made = Spine(own_kafka, tmp_path, tmp_path / "rules.json")
    yield made
    for role in made.roles:
        role.kill()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("form", "kind"), [("up", Mounted), ("pieces", Edited)])
@pytest.mark.parametrize("edits", [FEW_EDITS, pytest.param(EDITS, marks=pytest.mark.slow)])
async def test_edits_under_load(
    spine: Spine, tmp_path: Path, form: str, kind: type[Mounted] | type[Edited], edits: int
) -> None:
    app = tmp_path / "reload_app.py"
    app.write_text(APP, encoding="utf-8")
    file = kind(tmp_path)
    known: dict[str, Rules] = {}

    def write(raw: bytes) -> str:
        found = parse_rules(raw)
        known[found.version] = found
        file.write(raw)
        return found.version

    write(rules(0, app))
    await asyncio.to_thread(spine.apply)
    roles = started(form, spine)
    for role in roles:
        await asyncio.to_thread(role.wait_ready)
    async with Caller(spine.kafka) as caller:
        await beats_are_read(caller)
        async with load(caller) as sent:
            for edit in range(1, edits + 1):
                if edit % 3 == 0:
                    file.write(bad(edit, app))
                    await turned_down(roles, edit // 3)
                else:
                    await taken(roles, write(rules(edit, app)))
            # Of rules that name a new capability `up` makes the topics, and the others say who must.
            await taken(roles, write(rules(0, app, later={"capability": "n/later", "scale_to_zero": True})))
        records = await read_all(spine.kafka, "joins", PARTITIONS)
        events = [decode(record.value, JoinEvent) for record in records]
        mine = set(sent)
        plans = [event for event in events if isinstance(event, Plan) and event.request.id in mine]
        assert len(plans) == len(sent) > edits
        used = verify(known, plans, caller)
        assert len(used) > edits / 3, "the load met few of the versions"
    adopted = 'edgeway_rules_reloads_total{outcome="adopted"}'
    for role in roles:
        assert figure(role, adopted) == edits - edits // 3 + 1
        assert figure(role, "edgeway_rules_refused") == 0
        assert role.said.count("is refused and rules") == edits // 3
    about = ("--kafka", spine.kafka, "--rules", str(spine.rules), "--partitions", str(PARTITIONS))
    checked = await asyncio.to_thread(command, "topics", "check", *about)
    if form == "up":
        assert checked.returncode == 0, checked.stdout
    else:
        assert "local.n.later" in checked.stdout
        assert all("edgeway topics apply --rules" in role.said for role in roles)
    await asyncio.to_thread(spine.stop)
