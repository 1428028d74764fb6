"""A table and its successors under any history, against what a request may expect whatever happens."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from schemas.ids import conflicting
from schemas.messages import Attempt, Merge, Partial, Result, Trigger, Verdict
from streams.aggregator import Limits
from tests.helpers.aggregation import partial, plan, step
from tests.helpers.succession import Succession, cost_of, keys_of

OLDER = Result(id="o", status="ok", output={}, cached=True, age_ms=1, approximate=True)
RECENT_MS = 10_000


def on(side: Any, *triggers: Trigger) -> Attempt:
    """An attempt there; the cloud costs."""
    return Attempt(
        side=side, triggers=triggers, capability="nlp/intent", max_cost=0.5 if side == "cloud" else 0.0
    )


LOCAL, CLOUD_FIRST = on("local", "first"), on("cloud", "first")
CLOUD = on("cloud", "weak", "failed", "silent")
LOCAL_LAST = on("local", "failed", "silent")
FED = {"x": "steps.s.key"}
SHAPES = {
    "auto": (step("s", LOCAL, CLOUD),),
    "fallback": (step("s", CLOUD_FIRST, LOCAL_LAST, threshold=None, slow_ms=200),),
    "patient": (step("s", LOCAL, CLOUD, on_slow="wait"),),
    "pair": (step("s", LOCAL, CLOUD), step("t", CLOUD_FIRST, LOCAL_LAST)),
    "chain": (step("s", LOCAL), step("t", LOCAL, CLOUD, after=("s",), inputs=FED)),
    "fan": (
        step("s", LOCAL, CLOUD),
        step("t", CLOUD_FIRST, LOCAL_LAST, after=("s",), inputs=FED),
        step("u", LOCAL, CLOUD, after=("s", "t"), inputs={"x": "steps.t.key", "y": "steps.s.key"}),
    ),
    "private": (step("s", LOCAL, CLOUD), step("t", LOCAL, CLOUD, after=("s",), inputs=FED)),
    "circle": (step("s", LOCAL, after=("t",)), step("t", LOCAL, after=("s",))),
}
"""The plans under rules v1; under v2 each is the one before it, under v3 the same again."""
NAMES = tuple(SHAPES)
MORE: dict[str, dict[str, Any]] = {
    "private": {"privacy": Verdict(level="high", reasons=("declared",))},
    "fallback": {"stand_in": OLDER},
}


def answer_of(name: str, of: str, side: str, attempt: int, kind: str) -> Partial:
    fields: dict[str, Any] = {
        "good": {"confidence": 0.95},
        "sure": {"confidence": None},
        "weak": {"confidence": 0.2},
        "error": {"error": True},
    }[kind]
    subtask = f"{name}/{of}/{side}/{attempt}"
    return partial(
        name, of, side, attempt, output={"key": 1, "of": subtask}, cost=cost_of(of, side, attempt), **fields
    )


class Histories(RuleBasedStateMachine):
    """Events in any order, twice or never; time, acknowledgements, cancellations and takeovers between."""

    @initialize(tight=st.booleans())
    def begin(self, tight: bool) -> None:
        self.world = Succession(Limits(joins=4, orphans=3) if tight else None)
        self.expected: set[str] = set()
        self.times: dict[str, tuple[int, int]] = {}

    def is_recent(self, name: str) -> bool:
        """Whether a repetition may still be expected: later ones are known from the log no more."""
        return all(self.world.now - at <= RECENT_MS for key, at, _ in self.world.results if key == name)

    @rule(
        name=st.sampled_from(NAMES),
        rules=st.sampled_from(["v1", "v2", "v3"]),
        digest=st.sampled_from(["d", "d", "d", "e"]),
        ms=st.sampled_from([300, 10_000, 90_000]),
    )
    def ask(self, name, rules, digest, ms):
        if not self.is_recent(name):
            return
        now = self.world.now
        accepted, deadline = self.times.setdefault(name, (now, now + ms))
        shape = name if rules != "v2" else NAMES[NAMES.index(name) - 1]
        digest = digest if name in self.expected else "d"
        self.expected.add(name if digest == "d" else conflicting(name, digest))
        fields = {"accepted": accepted, "deadline": deadline, "digest": digest, **MORE.get(name, {})}
        self.world.append(plan(name, *SHAPES[shape], rules=rules, merge=Merge(strategy="collect"), **fields))

    @rule(
        name=st.sampled_from(NAMES),
        of=st.sampled_from("sstu"),
        side=st.sampled_from(["local", "cloud"]),
        attempt=st.integers(0, 1),
        kind=st.sampled_from(["good", "sure", "weak", "weak", "error"]),
        times=st.integers(1, 2),
    )
    def answer(self, name, of, side, attempt, kind, times):
        for _ in range(times):
            self.world.append(answer_of(name, of, side, attempt, kind))

    @rule(name=st.sampled_from(NAMES))
    def damage(self, name):
        if name in self.expected and self.is_recent(name):
            self.world.append(name)

    @rule(name=st.sampled_from(NAMES))
    def cancel(self, name):
        join = self.world.table._joins.get(name)
        self.world.cancel(name)
        if join is not None and not self.world.table.absorbing:
            code = join.doom.code
            self.world.tick()
            assert name in self.world.said
            assert code in ("cancelled", "malformed")

    @rule(most=st.integers(1, 6), refuses=st.sampled_from([False, False, True]))
    def read(self, most, refuses):
        self.world.read(most, refuses=refuses)

    @rule(most=st.integers(1, 3))
    def hear(self, most):
        self.world.hear(most)

    @rule(ms=st.sampled_from([1, 60, 250, 600, 2_000, 6_000, 31_000]), refuses=st.booleans())
    def wait(self, ms, refuses):
        self.world.now += ms
        self.world.tick(refuses=refuses)

    @rule(most=st.none() | st.just(1))
    def acknowledge(self, most):
        self.world.acknowledge(most if most is None else min(most, len(self.world.pending)))

    @rule(written=st.sampled_from([0, 1, 99]))
    def take_over(self, written):
        self.world.take_over(written)

    @rule()
    def rest(self):
        self.world.settle()
        overdue = {name for name, (_, deadline) in self.times.items() if deadline <= self.world.now}
        assert overdue <= keys_of(self.world.results)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        world.settle()
        for ms in (91_000, 6_000):
            world.now += ms
            world.settle()
        assert keys_of(world.results) == self.expected
        assert world.committed == len(world.log), "an offset stays unfinished"
        assert (len(world.table), world.table.size) == (0, 0)


TestTableHistories = Histories.TestCase
TestTableHistories.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
