"""docs/reports.md and what docs/reliability.md says of dead letters: their commands are understood, those of
reports are run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from edgeway.cli import main, parser
from edgeway.report import render
from edgeway.report.values import MOST_COLUMNS, MOST_ITEMS, MOST_ROWS
from edgeway.report.words import LONGEST
from schemas.codec import decode
from schemas.messages import Result

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "reports.md").read_text(encoding="utf-8")
SAMPLES = Path(__file__).parent / "data" / "reports.jsonl"


def commands(text: str) -> list[list[str]]:
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    parts = [part.split(" > ")[0] for line in lines for part in line.split(" | ")]
    return [shlex.split(part)[1:] for part in parts]


@pytest.mark.parametrize("page", ["reports.md", "reliability.md"])
def test_every_command_is_understood(page: str) -> None:
    found = commands((DOCS / page).read_text(encoding="utf-8"))
    assert len(found) >= 4
    for words in found:
        parser().parse_args(words)


def test_the_commands_of_the_page_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "answer.jsonl").write_bytes(SAMPLES.read_bytes().splitlines()[1])
    run = [words for words in commands(TEXT) if words[:2] == ["render", "answer.jsonl"]]
    assert len(run) == 3
    for words in run:
        assert main(words) == 0
    assert capsys.readouterr().out.startswith("# Financial report")
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(list((tmp_path / "folder").iterdir())) == 1


def test_its_code_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names = {"result": decode(SAMPLES.read_bytes().splitlines()[1], Result, "json")}
    exec(code, names)
    assert "<title>Third quarter</title>" in str(names["page"])
    assert names["text"] == render(names["result"], "markdown")


def test_its_limits_are_those_there_are() -> None:
    said = re.sub(r"\s+", " ", TEXT)
    assert f"{MOST_ROWS} rows of a table, {MOST_COLUMNS} columns, {MOST_ITEMS} items" in said
    assert f"{LONGEST:,} characters of a text" in said
