"""How right answers are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.messages import Failure
from workers.backends import Answer
from workers.errors import WorkerError
from workers.models.evidence import Sample, agree, is_right, parted, rightness, samples_of

NUMBERS = st.floats(-1e6, 1e6)
VALUES = st.recursive(
    NUMBERS | st.text(max_size=5) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
REFUSED = Answer(error=Failure(code="bad_input", message="no"))


def test_samples_are_read_and_a_bad_line_is_named() -> None:
    lines = ['{"inputs": {"x": 1}, "label": "a"}', "", '{"inputs": {"x": 2}}']
    assert samples_of(lines, "f") == [Sample({"x": 1}, label="a"), Sample({"x": 2})]
    for bad in ("{", "[1]", '{"label": 1}', '{"inputs": {}, "lable": 1}'):
        with pytest.raises(WorkerError, match="f, line 2 is no sample"):
            samples_of([lines[0], bad], "f")


def test_a_label_is_compared_with_what_the_answer_says() -> None:
    assert is_right({"label": "a", "scores": [0.9, 0.1]}, "a")
    assert not is_right({"label": "b"}, "a")
    assert is_right({"y": [1.0, 2.0]}, {"y": [1.01, 2.0]})
    assert not is_right({"y": [1.0, 2.0]}, {"y": [1.2, 2.0]})
    assert not is_right({"y": [1.0]}, {"y": [1.0, 1.0]})
    assert not is_right({"y": True}, {"y": 1})


def test_rightness_counts_labelled_samples_alone_and_agreement_everywhere() -> None:
    samples = [Sample({}, label="a"), Sample({}, label="a"), Sample({}), Sample({}, label="a")]
    says = [Answer({"label": "a"}), Answer({"label": "b"}), Answer({"label": "c"}), REFUSED]
    others = [Answer({"label": "a"}), Answer({"label": "a"}), Answer({"label": "c"}), REFUSED]
    found = rightness(samples, says, others)
    assert found.accuracy == pytest.approx(1 / 3)
    assert found.agreement == 0.75
    assert found.refused == 0.25
    assert rightness([Sample({})], [Answer(1)], [Answer(1)]).accuracy is None


@given(VALUES)
def test_every_answer_agrees_with_itself(value: object) -> None:
    assert agree(Answer(value), Answer(json.loads(json.dumps(value))))
    assert not agree(Answer(value), REFUSED)


@given(st.integers(1, 60), st.floats(0.01, 0.9), st.integers(0, 5))
def test_each_sample_calibrates_or_judges(count: int, share: float, seed: int) -> None:
    samples = [Sample({"i": i}) for i in range(count)]
    first, rest = parted(samples, share, seed)
    assert first
    assert sorted(s.inputs["i"] for s in first + rest) == list(range(count))
    assert (first, rest) == parted(samples, share, seed)
