"""One follower of cancellations a process, shared by its roles."""

from __future__ import annotations

import pytest

from edgeway.roles.cancellations import follow_cancellations
from edgeway.roles.process import Process
from schemas import codec
from schemas.messages import Cancel
from schemas.rules import parse_rules
from schemas.topics import CANCELLATIONS
from streams.delivery import Record
from streams.settings import Settings
from tests.helpers.delivery import LogRecord


def _record(value: bytes, at: int) -> Record:
    return LogRecord(CANCELLATIONS, 0, 0, at, None, value, ())


async def test_every_role_gets_the_same_set(caplog: pytest.LogCaptureFixture) -> None:
    process = Process.create("up", Settings(kafka="127.0.0.1:1"), parse_rules(b"{}"))
    heard: list[tuple[str, int]] = []
    try:
        steps = len(process.before)
        cancelled = follow_cancellations(process)
        assert follow_cancellations(process, lambda key, at: heard.append((key, at))) is cancelled
        assert len(process.before) == steps + 1
        take = process.shared["cancellations"].take
        now = process.clock.now()
        take(_record(codec.encode(Cancel(id="a", tenant="t")), now))
        take(_record(b"nonsense", now))
        take(_record(codec.encode(Cancel(id="b")), now))
        assert heard == [("\x1ft\x1fa", now), ("b", now)]
        assert "b" in cancelled
        assert len(cancelled) == 2
        assert "cancels nothing" in caplog.text
    finally:
        await process.stop()
