"""docs/library.md: its table names what the library offers, and its examples give what it says."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.library_samples import BOUND_MS, samples
from workers import library
from workers.backends import Row

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
OFFERED = library.offers()
NAME = re.compile(r"`([a-z_]+(?:/[a-z_]+)?)`")
SECTION = re.compile(r"^## `([^`]+)`(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(r"```json request\n(.*?)```(?:\s*```json answer\n(.*?)```)?", re.DOTALL)
EXAMPLES = [
    pytest.param(name, request, answer, id=name)
    for name, body in SECTION.findall(PAGE)
    for request, answer in EXAMPLE.findall(body)
]


def named() -> set[str]:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `") and line.count("|") == 6]
    return {name for row in rows for name in NAME.findall(row.split("|")[1])}


def test_the_table_names_what_is_offered(tmp_path: Path) -> None:
    (tmp_path / "hours.md").write_text("# Hours\nThe branch opens at nine.\n", encoding="utf-8")
    code = "from workers import library; print(*{b.card.capability for b in library.offers()})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": "", "PYTHONPATH": str(ROOT), "EDGEWAY_KB": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert set(done.stdout.split()) == named()


@pytest.mark.parametrize("backend", OFFERED, ids=lambda b: f"{b.card.side}/{b.card.capability}")
def test_a_card_says_where_it_comes_from_and_how_good_it_is(backend: Any) -> None:
    card = backend.card
    assert all((card.licence, card.source, card.quality, card.description))
    assert card.cost_per_call == 0
    assert len(card.quality) < 600


def test_the_benchmark_has_a_sample_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWAY_KB", str(tmp_path))  # else the benchmark sets it
    found = samples(tmp_path)
    offered = {b.card.capability for b in OFFERED if b.card.side == "local"}
    assert {sample.capability for sample in found} == offered
    assert BOUND_MS.keys() >= {
        sample.label for sample in found if not sample.label.startswith(("image", "vision"))
    }


def test_there_are_examples() -> None:
    assert {"geo/gps_check", "traffic/forecast", "finance/chart"} <= {example.id for example in EXAMPLES}


@pytest.mark.parametrize(("name", "request_", "answer"), EXAMPLES)
def test_an_example_gives_what_the_page_says(name: str, request_: str, answer: str) -> None:
    (backend,) = [b for b in OFFERED if (b.card.side, b.card.capability) == ("local", name)]
    asyncio.run(backend.load())
    try:
        (given,) = backend.infer([Row(json.loads(request_), {})])
    finally:
        backend.close()
    assert given.error is None, given.error
    assert_within(json.loads(answer or "{}"), given.output)


def assert_within(part: Any, whole: Any) -> None:
    """What the page shows of an answer: maps may leave keys out."""
    if isinstance(part, dict):
        assert part.keys() <= whole.keys()
        for key, value in part.items():
            assert_within(value, whole[key])
    elif isinstance(part, float):
        assert whole == pytest.approx(part)
    else:
        assert whole == part
