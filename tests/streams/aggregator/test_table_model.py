"""Small cases in full: every order, every acknowledgement, a crash at every point."""

from __future__ import annotations

import msgspec
import pytest

from schemas.messages import Attempt
from tests.helpers.aggregation import LOCAL, LOCAL_LAST, partial, plan, step
from tests.helpers.exploring import Explorer
from tests.helpers.succession import cost_of

CLOUD = Attempt(side="cloud", triggers=("weak", "failed", "silent"), capability="nlp/intent", max_cost=0.5)
CLOUD_FIRST = msgspec.structs.replace(CLOUD, triggers=("first",))
ONE = plan("one", step("s", LOCAL, CLOUD))
"""Answered by the cloud, as the answer from here is weak."""
TWO = plan("two", step("s", CLOUD_FIRST, LOCAL_LAST, threshold=None))
"""Answered from here, as the cloud fails."""


def answer(name, side, attempt, **fields):
    output = {"of": f"{name}/s/{side}/{attempt}"}
    return partial(name, "s", side, attempt, output=output, cost=cost_of("s", side, attempt), **fields)


WEAK = answer("one", "local", 0, confidence=0.5)
BETTER = answer("one", "cloud", 1)
FAILED = answer("two", "cloud", 0, error=True)
INSTEAD = answer("two", "local", 1)


SMALL = [
    pytest.param((ONE, WEAK, BETTER, TWO, INSTEAD), 580, 4_975, id="a weak and a better answer"),
    pytest.param((ONE, BETTER, TWO, FAILED, INSTEAD), 580, 4_985, id="a failure and what comes instead"),
    pytest.param((ONE, BETTER, BETTER, TWO, INSTEAD), 320, 2_936, id="an answer twice"),
    pytest.param((ONE, ONE, WEAK, TWO, FAILED, INSTEAD), 2_433, 9_104, id="a plan twice"),
]


@pytest.mark.parametrize(("events", "before", "after"), SMALL)
def test_two_requests_and_three_partials_with_a_crash_at_every_point_of_every_order(events, before, after):
    """`before` and `after` are the different states of the owner that dies and of the one that follows."""
    explorer = Explorer(events)
    explorer.run()
    assert explorer.states == {"before": before, "after": after}
    assert explorer.endings > before // 2  # with everything lost that is not in the log at the crash


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_requests_and_three_partials_each():
    explorer = Explorer((ONE, WEAK, BETTER, BETTER, TWO, FAILED, INSTEAD, INSTEAD))
    explorer.run()
    assert explorer.states["before"] > 60_000
