"""How a command of ours is typed here: as this process was started."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def invocation(argv0: str, python: str, cwd: Path, which: Callable[[str], str | None]) -> str:
    """`edgeway` where the shell finds the program `argv0` under that name, else its path, relative where it
    is below `cwd`. `python` ran it: `python -m edgeway` has `__main__.py` as `argv0`."""
    if Path(argv0).name == "__main__.py":
        return f"{_typed(python, cwd, which)} -m edgeway"
    return _typed(argv0, cwd, which) if os.sep in argv0 else "edgeway"


def _typed(program: str, cwd: Path, which: Callable[[str], str | None]) -> str:
    path = Path(program).absolute()
    found = which(path.name)
    if found is not None and Path(found).absolute() == path:
        return path.name
    if not path.is_relative_to(cwd):
        return str(path)
    below = path.relative_to(cwd)
    # A bare name would be looked for on the PATH.
    return str(below) if len(below.parts) > 1 else f".{os.sep}{below}"
