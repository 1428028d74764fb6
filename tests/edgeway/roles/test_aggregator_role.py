"""The aggregator follows the merge strategies of the rules, in the joins that are open already."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from edgeway.errors import UsageError
from edgeway.roles import aggregator
from edgeway.roles.serving import built
from edgeway.rules_of import load_rules
from streams.aggregator import Aggregator
from streams.merge import Strategy
from streams.settings import Settings

OWN = "from streams.merge import merge_strategy\n@merge_strategy('{0}')\ndef merge(parts, params): pass\n"
RULES = b'{"merges": ["own.py"]}'


async def test_strategies_change_with_the_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Mapping[str, Strategy]] = []

    class Watched(Aggregator):
        def __init__(self, *given: Any, **named: Any) -> None:
            held.append(named["strategies"])
            super().__init__(*given, **named)

    monkeypatch.setattr(aggregator, "Aggregator", Watched)
    (tmp_path / "own.py").write_text(OWN.format("first"), encoding="utf-8")
    rules = load_rules(RULES, tmp_path / "rules.json")
    process = await built("test", Settings(kafka="127.0.0.1:1"), rules, aggregator.add_aggregator)
    try:
        assert {"first", "collect"} <= held[0].keys()
        (tmp_path / "own.py").write_text(OWN.format("second"), encoding="utf-8")
        adopts = [await asyncio.to_thread(prepare, rules) for prepare in process.on_rules]
        assert "first" in held[0], "what is prepared does not hold yet"
        for adopt in adopts:
            adopt()
        assert {"second", "collect"} <= held[0].keys()
        assert "first" not in held[0]
        (tmp_path / "own.py").write_text("nothing = 1", encoding="utf-8")
        with pytest.raises(UsageError, match="marks no function"):
            [prepare(rules) for prepare in process.on_rules]
        assert "second" in held[0]
    finally:
        await process.stop()
