"""Nothing times out, falls silent or is escalated because of a restart alone: the log decides."""

from __future__ import annotations

import pytest

from tests.helpers.aggregation import CLOUD_FIRST, LOCAL, LOCAL_LAST, T0, Host, World, partial, plan, step

DEADLINE = T0 + 10_000


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("answered_at", [T0 + 500, DEADLINE + 2_000])
async def test_an_answer_that_came_while_nobody_owned_the_partition_counts(
    world: World, answered_at: int
) -> None:
    """Also one that came beyond the deadline: with an owner the request would have been told of its end,
    and as nobody has told it yet, an answer is worth more than an error."""
    host = Host(world)
    asked = plan("r", step("s", LOCAL))
    world.append(asked)
    await host.settled()
    host.lane.alive = False
    world.clock.time = answered_at
    world.append(partial(asked))
    world.clock.time = DEADLINE + 5_000
    await host.crash()
    await host.settled()
    (found,) = world.answers()
    assert (found.status, found.output, found.error) == ("ok", "s/local/0", None)
    assert world.committed == len(world.joins)


async def test_a_service_that_answered_during_the_restart_was_not_silent(world: World) -> None:
    host = Host(world)
    asked = plan("r", step("s", CLOUD_FIRST, LOCAL_LAST, threshold=None, slow_ms=200))
    world.append(asked)
    await host.settled()
    world.clock.time += 100
    world.append(partial(asked, side="cloud", attempt=0))
    await host.crash()
    world.clock.time += 6_000
    await host.settled()
    assert world.subtasks() == [], "the fallback was started"
    (found,) = world.answers()
    assert (found.status, found.approximate, found.degraded) == ("ok", False, ())


async def test_what_is_open_keeps_its_whole_deadline(world: World) -> None:
    host = Host(world)
    asked = plan("r", step("s", LOCAL))
    world.append(asked)
    await host.settled()
    for _ in range(3):
        world.clock.time += 2_000
        await host.crash()
        await host.settled()
    assert world.answers() == []
    world.clock.time = DEADLINE - 1
    world.append(partial(asked))
    await host.settled()
    assert [found.status for found in world.answers()] == ["ok"]
