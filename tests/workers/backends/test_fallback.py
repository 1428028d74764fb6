"""What rules put behind a `fallback_url`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.rules import Rules, parse_rules
from workers.backends.fallback import BATCH, endpoints_of, fallbacks_of
from workers.catalogue import backends_for
from workers.errors import LoadError, UnknownCapability

CAPTION = "https://cloud-api.example.com/vision/caption"
ORIGINAL = {
    "image_captioning": {"local_threshold": 0.7, "fallback_url": CAPTION},
    "financial_report": {"max_local_tokens": 512, "cloud_batch_size": 10},
}


def rules(said: dict[str, Any] = ORIGINAL) -> Rules:
    return parse_rules(json.dumps(said).encode())


def test_the_original_entry_is_one_free_cloud_capability() -> None:
    (backend,) = fallbacks_of(rules())
    card = backend.card
    assert (card.side, card.capability, card.model_type) == ("cloud", "image_captioning", "http")
    assert (card.cost_per_call, card.max_cost, card.max_batch) == (0.0, 0.0, BATCH)
    assert endpoints_of(rules())["image_captioning"].url == CAPTION


def test_prices_and_batches_are_those_of_the_rules() -> None:
    said = {
        "tasks": {"caption": {"fallback_url": CAPTION, "cloud_batch_size": 4}},
        "prices": {"cloud/caption": {"per_call": 0.01, "per_1k_tokens": 2.0, "max_tokens": 1000}},
    }
    (backend,) = fallbacks_of(rules(said))
    card = backend.card
    assert (card.cost_per_call, card.cost_per_token, card.max_cost) == (0.01, 0.002, 2.01)
    assert card.max_batch == 4


def test_every_step_that_may_run_in_the_cloud_has_the_url() -> None:
    steps = [
        {"name": "clean", "capability": "text/clean", "side": "local"},
        {"name": "sum", "capability": "nlp/summarize", "after": ["clean"]},
        {"name": "say", "capability": "nlp/speak", "side": "cloud"},
    ]
    found = endpoints_of(rules({"tasks": {"report": {"fallback_url": CAPTION, "steps": steps}}}))
    assert sorted(found) == ["nlp/speak", "nlp/summarize"]


def test_what_an_app_offers_needs_none() -> None:
    assert fallbacks_of(rules(), {("cloud", "image_captioning")}) == []
    assert len(fallbacks_of(rules(), {("local", "image_captioning")})) == 1


def test_a_worker_serves_them_beside_its_apps_or_alone() -> None:
    def named(side: Any, names: Any = None) -> list[str]:
        return [b.card.capability for b in backends_for(side, (), names, lambda _: fallbacks_of(rules()))]

    assert named("cloud") == named(None) == named("cloud", ["image_captioning"]) == ["image_captioning"]
    with pytest.raises(UnknownCapability):
        named("local")


def test_they_follow_the_rules_once_all_agree() -> None:
    (backend,) = fallbacks_of(rules())
    new = {"image_captioning": {"fallback_url": "https://other.example.com/", "cloud_batch_size": 2}}
    adopt = backend.prepare(rules(new))
    assert backend.card.max_batch == BATCH, "nothing changes before everyone agrees"
    adopt()
    assert backend.card.max_batch == 2
    with pytest.raises(LoadError):
        backend.prepare(rules({"image_captioning": {"fallback_url": "https://\u00b7\u00b7/"}}))
    backend.prepare(rules({}))()
    assert backend.card.max_batch == 2


def test_headers_come_from_the_environment_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"image_captioning": {"fallback_url": CAPTION, "fallback_headers": {"X-Key": "A_KEY_OF_MINE"}}}
    (backend,) = fallbacks_of(rules(said))
    with pytest.raises(LoadError, match="A_KEY_OF_MINE"):
        backend.prepare(rules(said))
    monkeypatch.setenv("A_KEY_OF_MINE", "word")
    backend.prepare(rules(said))()
    assert endpoints_of(rules(said))["image_captioning"].keys.headers() == {"x-key": "word"}
