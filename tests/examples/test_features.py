import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from examples.demo.features import ORDERED, PAIRED, SPECS, FeatureSpec, features, grams, specs_of, tokens

ROOT = Path(__file__).parents[2]


def test_tokens_lower_case_and_fold_width_and_apostrophes():
    assert tokens("I can\u2019t PAY １２ 元!") == ["i", "can't", "pay", "12", "元", "!"]


def test_grams_name_their_kind():
    assert list(grams("my card", FeatureSpec(8, (1, 2), (5,)))) == [
        "w1 my",
        "w1 card",
        "w2 <s> my",
        "w2 my card",
        "w2 card </s>",
        "c5 <card",
        "c5 card>",
    ]


def test_counts_are_those_of_the_hash():
    # crc32(b"w1 card") % 2048, computed once: a changed hash would silently break every stored model.
    (row,) = features(["card card"], [FeatureSpec(2048, (1,), ())])
    assert row.sum() == 2
    assert row[1304] == 2


def test_same_vector_in_a_process_with_another_hash_seed():
    code = (
        "from examples.demo.features import features;"
        "print(features(['Where is my card?']).nonzero()[1].tolist())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_text_gives_a_finite_row_that_does_not_depend_on_its_neighbours(texts):
    rows = features(texts)
    assert rows.shape == (len(texts), sum(spec.dim for spec in SPECS))
    assert rows.dtype == np.float32
    for text, row in zip(texts, rows, strict=True):
        assert row.sum() == sum(1 for spec in SPECS for _ in grams(text, spec))
        np.testing.assert_array_equal(row, features([text])[0])


def test_words_apart_and_words_in_any_order():
    assert list(grams("a b c", FeatureSpec(8, (), (), skips=(2,)))) == ["s2 <s> b", "s2 a c", "s2 b </s>"]
    paired = FeatureSpec(8, (), (), pairs=True)
    assert list(grams("lost my card lost", paired)) == ["p card lost"]
    assert list(grams("card lost", paired)) == list(grams("lost card", paired))


def test_a_long_text_makes_no_square_of_pairs():
    text = " ".join(f"word{number}" for number in range(5000))
    assert sum(1 for _ in grams(text, FeatureSpec(8, (), (), pairs=True))) == 40 * 39 / 2


def test_a_spec_comes_back_from_a_card():
    card = {"features": {"blocks": [spec.to_card() for spec in SPECS]}}
    assert specs_of(card) == SPECS == (ORDERED, PAIRED)


def test_a_lone_surrogate_is_no_error():
    assert features(["\ud800 card"], [FeatureSpec(2048, (1,), ())]).sum() == 2
