import csv
import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from examples.demo import build_data, samples
from examples.demo.capabilities import intent_cloud_batch, intent_local_batch

DEMO = Path(build_data.__file__).parent
BATCHES = {"intent-local": intent_local_batch, "intent-cloud": intent_cloud_batch}


def card_of(name):
    return json.loads((DEMO / "models" / name / "1" / "card.json").read_text(encoding="utf-8"))


def questions(name):
    with (DEMO / "data" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def answers(model):
    """(right, confidence) of the 500 questions."""
    rows = questions("banking77_test_500.csv")
    found = BATCHES[model]([{"text": row["text"]} for row in rows])
    right = np.array(
        [output["intent"] == row["category"] for row, (output, _) in zip(rows, found, strict=True)]
    )
    return right, np.array([confidence for _, confidence in found])


@pytest.mark.parametrize("name", ["intent-local", "intent-cloud", "crayfish"])
def test_card_names_the_file_beside_it(name):
    model = (DEMO / "models" / name / "1" / "model.onnx").read_bytes()
    card = card_of(name)
    assert card["sha256"] == hashlib.sha256(model).hexdigest()
    assert card["size_bytes"] == len(model) < 4_000_000


@pytest.mark.parametrize("name", BATCHES)
def test_card_states_what_is_measured(name):
    figures = next(f for f in card_of(name)["figures"] if f["data"] == "banking77_test_500.csv")
    right, confidence = answers(name)
    sure = confidence >= figures["threshold"]
    # One question in 500 may tip over where another processor rounds otherwise.
    assert right.mean() == pytest.approx(figures["accuracy"], abs=0.003)
    assert sure.mean() == pytest.approx(figures["coverage_at_threshold"], abs=0.003)
    assert right[sure].mean() == pytest.approx(figures["accuracy_at_threshold"], abs=0.003)
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = [abs(confidence[bins == k].sum() - right[bins == k].sum()) for k in range(15)]
    assert sum(gaps) / len(right) == pytest.approx(figures["ece"], abs=0.005)


def test_escalation_pays():
    local, confidence = answers("intent-local")
    cloud, _ = answers("intent-cloud")
    hybrid = np.where(confidence >= 0.9, local, cloud)
    assert local.mean() + 0.02 < hybrid.mean()
    assert hybrid.mean() > cloud.mean() - 0.01
    assert (confidence >= 0.9).mean() > 0.6
    assert local[confidence >= 0.9].mean() > 0.975


def test_labels_are_the_sorted_intents_of_the_training_file():
    labels = sorted({row["category"] for row in questions("banking77_train.csv")})
    assert len(labels) == 77
    assert card_of("intent-local")["labels"] == card_of("intent-cloud")["labels"] == labels


def test_sample_is_the_seeded_one_and_covers_every_intent():
    rows = questions("banking77_test_500.csv")
    assert rows == build_data.sample(questions("banking77_test.csv"))
    counts = {row["category"]: 0 for row in rows}
    for row in rows:
        counts[row["category"]] += 1
    assert len(rows) == 500
    assert len(counts) == 77
    assert set(counts.values()) == {6, 7}


def test_sample_larger_than_the_data_is_refused():
    with pytest.raises(ValueError, match="only 2 rows"):
        build_data.sample([{"text": "a", "category": "x"}, {"text": "b", "category": "y"}], size=3)


def test_checked_in_requests_are_those_of_the_script():
    text = (DEMO / "data" / "requests_decomposed.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == samples.requests()
