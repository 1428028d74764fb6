"""docs/tracing.md does what it says."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import time
from pathlib import Path

from edgeway import otlp
from edgeway.cli import parser
from edgeway.roles import tracing
from streams.aggregator import telemetry as of_aggregator
from streams.router import telemetry as of_router
from streams.settings.model import TABLE
from streams.tracing import Span
from tests.helpers.redis import free_port
from workers import telemetry as of_worker

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "tracing.md").read_text(encoding="utf-8")


def test_the_collector_of_the_page_prints_what_it_gets(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    path, port = tmp_path / "collector.py", free_port()
    path.write_text(program, encoding="utf-8")
    words = [sys.executable, str(path), str(port)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            send = otlp.sender(f"http://127.0.0.1:{port}", {}, {"service.name": "edgeway-test"})
            until = time.monotonic() + 20
            while not send([Span("a" * 32, 11, None, "request", 1000, 1042, {"edgeway.status": "ok"})]):
                assert time.monotonic() < until
            assert process.stdout is not None
            line = process.stdout.readline().strip()
        finally:
            process.terminate()
    assert line == f"{'a' * 32} {11:016x} - request 42.0 ms edgeway.status"


def test_the_page_names_the_settings_and_figures_that_there_are() -> None:
    said = re.findall(r"^\| `(\w+)` \| (?:the|file)", PAGE, re.MULTILINE)
    assert sorted(said[:3]) == sorted(name for name, about in TABLE.items() if about.group == "trace")
    assert f"a queue of {otlp.MOST_SPANS:,}" in PAGE
    assert f"within {otlp.CALL_S:.0f} s" in PAGE
    assert f"for up to {tracing.STOP_S} s" in PAGE


def test_the_page_lists_every_attribute() -> None:
    sources = "".join(inspect.getsource(module) for module in (of_aggregator, of_router, of_worker))
    told = set(re.findall(r'"edgeway\.(\w+)"', sources)) - {"privacy", "steps"}
    (text,) = re.findall(r"^Attributes: (.*?)\n\n", PAGE, re.DOTALL | re.MULTILINE)
    assert told <= {name.removeprefix("edgeway.") for name in re.findall(r"`([\w.]+)`", text)}


def test_the_command_of_the_page_is_understood() -> None:
    (line,) = re.findall(r"^edgeway (up .*)$", PAGE, re.MULTILINE)
    args = parser().parse_args(line.split())
    assert args.setting_otlp == "http://127.0.0.1:4318"
