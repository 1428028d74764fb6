from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNSET = {"ORT_DISABLE_TELEMETRY", "CI", "XDG_CACHE_HOME"}  # the first two switch it off


def test_onnx_runtime_sends_and_keeps_nothing_about_this_host(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name not in UNSET}
    env |= {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", "import workers, onnxruntime"], env=env, check=True, timeout=60)
    # Its device id and its queue of events lie under the home folder as soon as it is on.
    assert list(tmp_path.rglob("*")) == []
