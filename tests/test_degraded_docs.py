"""docs/degraded.md: its words are all there are, its examples are what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec

from schemas import codec
from schemas.messages import DEGRADED, Cancel, Result
from schemas.rules import parse_rules
from streams import metrics
from streams.degraded import INACCURATE

TEXT = (Path(__file__).parents[1] / "docs" / "degraded.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)


def test_the_table_has_every_word_in_its_order() -> None:
    table = TEXT.partition("| word | cause")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == DEGRADED


def test_the_examples() -> None:
    answer, rules, cancel = EXAMPLES
    result = msgspec.json.decode(answer, type=Result)
    assert result.warnings[0] == INACCURATE
    assert set(result.degraded) <= set(DEGRADED)
    parsed = parse_rules(rules.encode())
    assert (parsed.stale_s, parsed.tasks["quote"].stale_s, parsed.tasks["news"].stale_s) == (86400, 0, None)
    assert codec.decode(cancel.encode(), Cancel).id == json.loads(cancel)["id"]


def test_the_metrics_are_there() -> None:
    table = TEXT.partition("## Figures")[2].partition("The share")[0]
    named = re.findall(r"^\| `(\w+)_total` \|", table, re.MULTILINE)
    known = {counter._name for counter in (metrics.DEGRADED, metrics.CANCELLED, metrics.REQUESTS)}
    assert set(named) == known
