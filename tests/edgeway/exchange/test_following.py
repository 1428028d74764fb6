"""Following a topic whatever happens to its followers."""

from __future__ import annotations

import pytest

from edgeway.exchange import following
from edgeway.exchange.following import Following
from streams.delivery import Unavailable
from tests.helpers.aggregation import T0, Entry
from tests.helpers.followed import Log, Memory


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LEAST_PAUSE_S", 0.01)


async def test_a_successor_goes_on_where_the_last_one_stood() -> None:
    log = Log(1)
    topic = Following(log.make, None)
    log.append("before", b"0", T0)
    await topic.start()
    log.append("a", b"1", T0)
    assert [record.value for record in await topic.poll(0.01)] == [b"1"]
    log.away = True
    assert await topic.poll(0.01) == []
    assert topic.follower is None
    log.append("b", b"2", T0)
    assert await topic.poll(0.01) == []
    assert 0 <= topic.silent_s() < 5
    log.away = False
    assert [record.value for record in await topic.poll(0.01)] == [b"2"]
    assert [follower.closed for follower in log.followers] == [True, False, False]
    await topic.stop()
    assert log.followers[-1].closed


async def test_the_start_tells_that_kafka_is_away() -> None:
    log = Log(1)
    log.away = True
    with pytest.raises(Unavailable):
        await Following(log.make, None).start()


@pytest.mark.parametrize("trouble", ["silent", "grown"])
async def test_a_follower_that_hangs_or_misses_a_partition_is_replaced(
    trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "GROWTH_S", 0.0)

    class Troubled(Memory):
        def silent_s(self) -> float:
            return 100.0 if trouble == "silent" and self is log.followers[0] else 0.0

        async def has_grown(self) -> bool:
            return len(self.positions) < self.partitions

    log = Log(1)

    def make() -> Memory:
        log.followers.append(Troubled(log))
        return log.followers[-1]

    topic = Following(make, None)
    await topic.start()
    if trouble == "grown":
        log.records.append([])
        log.records[1].append(Entry("results", 1, 0, T0, b"k", b"v"))
    await topic.poll(0.01)
    found = await topic.poll(0.01)
    assert topic.opened == 2
    assert log.followers[0].closed
    # A partition that was added is read from its beginning.
    assert len(found) == (1 if trouble == "grown" else 0)
    await topic.stop()
