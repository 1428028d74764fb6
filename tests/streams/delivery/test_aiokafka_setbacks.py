"""What a member of a group makes of the errors of its client, whose tasks are scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka import errors as kafka

from streams.delivery.drivers import aiokafka_setbacks, aiokafka_source
from streams.delivery.drivers.aiokafka_client import ended, stopped
from streams.delivery.drivers.aiokafka_follower import AiokafkaFollower
from streams.delivery.drivers.aiokafka_source import AiokafkaSource
from streams.delivery.errors import DeliveryError, Unavailable
from streams.delivery.records import Place

RESET = ConnectionResetError(104, "Connection reset by peer")
CLOSED = RuntimeError(
    "unable to perform operation on <TCPTransport closed=True reading=False 0x5>; the handler is closed"
)
RECORDS = {TopicPartition("in", 0): ["a record"]}


def at_rest() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def fallen(error: BaseException) -> asyncio.Future[None]:
    future = at_rest()
    future.set_exception(error)
    return future


class Coordinator:
    def __init__(self) -> None:
        self._coordination_task = at_rest()
        self._heartbeat_task: asyncio.Future[None] | None = at_rest()
        self._commit_refresh_task: asyncio.Future[None] | None = None
        self.pending: list[Exception] = []
        self.rejoins = 0

    def check_errors(self) -> None:
        if self.pending:
            raise self.pending.pop(0)

    def request_rejoin(self) -> None:
        self.rejoins += 1


class Consumer:
    """Plays what getmany gives or raises, and nothing after that."""

    def __init__(self, script: Sequence[Any] = ()) -> None:
        self._script = list(script)
        self._closed = False
        self._coordinator = Coordinator()
        self._client = type("Client", (), {"_sync_task": at_rest()})
        self._fetcher = type("Fetcher", (), {"error_future": at_rest()})

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[str]]:
        step = self._script.pop(0) if self._script else {}
        if isinstance(step, Exception):
            raise step
        return dict(step)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiokafka_source, "PAUSE_S", 0)


async def member(*script: Any) -> tuple[AiokafkaSource, Consumer]:
    source = AiokafkaSource({}, ["in"], "g")
    consumer = Consumer(script)
    source._consumer = consumer
    return source, consumer


@pytest.mark.parametrize(
    "error",
    [
        kafka.KafkaConnectionError("closed"),
        kafka.NodeNotReadyError(),
        kafka.RequestTimedOutError(),
        kafka.NotCoordinatorForGroupError(),
        kafka.UnknownError(),
        kafka.KafkaError("Unexpected error in join group response"),
        RESET,
        BrokenPipeError(32, "Broken pipe"),
        CLOSED,
    ],
)
async def test_a_broker_that_is_away_for_a_moment_ends_no_member(error: Exception) -> None:
    source, _ = await member(error, RECORDS)
    assert await source.poll(0.01, 10) == {}
    assert await source.poll(0.01, 10) == {Place("in", 0): ["a record"]}


@pytest.mark.parametrize(
    "error", [kafka.GroupAuthorizationFailedError("g"), KeyError("a bug"), AttributeError("a bug")]
)
async def test_what_no_later_poll_mends_ends_it_at_once(error: Exception) -> None:
    source, _ = await member(error)
    with pytest.raises(DeliveryError, match="the consumer ended") as raised:
        await source.poll(0.01, 10)
    assert raised.value.__cause__ is error


async def test_errors_without_end_are_told_with_their_cause() -> None:
    source, _ = await member(*[CLOSED] * (aiokafka_setbacks.MOST + 1))
    for _ in range(aiokafka_setbacks.MOST):
        assert await source.poll(0.01, 10) == {}
    with pytest.raises(Unavailable, match="in a row") as raised:
        await source.poll(0.01, 10)
    assert raised.value.__cause__ is CLOSED


async def test_records_in_between_are_progress() -> None:
    errors = [RESET] * aiokafka_setbacks.MOST
    source, _ = await member(*errors, RECORDS, *errors)
    found = [await source.poll(0.01, 10) for _ in range(2 * aiokafka_setbacks.MOST + 1)]
    assert len([one for one in found if one]) == 1


@pytest.mark.parametrize("task", ["_heartbeat_task", "_commit_refresh_task"])
@pytest.mark.parametrize("error", [CLOSED, KeyError((1, "group")), RESET])
async def test_a_member_whose_heartbeat_died_joins_again(task: str, error: Exception) -> None:
    source, consumer = await member(error)
    setattr(consumer._coordinator, task, fallen(error))
    assert await source.poll(0.01, 10) == {}
    assert consumer._coordinator.rejoins == 1


async def test_the_check_between_two_polls_takes_errors_no_harder() -> None:
    source, consumer = await member()
    consumer._coordinator.pending = [CLOSED, kafka.GroupAuthorizationFailedError("g")]
    source.check()
    with pytest.raises(DeliveryError):
        source.check()


async def test_a_coordination_that_ended_is_the_end() -> None:
    source, consumer = await member(error := kafka.KafkaError("Unexpected error during coordination"))
    consumer._coordinator._coordination_task = fallen(error)
    with pytest.raises(DeliveryError, match="the consumer ended"):
        await source.poll(0.01, 10)


@pytest.mark.parametrize("end", ["fetcher", "synchronizer"])
async def test_a_dead_task_behind_empty_polls_is_found(end: str) -> None:
    source, consumer = await member()
    follower = AiokafkaFollower({}, "in")
    follower._consumer = consumer
    assert await source.poll(0.01, 10) == {}
    source.check()
    assert await follower.poll(0.01) == []
    if end == "fetcher":
        consumer._fetcher.error_future = fallen(CLOSED)
    else:
        consumer._client._sync_task = fallen(CLOSED)
    with pytest.raises(DeliveryError, match="handler is closed"):
        source.check()
    with pytest.raises(Unavailable, match="handler is closed"):
        await follower.poll(0.01)
    consumer._closed = True
    assert ended(consumer) is None


@pytest.mark.parametrize("error", [kafka.KafkaError(), CLOSED, RESET, asyncio.CancelledError()])
async def test_a_client_that_does_not_stop_in_order_is_left(error: BaseException) -> None:
    async def stop() -> None:
        raise error

    await stopped(stop, "it", 1.0)


async def test_a_client_that_does_not_stop_at_all_is_left() -> None:
    await stopped(asyncio.Event().wait, "it", 0.01)


async def test_who_stops_a_client_can_be_cancelled() -> None:
    task = asyncio.create_task(stopped(asyncio.Event().wait, "it", 5.0))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
