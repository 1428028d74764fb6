"""An aggregator killed with joins open: its successor has all of them from the log, and repeats nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.takeover import kafka, take_over

pytestmark = [pytest.mark.faults, pytest.mark.integration, pytest.mark.timeout(240)]


async def test_what_was_open_is_answered_and_what_was_answered_is_not_answered_again(tmp_path: Path) -> None:
    async with kafka() as bootstrap:
        taken = await take_over(bootstrap, tmp_path, "short", joins=200, answered=50)
    assert taken.missing == 0
    assert taken.repeated == 0
    assert taken.failed == 0, "something timed out by the restart alone"
    assert taken.backlog >= 200 + 2 * 50, "what was answered was not read again, so this shows nothing"
