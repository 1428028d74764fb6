"""A process that is killed at any point of a change leaves a repository and a cache that are whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.docker import ROOT


@pytest.mark.parametrize(("change", "least"), [("add", 20), ("activate", 8), ("pull", 25)])
def test_a_kill_at_any_point_leaves_nothing_half_done(change: str, least: int, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tests.helpers.kill_points", change, str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["wrong"] == {}
    assert told["points"] >= least
