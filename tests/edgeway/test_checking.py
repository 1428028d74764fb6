"""`edgeway check` finds what a role would find at its start, and says where."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from edgeway.cli import main
from schemas.rules import parse_rules
from tests.schemas.test_rules import ORIGINAL

APP = """
from workers.backends.function import capability


@capability("local/n/a")
def a(text: str) -> dict:
    return {"text": text}
"""
SPLIT = """
from streams.router.decomposer import decomposer


@decomposer("t")
def split(request):
    return None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "check_app.py").write_text(APP)
    (tmp_path / "check_split.py").write_text(SPLIT)
    return tmp_path


def checked(
    folder: Path, capsys: pytest.CaptureFixture[str], raw: bytes, *words: str
) -> tuple[int, list[str]]:
    """Exit code and lines, without the folder."""
    file = folder / "rules.json"
    file.write_bytes(raw)
    code = main(["check", str(file), *words])
    return code, capsys.readouterr().out.replace(f"{folder}/", "").splitlines()


def text(**said: object) -> bytes:
    return json.dumps({"builtin": False, "privacy": {"detectors": []}, **said}, indent=1).encode()


def test_the_original_is_fine(folder, capsys):
    code, lines = checked(folder, capsys, ORIGINAL)
    assert code == 0
    assert lines[0] == f"rules.json: rules {parse_rules(ORIGINAL).version}"
    assert any(line.startswith("tasks") and "image_captioning" in line for line in lines)
    assert "budget     none" in lines


def test_a_summary_as_json(folder, capsys):
    raw = text(t={"capability": "n/a", "side": "local"}, budget={"per_day": 5}, privacy={"detectors": []})
    code, (line,) = checked(folder, capsys, raw, "--json")
    said = json.loads(line)
    assert code == 0
    assert said["ok"] is True
    assert said["capabilities"] == {"local": ["n/a"], "cloud": []}
    assert said["budget"] == {"per_day": 5, "per_tenant": None, "currency": "USD"}
    assert (said["tasks"], said["steps"], said["detectors"], said["problems"]) == (["t"], 1, [], [])


def test_every_part_of_a_refused_file_has_its_line(folder, capsys):
    code, lines = checked(folder, capsys, b'{\n"a": {"side": "edge"},\n"hosts": ["*"]}')
    assert code == 2
    assert [line.split(": ")[:2] for line in lines] == [
        ["rules.json:2", "$.a.side"],
        ["rules.json:3", "$.hosts[0]"],
    ]


def test_what_only_shows_where_it_is_used(folder, capsys):
    raw = text(
        apps=["check_app.py"],
        decomposers=["check_split.py", "nowhere.py"],
        privacy={"detectors": ["formatz"]},
        t={
            "steps": [{"name": "x", "capability": "n/aa"}],
            "merge": {"strategy": "colect"},
            "predictor": "no.npz",
        },
    )
    code, lines = checked(folder, capsys, raw)
    assert code == 2
    found = {line.split(": ")[1]: line for line in lines}
    assert found.keys() == {
        "$.decomposers[1]",
        "$.privacy.detectors",
        "$.t.steps[0]",
        "$.t.merge.strategy",
        "$.t.predictor",
    }
    assert "'local/n/a'" in found["$.t.steps[0]"]
    assert "'collect'" in found["$.t.merge.strategy"]
    assert [int(line.split(":")[1]) for line in lines] == sorted(int(line.split(":")[1]) for line in lines)


@pytest.mark.parametrize(
    "task",
    [
        {"capability": "n/a"},
        {"capability": "n/a", "side": "local"},
        {"capability": "n/b", "fallback_url": "https://a.example/b"},
        {"capability": "n/b", "scale_to_zero": True},
        {"steps": [{"name": "x", "capability": "n/b", "alternatives": ["n/a"]}]},
    ],
)
def test_capabilities_that_somebody_offers(folder, capsys, task):
    assert checked(folder, capsys, text(t=task, apps=["check_app.py"]))[0] == 0


@pytest.mark.parametrize("task", [{"capability": "n/b"}, {"capability": "n/a", "side": "cloud"}])
def test_capabilities_that_nobody_offers(folder, capsys, task):
    code, (line,) = checked(folder, capsys, text(t=task), "--app", str(folder / "check_app.py"))
    assert code == 2
    assert "$.t.capability: unknown capability" in line
    assert checked(folder, capsys, text(t=task))[0] == 0, "without an app nobody can know"


@pytest.mark.parametrize(
    "why", ["import sys; sys.exit(3)", "raise RecursionError", "class x:\n    def __init__(self): 1 / 0"]
)
def test_a_detector_that_fails_to_load_is_named_once(folder, capsys, monkeypatch, why):
    monkeypatch.syspath_prepend(folder)
    (folder / "own_failing.py").write_text(why)
    code, (line,) = checked(folder, capsys, text(privacy={"detectors": ["own_failing:x"]}))
    sys.modules.pop("own_failing", None)
    assert code == 2
    assert "$.privacy.detectors: detector 'own_failing:x' fails to load" in line


def test_a_decomposer_file_that_fails_says_why(folder, capsys):
    (folder / "broken.py").write_text("def (")
    code, (line,) = checked(folder, capsys, text(decomposers=["broken.py"]))
    assert code == 2
    assert "fails to load: SyntaxError: invalid syntax (broken.py, line 1)" in line


def test_kinds_that_no_detector_finds(folder, capsys):
    code, (line,) = checked(folder, capsys, text(privacy={"ignore": ["persn"]}))
    assert code == 2
    assert "'person'" in line


def test_a_file_that_is_not_there(folder, capsys):
    assert main(["check", str(folder / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err
