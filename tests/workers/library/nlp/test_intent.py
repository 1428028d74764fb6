"""`nlp/intent`: Banking77, calibrated."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workers.library.nlp.asking import ask, loaded, output, refusal
from workers.backends import Row
from workers.library.nlp.intent import FOLDER, intent_backend
from workers.models.cards import read_card

INTENT = loaded(intent_backend())
QUESTIONS = Path(__file__).parents[4] / "examples" / "demo" / "data" / "banking77_test_500.csv"


def test_a_question_has_an_intent_and_a_confidence() -> None:
    answer = ask(INTENT, {"text": "I am still waiting on my card?"})
    assert answer.output["intent"] == "card_arrival"
    assert len(answer.output["alternatives"]) == 3
    assert answer.confidence is not None
    assert answer.confidence > 0.8
    assert ask(INTENT, {"query": "I am still waiting on my card?"}) == answer


def test_the_card_says_what_is_measured() -> None:
    with QUESTIONS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    answers = [
        a
        for k in range(0, 500, 50)
        for a in INTENT.infer([Row({"text": r["text"]}, {}) for r in rows[k : k + 50]])
    ]
    right = np.array([a.output["intent"] == r["category"] for a, r in zip(answers, rows, strict=True)])
    sure = np.array([a.confidence for a in answers]) >= 0.9
    told = next(f for f in read_card(FOLDER)["figures"] if f["questions"] == 500)
    assert right.mean() == pytest.approx(told["accuracy"], abs=0.003)
    assert right[sure].mean() == pytest.approx(told["accuracy_at_threshold"], abs=0.003)
    assert INTENT.card.calibrated
    assert "accuracy 0.9269" in INTENT.card.quality


def test_the_model_is_the_one_of_the_card_and_small() -> None:
    model = (FOLDER / "model.onnx").read_bytes()
    assert read_card(FOLDER)["sha256"] == hashlib.sha256(model).hexdigest()
    assert len(model) <= 6_000_000


def test_a_bad_row_fails_alone() -> None:
    good, bad, blank = INTENT.infer([Row({"text": "Change my PIN"}, {}), Row({"text": 1}, {}), Row({}, {})])
    assert good.output["intent"] == "change_pin"
    assert bad.error is not None
    assert blank.error is not None
    assert (bad.error.code, blank.error.code) == ("bad_input", "bad_input")


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "no text"),
        ({"text": "\n"}, "no text"),
        ({"text": None}, "are texts"),
        ({"text": "x" * 10_001}, "at most"),
    ],
)
def test_bad_input_is_told(inputs: dict[str, Any], told: str) -> None:
    assert told in refusal(INTENT, inputs)


@settings(max_examples=30)
@given(
    st.lists(
        st.text(st.characters(codec=None), min_size=1, max_size=60).filter(str.strip), min_size=1, max_size=4
    )
)
def test_a_text_is_answered_alike_alone_and_in_company(texts: list[str]) -> None:
    together = INTENT.infer([Row({"text": text}, {}) for text in texts])
    for text, answer in zip(texts, together, strict=True):
        assert output(INTENT, {"text": text})["intent"] == answer.output["intent"]
        assert 0 <= (answer.confidence or 0) <= 1
