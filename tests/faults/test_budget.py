"""The budget for real: eight processes on one Redis, killed at random, and what a paid service counted."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.faults.budget.run import Run

pytestmark = [pytest.mark.faults]


@pytest.mark.timeout(90)
async def test_short(tmp_path: Path) -> None:
    report = await Run(tmp_path, seconds=10, day_s=5, kill_every_s=0.7, redis_every_s=4).whole()
    shown = json.dumps(dataclasses.asdict(report), indent=2)
    assert not report.wrong, shown
    assert min(report.kills, report.payments, report.unknown) > 0, shown


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_full(tmp_path: Path) -> None:
    report = await Run(tmp_path, seconds=300, day_s=6, kill_every_s=0.5, redis_every_s=6).whole()
    shown = json.dumps(dataclasses.asdict(report), indent=2)
    print(shown)  # noqa: T201 - these are the figures of docs/budget.md
    assert not report.wrong, shown
    assert min(report.kills, report.payments, report.unknown, report.redis_kills, report.redis_pauses) > 0, (
        shown
    )
    assert report.fullest > 0.99, shown
