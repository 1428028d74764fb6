"""`edgeway render`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from edgeway.cli import main

SAMPLES = Path(__file__).parents[2] / "data" / "reports.jsonl"
TWO = [json.loads(line)["id"] for line in SAMPLES.read_text(encoding="utf-8").splitlines()]


def test_a_file_of_results_as_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", str(SAMPLES)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# 财报分析\n")
    assert "\n---\n\n# Financial report\n" in said


def test_one_of_them_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    assert main(["render", str(SAMPLES), "--id", TWO[1], "-o", str(page), "--title", "Q3 <b>"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "<title>Q3 &lt;b&gt;</title>" in text
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["out", "new", "new/below"])
def test_a_page_for_each_in_a_folder(tmp_path: Path, name: str) -> None:
    lines = [
        json.dumps({"type": "result", "v": 1, "id": name, "status": "ok"}) for name in ("../up", "a b", "..")
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "out").mkdir()
    assert main(["render", str(tmp_path / "in.jsonl"), "--format", "html", "-o", str(tmp_path / name)]) == 0
    names = sorted(path.name for path in (tmp_path / name).iterdir())
    assert names == ["0001-..%2Fup.html", "0002-a%20b.html", "0003-...html"]


def test_standard_input_with_lines_that_are_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = (
        b'{"type": "result", "v": 1, "id": "a", "status": "ok", "age_ms": -5}\n\n'
        + SAMPLES.read_bytes().splitlines()[0]
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert main(["render"]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("# 财报分析")
    assert "line 1 is left out" in said.err
    assert "$.age_ms" in said.err


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        ([str(SAMPLES), "--format", "html"], 2, "give -o FOLDER"),
        ([str(SAMPLES), "--id", "none"], 5, "no result of none"),
        (["no/such/file"], 2, "cannot be read"),
        ([str(SAMPLES), "-o", "no/such/folder/x.md"], 2, "cannot be written"),
    ],
)
def test_what_it_refuses(argv: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", *argv]) == code
    assert why in capsys.readouterr().err
