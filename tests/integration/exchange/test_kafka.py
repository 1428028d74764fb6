"""The exchange on Kafka: its records, its restart, and its broker's."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiokafka import AIOKafkaProducer

from edgeway.errors import KafkaUnreachable, SendUnknown, TopicsWrong
from edgeway.exchange import KafkaExchange
from schemas import codec, headers, ids
from schemas.messages import Cancel
from streams.router.admission import admit
from streams.settings import Settings
from tests.helpers.caller import read_topics
from tests.helpers.kafka import Kafka, create_topics
from tests.helpers.redis import free_port
from tests.integration.exchange.conftest import TOPICS, Answerer
from tests.integration.exchange.test_contract import WAIT_S, asked, ok

pytestmark = pytest.mark.integration
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize("fmt", ["msgpack", "json"])
async def test_the_router_reads_what_was_sent(topics: str, fmt: str) -> None:
    request = asked(tenant="acme", inputs={"raw": b"\x00\xff", "nested": {"b": [1, 2.5, None], "a": (1,)}})
    async with KafkaExchange(Settings(kafka=topics), source="edgeway/test") as exchange:
        sent = await exchange.send(request, traceparent=PARENT, tracestate="a=b", fmt=fmt)  # type: ignore[arg-type]
        await exchange.cancel(sent.id, "acme")
    records = await read_topics(topics, ["requests", "cancellations"])
    (written,) = [one for one in records if (one.topic, one.key) == ("requests", sent.key.encode())]
    (cancelled,) = [one for one in records if (one.topic, one.key) == ("cancellations", sent.key.encode())]
    admitted = admit(written)
    assert (admitted.scope, admitted.digest, admitted.fmt) == (sent.key, sent.digest, fmt)
    assert (admitted.headers.traceparent, admitted.headers.tracestate) == (PARENT, "a=b")
    assert admitted.headers.ce_source == "edgeway/test"
    assert codec.decode(cancelled.value, Cancel) == Cancel(id=sent.id, tenant="acme")
    assert headers.read(cancelled.headers).ce_type == "edgeway.cancel"
    assert cancelled.timestamp >= written.timestamp


async def test_a_repeat_after_a_restart_has_its_answer_at_once(topics: str) -> None:
    settings, request = Settings(kafka=topics), asked()
    async with KafkaExchange(settings, source="edgeway/test") as exchange:
        sent = await exchange.send(request)
    # It is answered while nobody is there.
    async with AIOKafkaProducer(bootstrap_servers=topics, acks="all") as producer:
        await Answerer(producer).reply(ok(sent.id, 1, digest=sent.digest))
    async with KafkaExchange(settings, source="edgeway/test", remember_s=600) as exchange:
        assert exchange.known(sent.key) is not None
        again = await exchange.send(request)
        assert not exchange.is_open(again.key)
        assert (await exchange.answer(again, 0.01)).output == 1
        assert exchange.health().lag == 0
    async with KafkaExchange(settings, source="edgeway/test", remember_s=600, remember_bytes=1) as exchange:
        assert exchange.known(sent.key) is None
        assert await exchange.earlier(sent.key, int(time.time() * 1000) - 60_000) is not None
    async with KafkaExchange(settings, source="edgeway/test") as exchange:
        assert exchange.known(sent.key) is None
        assert exchange.health().remembered == 0


async def test_where_no_kafka_is_it_says_so() -> None:
    with pytest.raises(KafkaUnreachable):
        await KafkaExchange(Settings(kafka=f"127.0.0.1:{free_port()}"), source="edgeway/test").__aenter__()


@pytest.mark.faults
async def test_a_broker_that_restarts_loses_nobody_an_answer(own_kafka: Kafka) -> None:
    settings = Settings(kafka=own_kafka.bootstrap, send_timeout_s=1.0)
    with pytest.raises(TopicsWrong, match="requests is missing"):
        await KafkaExchange(settings, source="edgeway/test").__aenter__()
    await create_topics(own_kafka.bootstrap, TOPICS)
    async with KafkaExchange(settings, source="edgeway/test", remember_s=600) as exchange:
        before = [await exchange.send(asked()) for _ in range(20)]
        waiting = [asyncio.ensure_future(exchange.answer(sent, 60.0)) for sent in before]
        await asyncio.to_thread(own_kafka.kill_sync, 1)
        late = asked()
        with pytest.raises(SendUnknown):
            await exchange.send(late)
        assert exchange.is_open(late.id or "")
        restart = asyncio.ensure_future(asyncio.to_thread(own_kafka.restart_sync, 1))
        silent = exchange.health().silent_s
        await restart
        assert silent > 0.5
        async with asyncio.timeout(30.0):
            while True:
                try:
                    again = await exchange.send(late)
                    break
                except SendUnknown:
                    continue
        waiting.append(asyncio.ensure_future(exchange.answer(again, 60.0)))
        async with AIOKafkaProducer(bootstrap_servers=own_kafka.bootstrap, acks="all") as producer:
            for sent in (*before, again):
                await Answerer(producer).reply(ok(sent.id, sent.id, digest=sent.digest))
        found = await asyncio.gather(*waiting)
        assert [result.output for result in found] == [sent.id for sent in (*before, again)]
        async with asyncio.timeout(WAIT_S):
            while not exchange.is_healthy:
                await asyncio.sleep(0.05)
    keys = [record.key for record in await read_topics(own_kafka.bootstrap, ["requests"])]
    assert {ids.scoped(None, late.id or "").encode(), *(sent.key.encode() for sent in before)} == set(keys)


@pytest.mark.faults
@pytest.mark.slow
async def test_partitions_whose_leader_dies_go_on(three_brokers: Kafka) -> None:
    where = three_brokers.bootstrap
    await create_topics(where, TOPICS, 3, {"min.insync.replicas": "2"})
    settings = Settings(kafka=where, send_timeout_s=5.0)

    async def ask(exchange: KafkaExchange, answerer: Answerer) -> None:
        sent = await exchange.send(asked())
        await answerer.reply(ok(sent.id, 1, digest=sent.digest))
        assert (await exchange.answer(sent, 30.0)).output == 1

    async with (
        AIOKafkaProducer(bootstrap_servers=where, acks="all") as producer,
        KafkaExchange(settings, source="edgeway/test", remember_s=600) as exchange,
    ):
        for number in (2, 3):
            await asyncio.to_thread(three_brokers.kill_sync, number)
            until = time.monotonic() + 60.0
            done = 0
            while done < 20:
                try:
                    await ask(exchange, Answerer(producer))
                    done += 1
                except SendUnknown:
                    assert time.monotonic() < until
            assert exchange.is_healthy
            await asyncio.to_thread(three_brokers.restart_sync, number)
