"""Every fault at the size of the acceptance: `make faults`, about an hour.

One by hand: `python -m tests.faults.harness kills --json FILE`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.harness.scenarios import SCENARIOS

pytestmark = [pytest.mark.faults, pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("name", SCENARIOS)
async def test_full(name: str, tmp_path: Path) -> None:
    entry = SCENARIOS[name]
    report = await entry.run(tmp_path, entry.full)
    assert not report.wrong, json.dumps(report.as_dict(), indent=2)
