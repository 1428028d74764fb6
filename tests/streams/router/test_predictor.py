"""The predictor: learns which texts are accepted, survives its file, and takes any input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.router.errors import PredictorError
from streams.router.predictor import MAX_BYTES, MAX_WORDS, grams, load_predictor, save_predictor
from streams.router.predictor_fit import fit_predictor

EASY = ["where is my card", "my card has not come", "card still missing", "when does my card come"]
HARD = [
    "strange charge from abroad",
    "odd exchange on a charge",
    "charge looks strange",
    "abroad exchange odd",
]
TEXTS = (EASY + HARD) * 15
ACCEPTED = ([1.0] * 4 + [0.0] * 4) * 15
LABELS = (["arrival"] * 4 + ["fee", "rate", "fee", "rate"]) * 15


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "sketch"])
def predictor(request):
    return fit_predictor(TEXTS, ACCEPTED, LABELS if request.param else None)


def test_it_tells_what_is_accepted_from_what_is_not(predictor):
    assert predictor.expected({"text": "where is my new card"}) > 0.7
    assert predictor.expected({"text": "a strange charge, odd exchange"}) < 0.3


@pytest.mark.parametrize("inputs", [{}, {"text": None}, {"text": 5}, {"text": " \n"}, {"query": "card"}])
def test_inputs_without_its_text_say_nothing(predictor, inputs):
    assert predictor.expected(inputs) is None


def test_its_file_is_small_and_says_the_same(predictor, tmp_path: Path):
    file = tmp_path / "p.npz"
    save_predictor(file, predictor)
    assert file.stat().st_size < MAX_BYTES
    again = load_predictor(file)
    for text in (*EASY, *HARD, "something else entirely"):
        assert again.expected({"text": text}) == pytest.approx(predictor.expected({"text": text}), abs=0.05)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=80))
def test_any_text_gives_a_chance_or_nothing(predictor, text):
    chance = predictor.expected({"text": text})
    assert chance is None or 0 <= chance <= 1


def test_a_long_text_costs_as_a_short_one():
    words = [f"word{number}" for number in range(10_000)]
    assert len(grams(" ".join(words))) <= 4 * MAX_WORDS + 5


def test_hashes_are_the_same_everywhere():
    # Computed once: a changed hash would silently break every stored predictor.
    assert grams("my card") == grams("My CARD")
    assert sorted(value % 1000 for value in grams("my card")) == GRAMS


GRAMS = [58, 81, 109, 188, 405, 496, 595, 603, 832, 954]


def test_nothing_known_stands_at_the_rate_of_the_data():
    fitted = fit_predictor(["a b c"] * 20, [1.0] * 15 + [0.0] * 5)
    assert fitted.expected({"text": "zzz yyy"}) == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize(
    ("texts", "accepted", "labels", "message"),
    [
        (["a"], [1.0, 0.0], None, "one outcome"),
        (["a"], [1.0], ["x", "y"], "one label"),
        (["", " "], [1.0, 0.0], None, "no text holds a word"),
        (["a"], [2.0], None, "within 0 and 1"),
        ([f"t{k}" for k in range(5000)], [1.0] * 5000, [str(k) for k in range(5000)], "too many"),
    ],
)
def test_data_that_make_no_predictor_are_refused(texts, accepted, labels, message):
    with pytest.raises(ValueError, match=message):
        fit_predictor(texts, accepted, labels)


def stored(path: Path, **arrays) -> Path:
    np.savez(path, **arrays)
    return path


def about(**more) -> np.ndarray:
    return np.array(json.dumps({"format": 1, "bias": 0.0, "slope": 0.0, "field": "text"} | more))


def test_a_file_that_is_none_is_named(tmp_path: Path):
    with pytest.raises(PredictorError, match="cannot be read"):
        load_predictor(tmp_path / "absent.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(PredictorError, match="is none"):
        load_predictor(tmp_path / "text.npz")
    (tmp_path / "large.npz").write_bytes(b"\0" * (MAX_BYTES + 1))
    with pytest.raises(PredictorError, match="larger than"):
        load_predictor(tmp_path / "large.npz")


def test_a_file_that_is_broken_anywhere_is_named_or_read(predictor, tmp_path: Path):
    path = tmp_path / "p.npz"
    save_predictor(path, predictor)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        flipped = bytes(byte ^ 0xFF if at == place else byte for at, byte in enumerate(whole))
        for raw in (whole[:place], flipped):
            path.write_bytes(raw)
            try:
                load_predictor(path)
            except PredictorError as error:
                assert str(error).count("predictor ") == 1  # noqa: PT017


def test_a_file_with_wrong_contents_is_named(tmp_path: Path):
    weights = np.ones(8, np.int8)
    good = {"weights": weights, "weights_scale": np.array(0.1)}
    cases = {
        "other format": {"about": about(format=2), **good},
        "holds no weights": {"about": about(), "weights": weights.astype(float), "weights_scale": 1.0},
        "holds an infinity": {"about": about(bias=float("inf")), **good},
        "sketch without": {
            "about": about(),
            **good,
            "sketch": np.ones((4, 3), np.int8),
            "sketch_scale": 1.0,
            "offsets": np.ones(2),
        },
        "is none": {"about": about()},
    }
    for number, (message, arrays) in enumerate(cases.items()):
        with pytest.raises(PredictorError, match=message.replace("other format", "another format")):
            load_predictor(stored(tmp_path / f"{number}.npz", **arrays))
    pickled = stored(tmp_path / "pickled.npz", about=np.array([object()], object), **good)
    with pytest.raises(PredictorError, match="is none"):
        load_predictor(pickled)
