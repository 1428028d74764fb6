"""Every kind of fault in small: what `make test` runs. `tests/faults/test_full.py` has them all, in full.

`plain-json` is not here: the end-to-end tests send bare lines of JSON from a plain client all the time.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.harness.scenarios import SCENARIOS

pytestmark = [pytest.mark.faults, pytest.mark.integration, pytest.mark.timeout(240)]

SHORT = (
    "odd-records",
    "killer",
    "no-workers",
    "broker",
    "callers",
    "privacy",
    "redis",
    "slow-cloud",
    "full-batches",
)


@pytest.mark.parametrize("name", SHORT)
async def test_short(name: str, tmp_path: Path) -> None:
    entry = SCENARIOS[name]
    report = await entry.run(tmp_path, entry.short)
    assert not report.wrong, json.dumps(report.as_dict(), indent=2)
