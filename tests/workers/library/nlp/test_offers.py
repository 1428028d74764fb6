"""What the group offers, and without which packages."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Any

import pytest

from workers.library import nlp

NAMES = {
    "local/text/clean", "local/text/tokenize", "local/finance/tokenize", "cloud/finance/tokenize",
    "local/nlp/entities", "cloud/nlp/entities", "local/nlp/summarize", "local/nlp/intent", "local/nlp/embed",
    "local/nlp/answer",
}  # fmt: skip


def offered() -> set[str]:
    return {f"{b.card.side}/{b.card.capability}" for b in nlp.offers()}


def test_all_are_offered_with_cards_that_say_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGEWAY_KB", raising=False)
    cards = [backend.card for backend in nlp.offers()]
    assert {f"{card.side}/{card.capability}" for card in cards} == NAMES
    for card in cards:
        assert card.description
        assert card.cost_per_call == 0
        assert card.licence, card.capability
        assert card.source, card.capability
        assert card.quality, card.capability
    assert {c.capability for c in cards if not c.cacheable} == {"nlp/answer"}


def test_without_the_extra_vectors_are_left_out_and_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == "wordllama" else found(name, *rest)

    monkeypatch.setattr(nlp, "find_spec", without)
    with caplog.at_level(logging.WARNING):
        assert offered() == NAMES - {"local/nlp/embed"}
    assert "it needs wordllama; install edgeway[text]" in caplog.text


def test_without_documents_there_is_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from workers.library.nlp import knowledge

    monkeypatch.delenv("EDGEWAY_KB", raising=False)
    monkeypatch.setattr(knowledge, "default_path", lambda: None)
    assert offered() == NAMES - {"local/nlp/answer"}
