"""Nothing reaches the cloud by a later attempt or a later step that was not examined as it is sent."""

from __future__ import annotations

import pytest

from schemas.codec import encode
from schemas.messages import Attempt, Examination, Plan, Verdict
from streams.aggregator import clearing
from streams.privacy.examiner import UnknownDetector
from streams.privacy.verdict import NORMAL
from tests.helpers.aggregation import CLOUD, CLOUD_FIRST, LOCAL, Host, World, partial, plan, step

FED = step("t", CLOUD_FIRST, after=("s",), inputs={"x": "steps.s.text", "y": "inputs.text"}, threshold=None)
MASK = {"[EMAIL_1]": "ann.lee@example.org"}
MASKED = Verdict(level="high", reasons=("email",), masked=True)
FORMATS = Examination(detectors=("formats",), mask=("email",))


@pytest.fixture
def world():
    return World()


async def after_first(world: World, asked: Plan, output: object) -> Host:
    host = Host(world)
    world.append(asked)
    world.append(partial(asked, output=output))
    await host.settled()
    return host


async def test_a_harmless_output_goes_on_to_the_cloud(world):
    await after_first(world, plan("r", step("s", LOCAL), FED), {"text": "what a fine day"})
    (sent,) = world.subtasks()
    assert (sent.id, sent.inputs) == ("r/t/cloud/0", {"x": "what a fine day", "y": "hello"})


@pytest.mark.parametrize("text", ["write to ann.lee@example.org", {"deep": ["4111 1111 1111 1111"]}])
async def test_what_an_earlier_step_brought_to_light_stays(world, text):
    asked = plan("r", step("s", LOCAL), FED, examination=FORMATS)
    host = await after_first(world, asked, {"text": text})
    assert world.subtasks() == []
    (found,) = world.answers()
    assert (found.status, found.missing, found.error.code) == ("partial", ("t",), "no_placement")
    assert "ann" not in found.error.message
    assert host.aggregator.open_joins == 0


async def test_a_step_that_can_also_run_here_does(world):
    here = Attempt(side="local", triggers=("failed",), capability="nlp/intent")
    fed = step("t", CLOUD_FIRST, here, after=("s",), inputs={"x": "steps.s"}, threshold=None)
    await after_first(world, plan("r", step("s", LOCAL), fed), {"mail": "ann.lee@example.org"})
    (sent,) = world.subtasks()
    assert (sent.id, sent.inputs) == ("r/t/local/1", {"x": {"mail": "ann.lee@example.org"}})


async def test_what_the_rules_say_of_detectors_holds_here_too(world):
    asked = plan("r", step("s", LOCAL), FED, examination=Examination(detectors=()))
    await after_first(world, asked, {"text": "ann.lee@example.org"})
    assert len(world.subtasks()) == 1


@pytest.mark.parametrize("failure", [UnknownDetector("none"), clearing.BadMask("none")])
async def test_an_examination_that_fails_keeps_it_here(world, monkeypatch, failure):
    def broken(examination: Examination):
        raise failure

    monkeypatch.setattr(clearing, "examiner_of", broken)
    await after_first(world, plan("r", step("s", LOCAL), FED), {"text": "a fine day"})
    assert world.subtasks() == []
    assert world.answers()[0].error.code == "no_placement"


async def test_a_later_attempt_of_a_masked_request_is_masked_again(world):
    text = {"text": "write to ann.lee@example.org"}
    asked = plan("r", step("s", LOCAL, CLOUD), privacy=MASKED, mask=MASK, inputs=text, examination=FORMATS)
    host = Host(world)
    world.append(asked)
    world.append(partial(asked, confidence=0.2))
    await host.settled()
    (sent,) = world.subtasks()
    assert (sent.id, sent.inputs) == ("r/s/cloud/1", {"text": "write to [EMAIL_1]"})
    assert all(b"ann.lee" not in record.value for record in world.others)
    world.append(partial(asked, side="cloud", attempt=1, output="mail [EMAIL_1] today"))
    await host.settled()
    (found,) = world.answers()
    assert (found.output, found.privacy) == ("mail ann.lee@example.org today", MASKED)


async def test_a_later_local_attempt_gets_the_originals(world):
    here = Attempt(side="local", triggers=("failed",), capability="nlp/intent")
    text = {"text": "write to ann.lee@example.org"}
    asked = plan("r", step("s", CLOUD_FIRST, here), privacy=MASKED, mask=MASK, inputs=text)
    host = Host(world)
    world.append(asked)
    world.append(partial(asked, side="cloud", error=True))
    await host.settled()
    assert world.subtasks()[0].inputs == text


async def test_findings_that_the_mask_does_not_cover_stay(world):
    fed = step("t", CLOUD_FIRST, after=("s",), inputs={"x": "steps.s"}, threshold=None)
    asked = plan("r", step("s", LOCAL), fed, privacy=MASKED, mask=MASK, examination=FORMATS)
    await after_first(world, asked, "ann.lee@example.org and bob.ray@example.org")
    assert world.subtasks() == []
    assert world.answers()[0].error.code == "no_placement"


async def test_what_only_the_mask_covers_goes_on_masked(world):
    fed = step("t", CLOUD_FIRST, after=("s",), inputs={"x": "steps.s"}, threshold=None)
    asked = plan("r", step("s", LOCAL), fed, privacy=MASKED, mask=MASK, examination=FORMATS)
    await after_first(world, asked, "from ann.lee@example.org")
    assert world.subtasks()[0].inputs == {"x": "from [EMAIL_1]"}


async def test_many_examinations_let_the_loop_turn(world, monkeypatch):
    """And an answer that is due does not wait for them."""
    order: list[str] = []

    class Slow:
        def examine(self, *parts: object) -> Verdict:
            order.append("examined")
            return NORMAL

    monkeypatch.setattr(clearing, "examiner_of", lambda examination: Slow())
    host = Host(world)
    settle = host.lane.settle
    host.lane.settle = lambda offsets, outputs=(): (
        order.extend(output.topic for output in outputs if not hasattr(output, "record")),
        settle(offsets, outputs),
    )
    for number in range(3):
        asked = plan(str(number), step("s", LOCAL), FED)
        world.append(asked)
        world.append(partial(asked, output={"text": "x"}))
    done = plan("done")
    world.append(done)
    world.append(partial(done))
    await host.read()
    assert order == ["results", "examined", "examined", "examined"]
    assert len(host.lane.waiting) == 4


async def test_a_dispatch_that_waits_for_its_examination_is_none_yet(world, monkeypatch):
    host = Host(world)
    asked = plan("r", step("s", LOCAL), FED, deadline=1_100_000)
    world.append(asked)
    world.append(partial(asked, output={"text": "x"}))
    monkeypatch.setattr(host, "rest", host.aggregator._errands.rest)
    monkeypatch.setattr(host.aggregator._examining, "wake", lambda: None)
    await host.read()
    (tenure,) = host.aggregator._tenures.values()
    (join,) = tenure.table._joins.values()
    assert join.checkpoint().started.keys() == {"r/s/local/0"}
    assert encode(join.checkpoint())
    await host.crash()
    monkeypatch.undo()
    await host.settled()
    assert [sent.id for sent in world.subtasks()] == ["r/t/cloud/0"]
