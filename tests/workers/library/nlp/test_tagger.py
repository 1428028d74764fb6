"""The tagger finds what trying all rows of tags would find."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.library.nlp.tagger import Tagger, read_tagger, write_tagger

TAGS = ("B-x", "I-x", "O")
NAMES = ("a", "b", "c")


def tagger(seed: int) -> Tagger:
    rng = np.random.default_rng(seed)
    weights = np.vstack([rng.normal(0, 2, (3, 3)), np.zeros((1, 3))]).astype(np.float32)
    rows = {zlib.crc32(name.encode()): k for k, name in enumerate(NAMES)}
    return Tagger(TAGS, rows, weights, rng.normal(0, 2, (3, 3)).astype(np.float32))


ROWS = st.lists(
    st.lists(st.sampled_from([*NAMES, "unknown"]), min_size=1, max_size=3), min_size=1, max_size=5
)


@settings(max_examples=60)
@given(st.integers(0, 1000), ROWS)
def test_tags_are_the_best_and_theirshares_of_add_up(seed: int, features: list[list[str]]) -> None:
    one = tagger(seed)
    scores = one.scores(features)

    def weight(row: tuple[int, ...]) -> float:
        moves = sum(float(one.moves[a, b]) for a, b in itertools.pairwise(row))
        return moves + sum(float(scores[at, tag]) for at, tag in enumerate(row))

    rows = list(itertools.product(range(3), repeat=len(features)))
    weights = np.array([weight(row) for row in rows])
    tags, shares = one.tag(features)
    assert weight(tuple(TAGS.index(tag) for tag in tags)) == pytest.approx(weights.max(), abs=1e-3)
    chances = np.exp(weights - weights.max())
    chances /= chances.sum()
    if set(tags) != {"O"}:
        for at, tag in enumerate(tags):
            of_tag = sum(chance for chance, row in zip(chances, rows, strict=True) if TAGS[row[at]] == tag)
            assert shares[at] == pytest.approx(of_tag, abs=1e-3)


def test_a_tagger_is_read_as_it_was_written(tmp_path: Path) -> None:
    one = tagger(1)
    weights = {key: one.weights[row] for key, row in one.rows.items()}
    write_tagger(tmp_path / "t.npz", one.tags, weights, one.moves)
    again = read_tagger(tmp_path / "t.npz")
    assert again.tags == TAGS
    features = [["a", "b"], ["c"], ["new"]]
    assert np.allclose(again.scores(features), one.scores(features), atol=0.1)
    assert again.tag([])[0] == []
