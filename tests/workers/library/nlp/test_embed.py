"""`nlp/embed`: sentences as vectors."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workers.library.nlp.asking import loaded, output, refusal
from workers.backends import Row
from workers.backends.function import backends_of
from workers.library.nlp.embed import embed
from workers.library.nlp.vectors import read_vectors

(EMBED,) = backends_of(embed)
loaded(EMBED)
DATA = Path(__file__).parents[4] / "examples" / "demo" / "data"
TEXTS = st.text(st.characters(codec=None), min_size=1, max_size=80).filter(str.strip)


@settings(max_examples=50)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_equal_texts_have_equal_vectors_of_length_one_whatever_stands_beside_them(texts: list[str]) -> None:
    together = [a.output["embedding"] for a in EMBED.infer([Row({"text": text}, {}) for text in texts])]
    alone = [output(EMBED, {"text": text})["embedding"] for text in texts]
    assert together == alone
    listed = output(EMBED, {"texts": texts[::-1]})["embeddings"]
    assert listed == alone[::-1]
    for row in alone:
        assert np.linalg.norm(row) == pytest.approx(1, abs=1e-4)


def test_dimensions_and_length() -> None:
    row = output(EMBED, {"text": "Where is my card?"}, dimensions=64)["embedding"]
    assert len(row) == 64
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-4)
    raw = output(EMBED, {"query": "Where is my card?"}, normalise=False)["embedding"]
    assert np.linalg.norm(raw) != pytest.approx(1, abs=1e-2)
    whole = output(EMBED, {"text": "Where is my card?"})["embedding"]
    assert np.allclose(np.array(whole[:64]) / np.linalg.norm(whole[:64]), row, atol=1e-4)


def test_like_meanings_are_near() -> None:
    lost, also, other = output(
        EMBED, {"texts": ["I lost my bank card", "My debit card is missing", "The train to Berlin was late"]}
    )["embeddings"]
    assert np.dot(lost, also) > np.dot(lost, other) + 0.2


def _rows(name: str, most: int) -> tuple[list[str], list[str]]:
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))[:most]
    return [row["text"] for row in rows], [row["category"] for row in rows]


def test_the_nearest_training_question_has_the_intent_as_the_card_says() -> None:
    known, labels = _rows("banking77_train.csv", 20_000)
    asked, wanted = _rows("banking77_test_500.csv", 500)
    vectors = read_vectors()
    nearest = (vectors.of(asked) @ vectors.of(known).T).argmax(axis=1)
    right = np.mean([labels[k] == label for k, label in zip(nearest, wanted, strict=True)])
    assert right == pytest.approx(0.881, abs=0.03)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "no text"),
        ({"text": " "}, "no text"),
        ({"texts": ["a", ""]}, "there is no text - at inputs.texts[1]"),
        ({"texts": ["a", "b" * 20_001]}, "at most 20000 characters are read - at inputs.texts[1]"),
        ({"text": "a", "dimensions": 0}, "Expected `int` >= 1 - at inputs.dimensions"),
        ({"text": 1}, "Expected `str`"),
        ({"texts": []}, "length >= 1"),
        ({"texts": ["a"] * 65}, "length <= 64"),
        ({"text": "a", "dimensions": 257}, "`int` <= 256"),
        ({"text": "x" * 20_001}, "at most 20000"),
    ],
)
def test_bad_input_is_told(inputs: dict[str, Any], told: str) -> None:
    assert told in refusal(EMBED, inputs)
