"""docs/workers.md: its code is served, its commands are run, and what it says of answers is what comes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.roles import Role, edgeway
from workers.catalogue import load_app

TEXT = (Path(__file__).parents[1] / "docs" / "workers.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("docs") / "summaries.py"
    path.write_text(blocks("python")[0], encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def worker(app: Path) -> Iterator[Role]:
    role = Role(app.parent, "worker", "--app", str(app), "--no-kafka").start()
    try:
        yield role.wait_ready()
    finally:
        role.kill()


def test_each_piece_of_code_is_an_app(tmp_path: Path) -> None:
    names = []
    for number, code in enumerate(blocks("python")):
        path = tmp_path / f"example_{number}.py"
        path.write_text(code, encoding="utf-8")
        names += [backend.card.capability for backend in load_app(str(path))]
    assert names == ["nlp/summarize", "nlp/sentiment", "nlp/translate"]


def test_each_curl_is_answered_as_shown(worker: Role) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("curl")]
    assert len(lines) == 3
    answers = [_curl(line, worker.port) for line in lines]
    (shown,) = (json.loads(block) for block in blocks("json"))
    assert answers[0].keys() == shown.keys()
    for key in shown.keys() - {"id", "timings"}:
        assert answers[0][key] == shown[key]
    assert answers[0]["timings"].keys() == shown["timings"].keys()
    assert [answer["output"]["summary"] for answer in answers[1:]] == ["One.", "One. Two."]


def _curl(line: str, port: int) -> dict[str, Any]:
    command, *words = shlex.split(line)
    to = ["-sS", "--max-time", "20", "--connect-to", f"local-nlp:80:127.0.0.1:{port}"]
    done = subprocess.run([command, *to, *words], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_the_errors_it_lists_are_those_there_are(worker: Role) -> None:
    url = f"http://127.0.0.1:{worker.port}"
    told = [
        _curl(f"curl {url}/summarize -H content-type:application/json -d '{body}'", worker.port)["detail"]
        for body in ('{"text": ""}', '{"text": 5}')
    ]
    assert told[0] == "nlp/summarize: there is no sentence in it - at inputs.text"
    assert told[1].removeprefix("nlp/summarize: ") in TEXT


def test_its_commands_are_understood(app: Path) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("edgeway")]
    shown = next(line for line in lines if "capabilities show nlp/summarize --app" in line)
    words = shlex.split(shown, comments=True)[1:]
    done = edgeway(*[str(app) if word == "summaries.py" else word for word in words])
    assert done.returncode == 0, done.stderr
    assert "sentences` is how many, from 1 on" in done.stdout
    from edgeway.cli import parser

    for line in lines:
        parser().parse_args(shlex.split(line, comments=True)[1:])


def test_every_flag_it_names_is_one() -> None:
    found = edgeway("worker", "--help").stdout + edgeway("capabilities", "list", "--help").stdout
    flags = set(re.findall(r"(--[a-z][a-z-]+)", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)))
    assert {flag for flag in flags if flag not in found} == set()
