from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edgeway.errors import UsageError
from edgeway.roles.planning import planner_of
from schemas.messages import Request
from schemas.rules import Rules
from streams.router import Planned
from tests.helpers.routing import NOW, admitted_of, live_view, ruled

SPLIT = """
from streams.router import decomposer

@decomposer("report")
def split(request):
    return [{"name": "half", "capability": "nlp/summarize"}]
"""


def rules_of(**changes: object) -> Rules:
    return msgspec.structs.replace(ruled({"report": {"capability": "nlp/summarize"}}), **changes)


def test_decomposers_of_the_rules_are_asked(tmp_path: Path):
    path = tmp_path / "splits.py"
    path.write_text(SPLIT)
    rules = rules_of(decomposers=(str(path),))
    found = planner_of(rules).decide(admitted_of(Request(id="r", task="report")), live_view(rules), NOW)
    assert isinstance(found, Planned)
    assert [step.name for step in found.plan.steps] == ["half"]


def test_what_does_not_load_is_refused_before_it_is_adopted(tmp_path: Path):
    with pytest.raises(UsageError, match="is not found"):
        planner_of(rules_of(decomposers=(str(tmp_path / "none.py"),)))
    task = msgspec.structs.replace(rules_of().tasks["report"], predictor=str(tmp_path / "none.npz"))
    with pytest.raises(UsageError, match="predictor"):
        planner_of(rules_of(tasks={"report": task}))
    examination = msgspec.structs.replace(rules_of().privacy, detectors=("no_such_detector",))
    with pytest.raises(UsageError, match="no_such_detector"):
        planner_of(rules_of(privacy=examination))


def test_a_decomposer_without_its_task_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "splits.py"
    path.write_text(SPLIT.replace("report", "other"))
    planner_of(rules_of(decomposers=(str(path),)))
    assert "the task other is never asked" in caplog.text
