import csv
import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from examples.demo import build_data, samples
from examples.demo.capabilities import intent_cloud_batch, intent_local_batch
from examples.demo.classifiers import folder_of
from schemas.rules import parse_rules
from streams.router.predictor import MAX_BYTES, load_predictor
from workers.models.calibration import figures
from workers.models.cards import calibrator_of, statement_of

DEMO = Path(build_data.__file__).parent
BATCHES = {"intent-local": intent_local_batch, "intent-cloud": intent_cloud_batch}


def card_of(name):
    return json.loads((folder_of(name) / "1" / "card.json").read_text(encoding="utf-8"))


def questions(name):
    with (DEMO / "data" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def answers(model, name="banking77_test_500.csv"):
    """(right, confidence as the worker gives it) of a file's questions."""
    rows, found = questions(name), []
    for begin in range(0, len(rows), 256):
        found += BATCHES[model]([{"text": row["text"]} for row in rows[begin : begin + 256]])
    right = np.array(
        [output["intent"] == row["category"] for row, (output, _) in zip(rows, found, strict=True)]
    )
    return right, calibrator_of(card_of(model)).apply([confidence for _, confidence in found])


@pytest.mark.parametrize("name", ["intent-local", "intent-cloud", "crayfish"])
def test_card_names_the_file_beside_it(name):
    model = (folder_of(name) / "1" / "model.onnx").read_bytes()
    card = card_of(name)
    assert card["sha256"] == hashlib.sha256(model).hexdigest()
    assert card["size_bytes"] == len(model) < 8_000_000


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
    local, confidence = answers("intent-local", "banking77_test.csv")
    cloud, _ = answers("intent-cloud", "banking77_test.csv")
    hybrid = np.where(confidence >= 0.9, local, cloud)
    assert local.mean() < hybrid.mean()
    assert hybrid.mean() > cloud.mean() - 0.005


def test_the_local_answers_that_are_accepted_are_right():
    """The bounds that the local model is held to, on the whole test file."""
    right, confidence = answers("intent-local", "banking77_test.csv")
    assert len(right) == 3080
    found = figures(confidence, right, 0.9)
    assert found.ece <= 0.02
    assert found.coverage >= 0.80
    assert found.accuracy >= 0.98


@pytest.mark.parametrize("name", BATCHES)
def test_a_card_states_its_calibration_on_answers_that_were_held_out(name):
    stated = statement_of(card_of(name))
    assert stated is not None
    assert stated.samples == 10_003
    assert stated.threshold == 0.9
    assert stated.ece <= 0.02
    assert stated.accuracy >= 0.98


def test_the_predictor_of_the_rules_knows_what_the_local_model_will_refuse():
    rules = parse_rules((DEMO / "rules.json").read_bytes())
    file = DEMO / rules.tasks["intent"].predictor
    assert file.stat().st_size <= MAX_BYTES
    predictor = load_predictor(file)
    _, confidence = answers("intent-local", "banking77_test.csv")
    refused = confidence < 0.9
    expected = np.array(
        [predictor.expected({"text": row["text"]}) for row in questions("banking77_test.csv")]
    )
    sent = expected < 0.5
    assert 0.05 < sent.mean() < 0.25
    # Without knowing anything 18 in 100 of those sent would have been refused.
    assert refused[sent].mean() > 0.6
    assert sent[refused].mean() > 0.45


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
