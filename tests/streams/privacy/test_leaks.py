"""The bounds on leaks and on what is kept local, on public data (all figures are in docs/privacy.md)."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from benchmarks.privacy import examiner, flagged, leaks, left_out, scores
from benchmarks.privacy_training import DOCUMENTS, documents, prompts, questions
from streams import metrics
from tests.helpers.shared_data import shared

MOST_LEAKS, MOST_LOCAL, MOST_MS = 0.015, 0.20, 5.0


def test_few_documents_leak_and_few_questions_stay() -> None:
    found = documents(shared(str(DOCUMENTS)))
    clean = questions(shared("banking77/test.csv"))
    random.Random(5).shuffle(found)
    by = examiner()
    assert leaks(scores(by, found[:700]))["share"] <= MOST_LEAKS
    assert flagged(by, clean[::5]) <= MOST_LOCAL


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_few_documents_leak_of_templates_that_were_left_out() -> None:
    found = documents(shared(str(DOCUMENTS)))
    clean, general = questions(shared("banking77/train.csv")), prompts(shared("routing_mmlu"), 0)
    assert leaks(left_out(found, clean, general, 3))["share"] <= MOST_LEAKS


def test_short_texts_cost_little() -> None:
    by = examiner()
    texts = [text for text in questions(shared("banking77/test.csv")) if len(text) <= 200][::10]
    spent = []
    for text in texts:
        rounds = []
        for _ in range(3):
            started = time.thread_time()
            by.examine(text, {"text": text}, {})
            rounds.append(1000 * (time.thread_time() - started))
        spent.append(min(rounds))
    assert sorted(spent)[int(0.99 * len(spent))] <= MOST_MS


def test_examinations_are_counted() -> None:
    def count(metric: object, label: str) -> float:
        return float(metric.labels(label)._value.get())  # type: ignore[attr-defined]

    by = examiner()
    before = count(metrics.PRIVACY_VERDICTS, "high"), count(metrics.PRIVACY_FINDINGS, "email")
    by.examine("write to jane@corp.example")
    by.examine("hello")
    after = count(metrics.PRIVACY_VERDICTS, "high"), count(metrics.PRIVACY_FINDINGS, "email")
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)


def test_the_data_of_the_detectors_is_small_and_says_where_it_is_from() -> None:
    folder = Path(__file__).resolve().parents[3] / "streams" / "privacy" / "data"
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert sum(files.values()) <= 2 * 2**20
    sources = (folder / "SOURCES.md").read_text(encoding="utf-8")
    assert all(name in sources for name in files if name != "SOURCES.md"), json.dumps(files)
