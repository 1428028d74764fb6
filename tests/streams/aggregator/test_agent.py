"""The aggregator over a log: what it answers, what it finishes, what it does after a crash."""

from __future__ import annotations

import pytest

from schemas.codec import decode
from schemas.ids import conflicting, scoped
from schemas.messages import Attempt, Checkpoint, Failure, Merge, Result, Step, Subtask
from streams import metrics
from streams.aggregator import Limits
from streams.aggregator.answered import Answered
from streams.delivery.records import Batch, Cleared
from streams.merge import Merged
from streams.tracing import within
from tests.helpers.aggregation import (
    CLOUD,
    CLOUD_FIRST,
    LOCAL,
    LOCAL_LAST,
    T0,
    Host,
    World,
    high,
    partial,
    plan,
    step,
)


@pytest.fixture
def world():
    return World()


async def test_a_request_is_answered_once_and_everything_is_finished(world):
    host = Host(world)
    asked = plan(tenant="acme", task="intent", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    world.append(asked)
    world.append(partial(asked))
    await host.settled()
    (found,) = world.answers()
    assert (found.id, found.tenant, found.task, found.status) == ("r", "acme", "intent", "ok")
    (entry,) = world.results
    assert entry.key == scoped("acme", "r").encode()
    span = within(asked.request.traceparent, scoped("acme", "r"), "result")
    assert ("traceparent", str(span).encode()) in entry.headers
    assert ("content-type", b"application/msgpack") in entry.headers
    assert world.committed == 2


async def test_the_answer_comes_in_the_format_of_the_request(world):
    host = Host(world)
    asked = plan(reply_format="json")
    world.append(asked)
    world.append(partial(asked))
    await host.settled()
    assert world.results[0].value.startswith(b"{")
    assert ("content-type", b"application/json") in world.results[0].headers


async def test_an_open_join_pins_its_offsets_and_later_ones_do_not(world):
    host = Host(world)
    first, second = plan("1"), plan("2")
    for event in (first, second, partial(second)):
        world.append(event)
    await host.settled()
    assert world.committed == 0
    assert host.aggregator.open_joins == 1
    world.append(partial(first))
    await host.settled()
    assert world.committed == 4


async def test_a_partial_before_its_plan_waits_for_it(world):
    host = Host(world)
    asked = plan()
    world.append(partial(asked))
    await host.pass_time(4_000)
    world.append(asked)
    await host.settled()
    assert [found.status for found in world.answers()] == ["ok"]


async def test_a_partial_without_a_plan_is_dropped_after_five_seconds(world):
    host = Host(world)
    world.append(partial("nobody"))
    await host.settled()
    await host.pass_time(4_900)
    assert world.committed == 0
    await host.pass_time(200)
    assert world.committed == 1
    assert host.aggregator.counts.orphans == 1


async def test_late_and_repeated_records_are_finished_and_counted(world):
    host = Host(world)
    asked = plan()
    for event in (
        asked,
        asked,
        partial(asked, confidence=0.1),
        partial(asked, confidence=0.1),
        partial(asked, side="cloud", attempt=1),
    ):
        world.append(event)
    await host.settled()
    assert host.aggregator.counts.duplicates == 2
    world.append(partial(asked, attempt=0))
    world.append(asked)
    await host.settled()
    assert len(world.answers()) == 1
    assert world.committed == 7
    assert (host.aggregator.counts.late, host.aggregator.counts.duplicates) == (1, 3)


async def test_a_dispatch_is_the_whole_subtask_and_cloud_needs_a_clearance(world):
    host = Host(world)
    asked = plan("r", step(max_batch=4), tenant="t", params={"p": 1})
    world.append(asked)
    world.append(partial(asked, confidence=0.5))
    await host.read()
    (entry,) = host.lane.waiting
    (output,) = entry[1]
    assert output.topic == "cloud.nlp.intent"
    subtask = decode(output.value, Subtask)
    key = scoped("t", "r")
    assert (subtask.id, subtask.trigger, subtask.tenant) == (f"{key}/s/cloud/1", "weak", "t")
    assert (subtask.inputs, subtask.params, subtask.max_batch) == ({"text": "hello"}, {"p": 1}, 4)
    assert subtask.deadline == asked.request.deadline
    assert output.key == subtask.id.encode()


async def test_cloud_dispatches_are_cleared_for_their_very_bytes(world):
    host = Host(world)
    seen = []
    host.lane.settle = lambda offsets, outputs=(): seen.extend(outputs)
    asked = plan()
    world.append(asked)
    world.append(partial(asked, confidence=0.5))
    await host.read()
    (output,) = seen
    assert isinstance(output, Cleared)
    assert output.clearance.covers(output.record.value)


async def test_a_high_verdict_never_leaves_and_the_weak_answer_is_used(world):
    host = Host(world)
    asked = high(plan())
    world.append(asked)
    world.append(partial(asked, confidence=0.5))
    await host.settled()
    assert world.subtasks() == []
    (found,) = world.answers()
    assert (found.status, found.output, found.approximate) == ("ok", "s/local/0", True)


async def test_a_high_verdict_with_nothing_local_is_an_error(world):
    host = Host(world)
    asked = high(plan("r", step("s", LOCAL, CLOUD)))
    world.append(asked)
    world.append(partial(asked, error=True))
    await host.settled()
    (found,) = world.answers()
    assert (found.status, found.error.code) == ("error", "no_placement")


async def test_silence_is_acted_upon_by_the_tick(world):
    host = Host(world)
    world.append(plan())
    await host.settled()
    await host.pass_time(499)
    assert world.subtasks() == []
    await host.pass_time(1)
    assert [subtask.trigger for subtask in world.subtasks()] == ["silent"]
    await host.pass_time(9_500)
    assert [found.error.code for found in world.answers()] == ["deadline_exceeded"]
    assert world.committed == len(world.joins)


async def test_overdue_work_is_answered_the_moment_it_is_read(world):
    host = Host(world)
    world.clock.time = T0 + 60_000
    world.append(plan())
    await host.read()
    host.lane.acknowledge()
    assert [found.error.code for found in world.answers()] == ["deadline_exceeded"]


async def test_reply_to_gets_a_copy_only_where_it_is_listed(world):
    host = Host(world, replies=frozenset({"results.mine"}))
    for name, reply in (("a", "results.mine"), ("b", "results.other"), ("c", "requests"), ("d", "../x")):
        asked = plan(name, reply_to=reply)
        world.append(asked)
        world.append(partial(asked))
    await host.settled()
    assert [(copy.topic, decode(copy.value, Result).id) for copy in world.others] == [("results.mine", "a")]
    warned = {found.id: found.warnings for found in world.answers()}
    assert warned["a"] == ()
    assert all("reply_to" in warned[name][0] for name in "bcd")


async def test_an_output_too_large_is_left_out(world):
    host = Host(world)
    asked = plan("r", step("a", LOCAL), step("b", LOCAL), merge=Merge(strategy="collect"))
    world.append(asked)
    for name in "ab":
        world.append(partial(asked, name, output="x" * 700_000))
    await host.settled()
    (found,) = world.answers()
    assert (found.status, found.error.code, found.output, found.sides["a"]) == (
        "error",
        "result_too_large",
        None,
        "local",
    )


async def test_an_output_that_json_cannot_say_is_an_error(world):
    host = Host(world)
    asked = plan(reply_format="json")
    world.append(asked)
    world.append(partial(asked, output={"n": float("nan")}))
    await host.settled()
    (found,) = world.answers()
    assert (found.status, found.error.code) == ("error", "bad_output")


async def test_a_strategy_of_a_user_may_return_anything(world):
    host = Host(world, strategies={"odd": lambda parts, params: Merged({object()})})
    asked = plan("r", step("s", LOCAL), merge=Merge(strategy="odd"))
    world.append(asked)
    world.append(partial(asked))
    await host.settled()
    assert [found.error.code for found in world.answers()] == ["merge_failed"]


async def test_a_repeated_id_with_other_content_is_a_conflict_and_disturbs_nothing(world):
    host = Host(world)
    asked, other = plan(), plan(digest="other")
    for event in (asked, other, other, partial(asked), other):
        world.append(event)
    await host.settled()
    found = {result.id: result for result in world.answers()}
    assert len(world.results) == 2
    assert found["r"].status == "ok"
    assert found[conflicting("r", "other")].error.code == "id_conflict"
    assert world.committed == 5


async def test_a_bad_record_fails_the_open_join_that_it_belongs_to(world):
    host = Host(world)
    world.append(plan("1"))
    world.append(plan("2"))
    world.append(b"\xc1 rubbish", key="1")
    world.append(b"\xc1 rubbish", key="3")
    world.append(b"\xc1 rubbish")
    world.append(partial("2"))
    await host.settled()
    found = {result.id: result for result in world.answers()}
    assert {name: result.status for name, result in found.items()} == {"1": "error", "2": "ok", "3": "error"}
    assert found["1"].error.code == "malformed"
    assert found["1"].missing == ("s",)
    assert len(world.others) == 3
    assert world.committed == 6


async def test_a_partial_with_an_odd_subtask_id_is_dead_lettered(world):
    host = Host(world)
    odd = partial("r")
    world.append(type(odd)(subtask="odd", deadline=T0))
    await host.settled()
    assert [letter.topic for letter in world.others] == ["dead-letters"]
    assert world.committed == 1


async def test_at_the_limit_orphans_go_first_and_new_plans_are_overloaded(world):
    host = Host(world, Limits(joins=2, orphans=1))
    world.append(partial("x"))
    world.append(partial("y"))
    for name in "123":
        world.append(plan(name))
    await host.settled()
    assert [(found.id, found.error.code) for found in world.answers()] == [("3", "overloaded")]
    assert (host.aggregator.counts.shed, host.aggregator.counts.orphans) == (1, 1)


async def test_bytes_are_a_limit_too(world):
    host = Host(world, Limits(bytes=10_000))
    world.append(partial("x", output="x" * 9_000))
    world.append(plan("1", inputs={"text": "x" * 5_000}))
    world.append(plan("2", inputs={"text": "x" * 5_000}))
    world.append(plan("3"))
    await host.settled()
    assert host.aggregator.counts.orphans == 1
    assert [(found.id, found.error.code) for found in world.answers()] == [("3", "overloaded")]
    world.append(partial("1"))
    await host.settled()
    world.append(plan("4"))
    await host.settled()
    assert host.aggregator.open_joins == 2


LONG = {"deadline": T0 + 600_000}


async def test_a_long_join_is_checkpointed_and_pins_only_its_last_checkpoint(world):
    host = Host(world)
    asked = plan("long", step("a", LOCAL), step("b", LOCAL), **LONG)
    world.append(asked)
    world.append(partial(asked, "a", cost=0.5))
    await host.settled()
    for number in range(1, 5):
        await host.pass_time(30_000)
        assert world.committed == len(world.joins) - 1
        assert len(world.joins) == 2 + number
    assert isinstance(decode(world.joins[-1].value, Checkpoint), Checkpoint)
    await host.crash()
    world.append(partial(asked, "b"))
    await host.settled()
    (found,) = world.answers()
    assert (found.status, found.cost, found.output) == ("ok", 0.5, {"a": "a/local/0", "b": "b/local/0"})
    assert world.committed == len(world.joins)


@pytest.mark.parametrize("written", [True, False])
async def test_a_crash_while_a_checkpoint_is_written_loses_nothing(world, written):
    host = Host(world)
    asked = plan("long", step("a", LOCAL), step("b", LOCAL), **LONG)
    world.append(asked)
    world.append(partial(asked, "a"))
    await host.settled()
    world.clock.time += 30_000
    host.aggregator.tick(world.clock.time)
    await host.crash(written=written)
    world.append(partial(asked, "b"))
    await host.settled()
    assert [found.status for found in world.answers()] == ["ok"]
    assert world.committed == len(world.joins)


async def test_a_checkpoint_keeps_what_was_started(world):
    host = Host(world)
    asked = plan("long", step(on_slow="wait"), **LONG)
    world.append(asked)
    world.append(partial(asked, confidence=0.5))
    await host.settled()
    await host.pass_time(30_000)
    assert len(world.subtasks()) == 1
    await host.crash()
    await host.settled()
    assert len(world.subtasks()) == 1


async def test_a_new_owner_drops_what_is_answered_and_goes_on_with_the_rest(world):
    host = Host(world)
    pinned, done = plan("pinned"), plan("done")
    for event in (pinned, done, partial(done)):
        world.append(event)
    await host.settled()
    assert world.committed == 0
    await host.crash()
    await host.settled()
    assert [found.id for found in world.answers()] == ["done"]
    world.append(partial(pinned, confidence=0.2))
    await host.settled()
    await host.crash()
    await host.settled()
    assert [subtask.id for subtask in world.subtasks()] == ["pinned/s/cloud/1"] * 2
    world.append(partial(pinned, side="cloud", attempt=1))
    await host.settled()
    assert [found.id for found in world.answers()] == ["done", "pinned"]
    assert world.committed == len(world.joins)


async def test_nothing_is_concluded_before_the_backlog_is_read(world):
    host = Host(world)
    asked = plan()
    world.append(asked)
    world.append(partial(asked, error=True))
    world.append(partial(asked))
    await host.crash()
    await host.read(2)
    world.clock.time += 1_000
    host.aggregator.tick(world.clock.time)
    assert not host.aggregator.is_caught_up
    assert host.lane.waiting == []
    await host.settled()
    assert world.subtasks() == []
    assert [found.output for found in world.answers()] == ["s/local/0"]


async def test_a_backlog_that_ends_in_a_gap_holds_nobody_up(world):
    host = Host(world)
    world.append(plan())
    await host.crash()
    host.lane.end = 7
    await host.caught_up()
    assert not host.aggregator.is_caught_up
    await host.pass_time(5_000)
    assert host.aggregator.is_caught_up
    await host.pass_time(10_000)
    assert [found.status for found in world.answers()] == ["error"]


class Broken(World):
    def read(self, topic, partition, since_ms):
        self.clock.time += 20_000
        raise ConnectionError("no broker")


async def test_results_that_cannot_be_read_do_not_silence_anyone():
    world = Broken()
    host = Host(world)
    asked = plan()
    world.append(asked)
    world.append(partial(asked))
    await host.crash()
    await host.settled()
    assert [found.status for found in world.answers()] == ["ok"]
    assert host.aggregator.counts.degraded == 1


async def test_a_backlog_beyond_the_limits_is_shed_once_it_is_known_what_was_answered(world):
    host = Host(world, Limits(joins=2))
    for name in "1234":
        world.append(plan(name))
    world.append(partial("1"))
    host.lane.alive = False
    world.committed = 0
    await host.crash()
    for _ in range(5):
        await host.read(1)
    await host.settled()
    assert {found.id: found.status for found in world.answers()} == {"3": "error", "4": "error", "1": "ok"}


async def test_a_plan_of_other_rules_replaces_one_without_answers(world):
    host = Host(world)
    first = plan()
    second = plan(
        "r",
        Step(
            name="t", capability="c", attempts=(Attempt(side="local", triggers=("first",), capability="c"),)
        ),
        rules="v2",
    )
    for event in (first, second, partial(second, "t")):
        world.append(event)
    await host.settled()
    assert [(found.rules, found.output) for found in world.answers()] == [("v2", "t/local/0")]
    assert world.committed == 3


async def test_a_revoked_lane_does_nothing(world):
    host = Host(world)
    asked = plan()
    world.append(asked)
    await host.read()
    lane = host.lane
    host.aggregator.revoked(lane)
    host.aggregator.tick(T0 + 60_000)
    world.append(partial(asked))
    await host.read()
    assert lane.waiting == []
    assert host.aggregator.open_joins == 0


async def test_answered_ids_are_forgotten_in_time_but_not_while_they_are_young():
    answered = Answered(Limits(answered=10, answered_least_ms=1_000, answered_most=100, answered_ms=60_000))
    for number in range(200):
        answered.add(f"id{number}", "d", T0 + number)
    assert len(answered) == 100
    assert "id199" in answered
    assert answered.conflicts("id199", "e")
    assert not answered.conflicts("id199", "d")
    assert not answered.conflicts("id199", None)
    answered.add("late", None, T0 + 5_000)
    assert not answered.conflicts("late", "any")
    for _ in range(3):
        answered.add("late", None, T0 + 5_000)
    assert len(answered) == 10
    answered.add("later", None, T0 + 100_000)
    assert len(answered) == 1


async def test_a_record_that_is_handed_out_again_still_pins_its_join(world):
    host = Host(world)
    world.append(plan())
    world.append(partial("r", confidence=0.2))
    await host.read()
    await host.aggregator.handle(Batch(host.lane, world.joins))
    host.lane.acknowledge()
    assert world.committed == 0


async def test_every_record_is_absorbed_or_finished_once_it_is_handled(world):
    host = Host(world, Limits(orphans=1))
    for event in (plan(), partial("x"), partial("y"), partial("r", confidence=0.1), plan("2")):
        world.append(event)
    await host.read()
    host.lane.acknowledge()
    assert host.lane.window.frontier == host.lane.window.next
    assert world.committed == 0


async def test_orphans_of_a_takeover_wait_anew(world):
    host = Host(world)
    world.append(partial("r"))
    world.append(partial("other"))
    await host.crash()
    await host.read(1)
    await host.pass_time(4_900)
    await host.pass_time(4_900)
    assert host.aggregator.counts.orphans == 0
    world.append(plan())
    await host.settled()
    assert [found.status for found in world.answers()] == ["ok"]
    await host.pass_time(200)
    assert host.aggregator.counts.orphans == 1


async def test_a_plan_that_comes_again_after_a_takeover_is_known_as_answered(world):
    host = Host(world)
    asked = plan()
    world.append(asked)
    world.append(partial(asked))
    await host.settled()
    world.clock.time += 12_000
    world.append(asked)
    await host.crash()
    await host.settled()
    await host.crash()
    await host.caught_up()
    world.append(asked)
    await host.settled()
    assert len(world.answers()) == 1
    assert world.committed == 4


async def test_other_content_under_an_answered_id_is_a_conflict_after_a_takeover_too(world):
    host = Host(world)
    asked = plan()
    world.append(asked)
    world.append(partial(asked))
    await host.settled()
    world.append(plan(digest="other"))
    world.append(plan(digest="other"))
    await host.crash()
    await host.settled()
    assert [(found.id, found.status) for found in world.answers()] == [
        ("r", "ok"),
        (conflicting("r", "other"), "error"),
    ]
    assert world.committed == 4


async def test_checkpoints_do_not_add_up(world):
    host = Host(world, Limits(bytes=4_000))
    world.append(plan("long", step("a", LOCAL), inputs={"text": "x" * 2_000}, **LONG))
    await host.settled()
    for _ in range(4):
        await host.pass_time(30_000)
    world.append(plan("new", **LONG))
    await host.settled()
    assert host.aggregator.open_joins == 2


async def test_a_bad_record_that_was_answered_is_not_answered_again_by_a_takeover(world):
    host = Host(world)
    world.append(b"\xc1", key="r")
    await host.read()
    await host.crash(written=True)
    await host.settled()
    assert [found.error.code for found in world.answers()] == ["malformed"]
    assert world.committed == 1


async def test_a_cancelled_request_is_answered_so_by_the_next_tick(world):
    host = Host(world)
    asked = plan("r", tenant="acme")
    world.append(asked)
    world.append(partial(asked, confidence=0.2, cost=0.25))
    await host.settled()
    host.aggregator.cancel(scoped("acme", "r"), world.clock.now())
    assert world.answers() == []
    await host.settled()
    (found,) = world.answers()
    assert (found.status, found.error.code, found.cost, found.tenant) == ("error", "cancelled", 0.25, "acme")
    assert world.committed == len(world.joins)
    assert host.aggregator.counts.cancelled == 1
    world.append(partial(asked, side="cloud", attempt=1))
    host.aggregator.cancel(scoped("acme", "r"), world.clock.now())
    await host.settled()
    assert len(world.answers()) == 1


async def test_a_cancelled_partial_closes_the_request_before_its_cancellation_is_read(world):
    host = Host(world)
    asked = plan("r")
    error = Failure(code="cancelled", message="the caller cancelled the request")
    world.append(asked)
    world.append(partial(asked, error=error, output=None, confidence=None))
    await host.settled()
    assert [(found.id, found.error.code) for found in world.answers()] == [("r", "cancelled")]
    host.aggregator.cancel("r", world.clock.now())
    await host.settled()
    assert host.aggregator.counts.cancelled == len(world.answers()) == 1


async def test_a_plan_that_comes_after_its_cancellation_is_closed_at_once(world):
    cancelled: set[str] = {"r"}
    host = Host(world, cancelled=cancelled)
    world.append(plan("r"))
    world.append(plan("q"))
    await host.settled()
    assert [(found.id, found.error.code) for found in world.answers()] == [("r", "cancelled")]
    cancelled.add("q")  # told of by nobody: the next owner finds it
    await host.crash()
    await host.settled()
    assert [found.id for found in world.answers()] == ["r", "q"]


async def test_a_cancellation_during_a_takeover_cancels_what_is_not_answered(world):
    host = Host(world)
    world.append(plan("done"))
    world.append(plan("open"))
    world.append(partial("done"))
    await host.read()
    await host.crash(written=True)
    await host.read()
    for name in ("done", "open"):
        host.aggregator.cancel(name, world.clock.now())
    await host.settled()
    assert [(found.id, found.status) for found in world.answers()] == [("done", "ok"), ("open", "error")]
    assert host.aggregator.open_joins == 0


async def test_what_is_closed_further_down_the_batch_dispatches_nothing(world):
    host = Host(world)
    asked = plan("r", step("s", CLOUD_FIRST, LOCAL_LAST))
    world.append(asked)
    world.clock.time += 600
    world.append(partial(asked, side="cloud"))
    await host.settled()
    assert [found.status for found in world.answers()] == ["ok"]
    assert world.subtasks() == []


async def test_a_late_batch_with_plans_of_two_rules_breaks_nothing(world):
    host = Host(world)
    world.append(plan("r", step("s", CLOUD_FIRST, LOCAL_LAST)))
    world.append(plan("r", step("t", LOCAL), rules="v2"))
    world.clock.time += 600
    await host.settled()
    assert [subtask.id for subtask in world.subtasks()] == ["r/s/local/1"]


async def test_a_full_table_gives_what_is_answered_already(world):
    host = Host(world, Limits(joins=1))
    world.append(plan("held"))
    world.append(plan("given", answer=Result(id="given", status="ok", output=1)))
    world.append(plan("shed"))
    await host.settled()
    assert [(found.id, found.status) for found in world.answers()] == [("given", "ok"), ("shed", "error")]


async def test_degraded_answers_are_counted_by_their_words(world):
    def count(kind: str) -> float:
        return metrics.DEGRADED.labels(kind)._value.get()

    before = count("cloud_slow"), count("low_confidence")
    host = Host(world)
    asked = plan()
    world.append(asked)
    world.append(partial(asked, confidence=0.1))
    await host.settled()
    await host.pass_time(600)
    assert (count("cloud_slow"), count("low_confidence")) == (before[0] + 1, before[1] + 1)


async def test_a_checkpoint_tells_whose_an_id_is_that_two_requests_share(world):
    """The first one is written again; a takeover then reads the second one before it."""
    host = Host(world)
    world.append(plan("r", step("s", LOCAL), deadline=T0 + 90_000))
    world.append(plan("pin", deadline=T0 + 90_000))
    world.append(plan("r", step("s", LOCAL), digest="other", deadline=T0 + 90_000))
    await host.settled()
    (refused,) = world.answers()
    assert (refused.error.code, refused.digest) == ("id_conflict", "other")
    await host.pass_time(31_000)
    world.committed = 1  # as long as the one between is open
    await host.crash()
    world.append(partial("r", cost=0.5))
    await host.settled()
    assert [(found.id, found.digest, found.status) for found in world.answers()[1:]] == [("r", "d", "ok")]
