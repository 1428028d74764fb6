"""Any history of a log ends well: every request is answered exactly once, and nothing stays unfinished."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from schemas.messages import Examination, Merge, Plan, Verdict
from tests.helpers.aggregation import CLOUD, CLOUD_FIRST, LOCAL, LOCAL_LAST, Host, World, partial, plan, step

SHAPES = {
    "auto": (step(),),
    "fallback": (step("s", CLOUD_FIRST, LOCAL_LAST, threshold=None, slow_ms=200),),
    "patient": (step("s", LOCAL, CLOUD, on_slow="wait"),),
    "pair": (step("s", LOCAL, CLOUD), step("t", LOCAL)),
    "chain": (step("s", LOCAL), step("t", LOCAL, CLOUD, after=("s",), inputs={"x": "steps.s.key"})),
    "masked": (step("s", LOCAL, CLOUD),),
    "fed": (
        step("s", LOCAL),
        step("t", CLOUD_FIRST, LOCAL_LAST, after=("s",), inputs={"x": "steps.s.key", "y": "inputs.text"}),
    ),
    "circle": (step("s", LOCAL, after=("t",)), step("t", LOCAL, after=("s",))),
}
NAMES = tuple(SHAPES)
SECRET = "ann.lee@example.org"
MASKED: dict[str, Any] = {
    "privacy": Verdict(level="high", reasons=("email",), masked=True),
    "mask": {"[EMAIL_1]": SECRET},
    "inputs": {"text": f"write to {SECRET}"},
    "examination": Examination(detectors=("formats",), mask=("email",)),
}
RECENT_MS = 10_000


class Histories(RuleBasedStateMachine):
    """Events in any order, some twice, some never; time, acknowledgements and crashes in between."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.world = World()
        self.asked: dict[str, Plan] = {}
        self.host = self.loop.run_until_complete(self._host())

    async def _host(self) -> Host:
        return Host(self.world)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.finish()
            self.loop.run_until_complete(self.host.aggregator.close())
            self.loop.close()

    def run(self, step) -> None:
        self.loop.run_until_complete(step)

    def is_recent(self, name: str) -> bool:
        """Whether a repetition may still be expected: later ones are known from the log no more."""
        entries = [entry for entry in self.world.results if entry.key == name.encode()]
        return all(self.world.clock.time - entry.timestamp <= RECENT_MS for entry in entries)

    @rule(name=st.sampled_from(NAMES), rules=st.sampled_from(["v1", "v1", "v2"]), long=st.booleans())
    def ask(self, name, rules, long):
        if not self.is_recent(name):
            return
        now = self.world.clock.time
        known = self.asked.get(name)
        times = (
            {"accepted": now, "deadline": now + (90_000 if long else 10_000)}
            if known is None
            else {"accepted": known.request.accepted, "deadline": known.request.deadline}
        )
        fields = {**times, **(MASKED if name == "masked" else {})}
        asked = plan(name, *SHAPES[name], rules=rules, merge=Merge(strategy="collect"), **fields)
        self.asked.setdefault(name, asked)
        self.world.append(asked)

    @rule(
        name=st.sampled_from(NAMES),
        of=st.sampled_from("st"),
        side=st.sampled_from(["local", "cloud"]),
        attempt=st.integers(0, 1),
        confidence=st.sampled_from([None, 0.2, 0.95]),
        error=st.sampled_from([None, None, True]),
    )
    def answer(self, name, of, side, attempt, confidence, error):
        self.world.append(
            partial(name, of, side, attempt, confidence=confidence, error=error, output={"key": of}, cost=0.5)
        )

    @rule(name=st.sampled_from(["fed", "fed", "chain"]))
    def bring_to_light(self, name):
        """What a model here reads may be more than anybody saw before."""
        self.world.append(partial(name, output={"key": SECRET}))

    @rule(name=st.sampled_from(NAMES))
    def damage(self, name):
        if name in self.asked and self.is_recent(name):
            self.world.append(b"\xc1", key=name)

    @rule(most=st.integers(1, 5))
    def read(self, most):
        self.run(self.host.read(most))

    @rule()
    def acknowledge(self):
        self.host.lane.acknowledge()

    @rule(ms=st.sampled_from([1, 60, 500, 2_000, 6_000, 31_000]))
    def wait(self, ms):
        self.world.clock.time += ms
        self.run(self._tick())

    async def _tick(self) -> None:
        self.host.aggregator.tick(self.world.clock.time)

    @rule()
    def rest(self):
        self.run(self.host.settled())
        now = self.world.clock.time
        answered = {entry.key.decode() for entry in self.world.results}
        assert {name for name, asked in self.asked.items() if asked.request.deadline <= now} <= answered

    @rule(written=st.booleans())
    def crash(self, written):
        self.run(self.host.crash(written=written))

    @invariant()
    def nobody_is_answered_twice(self):
        if hasattr(self, "world"):
            keys = [entry.key for entry in self.world.results]
            assert len(keys) == len(set(keys))

    @invariant()
    def nothing_found_reaches_the_cloud(self):
        if hasattr(self, "world"):
            for record in self.world.others:
                assert not (record.topic.startswith("cloud.") and SECRET.encode() in record.value)

    def finish(self) -> None:
        self.run(self.host.pass_time(6_000))
        self.run(self.host.pass_time(100_000))
        self.run(self.host.pass_time(6_000))
        assert {entry.key.decode() for entry in self.world.results} == set(self.asked)
        self.nobody_is_answered_twice()
        assert self.world.committed == len(self.world.joins)
        assert self.host.aggregator.open_joins == 0
        for result in self.world.answers():
            assert (result.status == "ok") == (result.error is None)
            assert set(result.missing) | set(result.sides) == {s.name for s in SHAPES[result.id]}


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("acknowledged", [True, False])
async def test_every_order_of_two_requests_with_a_crash_at_every_point(written, acknowledged):
    """Plan, weak local answer and cloud answer of one request, plan and error of another; 120 orders, 6
    crash points."""
    one, two = plan("one"), plan("two")
    events = (
        one,
        partial(one, confidence=0.5),
        partial(one, side="cloud", attempt=1),
        two,
        partial(two, error=True),
    )
    for order in itertools.permutations(events):
        for crash_after in range(len(events) + 1):
            world = World()
            host = Host(world)
            for number, event in enumerate(order):
                if number == crash_after:
                    await host.crash(written=written)
                world.append(event)
                await host.read()
                if acknowledged:
                    host.lane.acknowledge()
            if crash_after == len(events):
                await host.crash(written=written)
            await host.settled()
            assert [found.id for found in world.answers()] == ["one"]
            assert world.answers()[0].status == "ok"
            await host.pass_time(10_000)
            assert [found.id for found in world.answers()] == ["one", "two"]
            assert world.committed == len(world.joins)
            await host.aggregator.close()
