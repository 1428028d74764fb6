"""The original's two entries in one flat file, byte for byte, as a router decides by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeway.rules_of import rules_of
from schemas.messages import Request
from schemas.rules import Rules
from streams.settings import Settings
from tests.helpers.routing import UNMEASURED, Words, decided, live_view
from workers.backends.fallback import endpoints_of

TEXT = """{
  "image_captioning": {"local_threshold": 0.7, "fallback_url": "https://cloud-api.example.com/vision/caption"},
  "financial_report": {"max_local_tokens": 512, "cloud_batch_size": 10}
}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Rules:
    path = tmp_path / "rules.json"
    path.write_text(TEXT, encoding="utf-8")
    return rules_of(Settings(rules=path))


def test_a_caption_is_made_here_and_improved_at_the_url(rules: Rules) -> None:
    request = Request(task="image_captioning", inputs={"image": b"\x00"})
    planned = decided(rules, request, live_view(rules, UNMEASURED), examiner=Words())
    (step,) = planned.plan.steps
    assert (step.capability, step.threshold) == ("image_captioning", 0.7)
    first, later = step.attempts
    assert (first.side, first.triggers) == ("local", ("first",))
    assert later.side == "cloud"
    assert "weak" in later.triggers
    (decision,) = planned.plan.decisions
    assert decision.scores == pytest.approx({"local": 0.61, "cloud": 0.44})
    endpoint = endpoints_of(rules)["image_captioning"]
    assert endpoint.url == "https://cloud-api.example.com/vision/caption"


@pytest.mark.parametrize(("words", "side"), [(100, "local"), (3000, "cloud")])
def test_long_reports_go_to_the_cloud_in_batches_of_ten(rules: Rules, words: int, side: str) -> None:
    request = Request(query="请 生成 财报分析", inputs={"text": "revenue grew " * (words // 2)})
    planned = decided(rules, request, live_view(rules, UNMEASURED), examiner=Words())
    steps = {step.name: step for step in planned.plan.steps}
    sides = {name: step.attempts[0].side for name, step in steps.items()}
    assert sides == {"tokenize": side, "entities": side, "indicators": "cloud", "chart": "cloud"}
    in_cloud = [sent.subtask.max_batch for sent in planned.first if sent.side == "cloud"]
    assert set(in_cloud) == {10}
    assert planned.plan.merge is not None
    assert planned.plan.merge.strategy == "weighted_fusion"
