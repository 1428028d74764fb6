"""Where the data of the tests lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("EDGEWAY_SHARED_DATA", ROOT.parent / "shared" / "data"))


def crayfish() -> Path:
    """The 28x28 classifier of the Crayfish benchmark; it is checked in with the demo."""
    return ROOT / "examples" / "demo" / "models" / "crayfish" / "1" / "model.onnx"


def shared(name: str) -> Path:
    """A file of the shared public data. Skips the test where there is none, with the reason."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"shared data {name} is not here; set EDGEWAY_SHARED_DATA to its folder")
    return path
