"""How a command is typed: as the process was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeway.invocation import invocation

HERE = Path("/home/me/project")
ON_PATH = {"edgeway": "/usr/bin/edgeway", "python3": "/usr/bin/python3"}


@pytest.mark.parametrize(
    ("argv0", "python", "typed"),
    [
        ("/usr/bin/edgeway", "/usr/bin/python3", "edgeway"),
        ("/home/me/project/.venv/bin/edgeway", "/x", ".venv/bin/edgeway"),
        ("/home/me/project/edgeway", "/x", "./edgeway"),
        ("/opt/e/bin/edgeway", "/x", "/opt/e/bin/edgeway"),
        ("edgeway", "/x", "edgeway"),
        ("/lib/edgeway/__main__.py", "/usr/bin/python3", "python3 -m edgeway"),
        ("/lib/edgeway/__main__.py", "/home/me/project/.venv/bin/python", ".venv/bin/python -m edgeway"),
    ],
)
def test_it_is_typed_as_it_was_started(argv0: str, python: str, typed: str) -> None:
    assert invocation(argv0, python, HERE, ON_PATH.get) == typed
