"""Strategies in modules that the rules file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeway.errors import UsageError
from edgeway.rules_of import load_rules, require_merges
from schemas.messages import Merge
from schemas.rules import RulesError
from streams.merge import BUILT_IN, Merged, MergeError, Part, combine, installed, merge_strategy

LONGEST = """
from streams.merge import Merged, merge_strategy


@merge_strategy("longest")
def longest(parts, params):
    return Merged(max(parts, key=lambda part: (len(part.output), part.step)).output)
"""
RULES = b"""{"merges": ["own.py"], "tasks": {"t": {"capability": "nlp/a",
 "merge": {"strategy": "longest", "params": {"any": 1}}}}}"""


def written(folder: Path, text: str) -> str:
    path = folder / "own.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_rules_name_them_beside_their_file(tmp_path):
    written(tmp_path, LONGEST)
    rules = load_rules(RULES, tmp_path / "rules.json")
    require_merges(rules)
    found = installed(rules.merges)
    assert combine(found, Merge(strategy="longest"), [Part("a", "x"), Part("b", "xx")]) == Merged("xx")
    assert found.keys() > BUILT_IN.keys()


def test_a_file_is_read_anew(tmp_path):
    path = written(tmp_path, LONGEST)
    assert "longest" in installed([path])
    written(tmp_path, LONGEST.replace('"longest"', '"still longer"'))
    assert "still longer" in installed([path])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1", "marks no function"),
        ("raise SystemExit(3)", "fails to load: SystemExit: 3"),
        ("raise BaseException(3)", "fails to load: BaseException: 3"),
        ("def f(:", "fails to load: SyntaxError"),
        ("import no_such_module_at_all", "fails to load: ModuleNotFoundError"),
        (LONGEST.replace('"longest"', '"collect"'), "'collect' is built in"),
        (LONGEST + LONGEST.replace("def longest", "def other"), "two strategies are called 'longest'"),
        (LONGEST.replace("def longest", "async def longest"), "is async"),
        (LONGEST.replace("return", "yield"), "is a generator"),
        (LONGEST.replace("parts, params", "parts"), "does not take two arguments"),
        (LONGEST.split("def ")[0] + "class Longest:\n    pass\n", "is no function"),
        (LONGEST.replace('"longest"', '""'), "has a name"),
    ],
)
def test_what_cannot_be_used_is_told_at_the_start(tmp_path, text, why):
    path = written(tmp_path, text)
    with pytest.raises(MergeError, match=why):
        installed([path])
    rules = load_rules(RULES, tmp_path / "rules.json")
    with pytest.raises(UsageError, match=why):
        require_merges(rules)
    with pytest.raises(RulesError, match=r"\$\.merges") as refused:
        require_merges(rules, RULES)
    assert refused.value.problems[0].line == 1


def test_modules_that_are_not_there():
    with pytest.raises(MergeError, match="not found"):
        installed(["no_such.module"])
    with pytest.raises(MergeError, match="not found"):
        installed(["/no/such/file.py"])


def test_a_name_is_asked_for():
    with pytest.raises(MergeError, match="write @merge_strategy"):
        merge_strategy(len)
