"""Closing a follower: whatever the client's stop ends in, whoever closes it goes on."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from aiokafka import errors

from streams.delivery.drivers import aiokafka_follower
from streams.delivery.drivers.aiokafka_follower import AiokafkaFollower


class Client:
    """A consumer whose stop ends in `error`, or never where there is none."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    async def stop(self) -> None:
        if self._error is None:
            await asyncio.sleep(60)
        elif isinstance(self._error, asyncio.CancelledError):
            inner = asyncio.ensure_future(asyncio.sleep(60))
            inner.cancel()
            await inner
        else:
            raise self._error


@pytest.mark.parametrize("error", [asyncio.CancelledError(), errors.KafkaError("x"), KeyError("x"), None])
async def test_who_closes_goes_on(
    error: BaseException | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aiokafka_follower, "STOP_S", 0.05)
    follower = AiokafkaFollower({}, "results")
    client: Any = Client(error)
    follower._consumer = client
    with caplog.at_level(logging.WARNING):
        await asyncio.create_task(follower.close())
    assert "a reader of results did not stop" in caplog.text
