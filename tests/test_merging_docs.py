"""docs/merging.md: its examples come out as it says, its own strategy works, its tables are complete."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from edgeway.rules_of import load_rules, require_merges
from schemas.messages import Merge
from streams.merge import BUILT_IN, GROUP, Merged, Part, combine, installed
from streams.merge.check import PARAMS
from streams.merge.guard import LONGEST_S
from streams.merge.registry import MOST_BYTES

TEXT = (Path(__file__).parents[1] / "docs" / "merging.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S[^\n]*)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


EXAMPLES = [
    (name, json.loads(block)) for name in BUILT_IN for block in blocks(SECTIONS.get(name, ""), "json")
]


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_strategy_has_a_section_with_its_rules(name: str) -> None:
    for word in ("*Conflict:*", "*Missing parts:*", "*Confidence:*"):
        assert word in SECTIONS[name]
    assert name in {shown for shown, _ in EXAMPLES}


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=lambda value: value if type(value) is str else "")
def test_each_example_comes_out_as_it_says(name: str, example: dict[str, Any]) -> None:
    merge = Merge(**example["merge"])
    assert merge.strategy == name
    parts = [Part(**answer) for answer in example["answers"]]
    for order in itertools.permutations([*parts, parts[0]]):
        merged = combine(BUILT_IN, merge, order)
        assert isinstance(merged, Merged)
        assert rounded(merged.output) == example["output"]
        assert rounded(merged.confidence) == rounded(example.get("confidence"))
        assert list(merged.warnings) == example.get("warnings", [])


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value


def test_the_table_names_the_params() -> None:
    rows = re.findall(r"^\| \[`(\w+)`\][^|]*\|[^|]*\|[^|]*\| ([^|]*) \|$", TEXT, re.MULTILINE)
    assert {name: set(re.findall(r"`(\w+)`", params)) for name, params in rows} == PARAMS


def test_your_own_works_as_it_stands(tmp_path: Path) -> None:
    (code,), (rules,), (toml,) = (blocks(SECTIONS["Your own"], kind) for kind in ("python", "json", "toml"))
    (tmp_path / "ranks.py").write_text(code, encoding="utf-8")
    found = load_rules(rules.encode(), tmp_path / "rules.json")
    require_merges(found, rules.encode())
    rule = found.tasks["summary"].merge
    assert rule is not None
    parts = [Part("short", {"summary": "a"}, 0.5), Part("long", {"summary": "a b"}, 0.4)]
    merged = combine(installed(found.merges), Merge(strategy=rule.strategy, params=dict(rule.params)), parts)
    assert merged == Merged({"summary": "a b"}, 0.4)
    assert tomllib.loads(toml) == {"project": {"entry-points": {GROUP: {"longest": "ranks:longest"}}}}


def test_the_limits_are_those_it_says() -> None:
    assert f"longer than {LONGEST_S:g} s" in TEXT
    assert f"more than {MOST_BYTES // 2**20} MiB" in TEXT
