"""Sending where the broker goes away: what was sent and answered is told all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError, NodeNotReadyError

from edgeway import kafka, sending
from edgeway.client_records import Awaited, Ready, Sender
from edgeway.sending import Line, Listeners, Manner, Outcome
from schemas.messages import Request


class Refusing:
    """A producer without a broker: it takes the first `takes` records and acknowledges none."""

    def __init__(self, takes: int = 0) -> None:
        self.takes = takes
        self.asked = 0

    async def send(self, *_args: Any, **_named: Any) -> asyncio.Future[Any]:
        self.asked += 1
        if self.asked > self.takes:
            raise KafkaTimeoutError
        return asyncio.get_running_loop().create_future()


class Gone:
    """A reader whose broker has gone."""

    async def more(self) -> list[Any]:
        raise NodeNotReadyError


def listeners(sent: list[str]) -> Listeners:
    def no(_value: object) -> None:
        raise AssertionError

    return Listeners(lambda record: sent.append(record.id), no, no, no)


async def lines(count: int) -> AsyncIterator[Line]:
    for number in range(1, count + 1):
        yield number, Request(id=f"r{number}", task="t")


@pytest.mark.parametrize("made", [NodeNotReadyError, KafkaTimeoutError])
async def test_a_client_that_fails_to_stop_hides_no_outcome(
    made: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "STOP_S", 0.01)

    async def stop() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as exc:
            raise made() from exc

    await kafka.stopped(stop, "consumer")


async def test_a_cancellation_that_a_client_lets_out_is_none_of_ours() -> None:
    async def stop() -> None:
        raise asyncio.CancelledError

    await kafka.stopped(stop, "consumer")

    async def hangs() -> None:
        await asyncio.sleep(60)

    stopping = asyncio.ensure_future(kafka.stopped(hangs, "consumer"))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping


@pytest.mark.parametrize("takes", [2, 1000])
async def test_sending_ends_where_no_record_is_acknowledged_any_more(
    takes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SILENCE_S", 0.05)
    producer, outcome, told = Refusing(takes), Outcome(), list[str]()
    sender = Sender(producer, 1)  # type: ignore[arg-type]
    awaited = Awaited.nothing()
    manner = Manner(wait_s=1.0, rate=200.0)
    await sending._send_all(lines(1000), manner, sender, awaited, outcome, listeners(told))
    assert "not sent" in outcome.trouble
    assert 2 < outcome.sent == len(told) == producer.asked < 500
    assert sorted(sender.unacknowledged) == sorted(told) == sorted(awaited.open.values())


async def test_a_reader_that_fails_leaves_the_rest_unanswered() -> None:
    outcome, awaited = Outcome(), Awaited.nothing()
    awaited.expect(Ready("a", "a", b"a", b"", []))
    tell = listeners([])
    await sending._collect(Gone(), awaited, asyncio.Event(), outcome, tell)  # type: ignore[arg-type]
    assert "NodeNotReadyError" in outcome.trouble
    assert list(awaited.open.values()) == ["a"]


def test_the_summary_says_what_was_sent_and_ends_with_five(capsys: pytest.CaptureFixture[str]) -> None:
    from edgeway.cli.send import _end

    outcome = Outcome(sent=3, answered=1, unanswered=["b", "c"], trouble="no broker takes requests any more")
    assert _end(outcome, True, True, False) == 5
    said = capsys.readouterr().err
    assert "no broker takes requests any more" in said
    assert "3 sent, 0 bad lines, 0 not acknowledged, 1 answered, 0 of them errors, 2 unanswered" in said


@pytest.mark.parametrize("flags", [["--file", "-"], ["--task", "t"]])
def test_an_interruption_tells_what_was_sent(
    flags: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from edgeway.cli import main

    async def interrupted(_settings: Any, _lines: Any, _manner: Any, _tell: Any, outcome: Outcome) -> None:
        outcome.sent, outcome.unknown = 7, ["r7"]
        raise KeyboardInterrupt

    monkeypatch.setattr(sending, "send", interrupted)
    assert main(["send", "--kafka", "127.0.0.1:1", *flags]) == 130
    said = capsys.readouterr().err
    assert "7 sent, 0 bad lines, 1 not acknowledged" in said


def test_a_single_request_tells_its_id(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from edgeway.cli import main

    async def send(_settings: Any, _lines: Any, _manner: Any, tell: Listeners, outcome: Outcome) -> None:
        outcome.sent = 1
        tell.sent(Ready("made-up", "made-up", b"", b"", []))

    monkeypatch.setattr(sending, "send", send)
    assert main(["send", "--kafka", "127.0.0.1:1", "--task", "t"]) == 0
    assert capsys.readouterr().out == "made-up\n"
