"""docs/gateway.md: its examples run as they stand there, and its table of statuses is the one in force."""

from __future__ import annotations

import asyncio
import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from edgeway.gateway.problems import STATUSES
from schemas.messages import Decision, Model, Request, Result, Timings
from tests.edgeway.gateway.serving import Serving
from tests.helpers.exchange import MemoryExchange

PAGE = (Path(__file__).parents[3] / "docs" / "gateway.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```bash\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


async def answered(request: Request) -> Result:
    exchange = serving.exchange
    key = f"\x1f{request.tenant}\x1f{request.id}" if request.tenant else str(request.id)
    exchange.tell(key, "planned", {})
    await asyncio.sleep(0.3 if request.task == "slow" else 0.01)
    exchange.tell(key, "partial", {})
    return Result(
        id=request.id or "",
        status="ok",
        output=dict(sorted(request.inputs.items())),
        confidence=0.9,
        decisions=(Decision(step="summarize", side="local", rule="score"),),
        timings={"summarize": Timings(queue_ms=1.0)},
        models={"summarize": Model(name="m", version="1")},
    )


serving = Serving(answered)


@pytest.fixture(scope="module")
def port() -> object:
    with serving:
        assert isinstance(serving.exchange, MemoryExchange)
        yield serving.port


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 6
    assert PAGE.count("```bash") == len(EXAMPLES)


@pytest.mark.parametrize(("commands", "shown"), EXAMPLES)
def test_an_example_does_what_it_says(port: int, tmp_path: Path, commands: str, shown: str) -> None:
    (tmp_path / ".curlrc").write_text(f'connect-to = "localhost:8080:127.0.0.1:{port}"\n', encoding="utf-8")
    environment = {"PATH": "/usr/bin:/bin", "CURL_HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-ec", commands],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = iter(done.stdout.splitlines())
    for wanted in shown.splitlines():
        pattern = re.sub(r"\[", "[[]", wanted.rstrip()) + "*"
        assert any(fnmatchcase(line, pattern) for line in lines), f"{wanted}\n--- not in\n{done.stdout}"


def test_the_table_of_statuses() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (\d+) \|$", PAGE, re.MULTILINE)
    said = {code: int(status) for codes, status in rows for code in re.findall(r"\w+", codes)}
    assert said == {code: status for code, (status, _) in STATUSES.items()}
