"""The documentation: its links lead somewhere, its rules files are rules files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schemas.rules import parse_rules

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
JSON = re.compile(r"```json\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_there(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_examples_of_rules_are_rules() -> None:
    examples = JSON.findall((ROOT / "docs" / "rules.md").read_text(encoding="utf-8"))
    assert len(examples) == 3
    tasks = [parse_rules(example.encode()).tasks for example in examples]
    assert "claim_review" in tasks[0]
    assert parse_rules(examples[2].encode()).prices["cloud/nlp/summarize"].bound == pytest.approx(0.041)
    assert tasks[1]["image_captioning"].fallback_url == "https://cloud-api.example.com/vision/caption"
