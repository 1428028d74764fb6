"""Recorded checks: what counts as the same answer, and how a difference is told."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.cards import Card
from workers.backends import Answer, Row
from workers.backends.function import FunctionBackend
from workers.errors import BadInput, CheckFailed, Damaged, RepositoryError
from workers.models.check import (
    Asked,
    Check,
    Expected,
    Tolerance,
    decode_check,
    difference,
    encode_check,
    record,
    run,
)

CARD = Card(capability="test/any", side="local", version="1", model="m", max_batch=2)
ROWS = [Asked({"x": k}) for k in range(5)]
values = st.recursive(
    st.none() | st.booleans() | st.integers(-100, 100) | st.floats(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def backend(function: Any) -> FunctionBackend:
    return FunctionBackend(CARD, function)


def test_what_was_recorded_is_answered_again() -> None:
    check = record(
        backend(lambda inputs, params: {"double": inputs["x"] * 2, "name": "a"}), ROWS, Tolerance()
    )
    assert [answer.output["double"] for answer in check.answers] == [0, 2, 4, 6, 8]
    assert decode_check(encode_check(check), "here") == check
    run(backend(lambda inputs, params: {"double": inputs["x"] * 2 + 5e-5, "name": "a"}), check)
    for other, told in (
        (
            lambda inputs, params: {"double": inputs["x"] * 3, "name": "a"},
            r"answers\[1\]\.output\.double: 3 where 2 was",
        ),
        (
            lambda inputs, params: {"double": inputs["x"] * 2, "name": "bc"},
            r"answers\[0\]\.output\.name: another text .* \(2 and 1",
        ),
        (lambda inputs, params: {"double": inputs["x"] * 2}, r"answers\[0\]\.output: 'name' is missing"),
        (lambda inputs, params: [1], r"answers\[0\]\.output: array where object was recorded"),
        (lambda inputs, params: 1 / 0, r"answers\[0\]\.error: backend_error where none was recorded"),
        (
            lambda inputs, params: ({"double": inputs["x"] * 2, "name": "a"}, 0.5),
            r"answers\[0\]\.confidence: 0\.5 where None",
        ),
    ):
        with pytest.raises(CheckFailed, match=told):
            run(backend(other), check)


def test_rows_that_are_refused_may_be_recorded_but_not_alone() -> None:
    def odd(inputs: dict[str, Any], _: Any) -> int:
        if inputs["x"] % 2:
            raise BadInput("it is odd")
        return int(inputs["x"])

    check = record(backend(odd), ROWS, Tolerance())
    assert [answer.error for answer in check.answers] == [None, "bad_input", None, "bad_input", None]
    with pytest.raises(RepositoryError, match="answers none of the 1 rows of its check: test/any: it is odd"):
        record(backend(odd), [Asked({"x": 1})], Tolerance())


def test_a_model_that_answers_otherwise_each_time_cannot_be_recorded() -> None:
    count = itertools.count()
    with pytest.raises(RepositoryError, match=r"otherwise each time \(answers\[0\]"):
        record(backend(lambda inputs, params: next(count)), ROWS, Tolerance())


def test_nothing_of_the_text_is_told() -> None:
    old, new = Expected({"text": "the secret name"}), Expected({"text": "another secret"})
    told = difference(old, new, Tolerance())
    assert told == ".output.text: another text than was recorded (14 and 15 characters)"


@given(values)
def test_an_answer_is_as_itself(value: Any) -> None:
    assert difference(Expected(value), Expected(value), Tolerance()) is None


@given(st.floats(-1e6, 1e6), st.floats(-1, 1), st.floats(0, 0.1), st.floats(0, 0.1))
def test_numbers_are_compared_by_both_tolerances(old: float, share: float, near: float, rel: float) -> None:
    limit = near + rel * abs(old)
    inside = Expected(old + share * 0.99 * limit)
    assert difference(Expected(old), inside, Tolerance(abs=near, rel=rel)) is None
    outside = Expected(old + 1.01 * limit + 1e-3)
    assert difference(Expected(old), outside, Tolerance(abs=near, rel=rel)) is not None


def test_a_confidence_moves_by_a_thousandth_at_most() -> None:
    assert difference(Expected(1, 0.5), Expected(1, 0.5009), Tolerance()) is None
    assert (
        difference(Expected(1, 0.5), Expected(1, 0.5011), Tolerance())
        == ".confidence: 0.5011 where 0.5 was recorded"
    )
    assert (
        difference(Expected(1, 0.5), Expected(1), Tolerance()) == ".confidence: None where 0.5 was recorded"
    )


def test_true_is_no_number_and_one_is_as_one_point_nought() -> None:
    assert difference(Expected(1), Expected(1.0), Tolerance()) is None
    assert difference(Expected(1), Expected(True), Tolerance()) is not None


def test_bytes_among_the_inputs_and_in_answers() -> None:
    rows = [Asked({"raw": {"$base64": "AAEC"}})]
    check = record(
        backend(lambda inputs, params: {"size": len(inputs["raw"]), "raw": inputs["raw"]}), rows, Tolerance()
    )
    assert check.answers[0].output == {"size": 3, "raw": "AAEC"}
    with pytest.raises(RepositoryError, match="no base64"):
        record(backend(lambda inputs, params: 1), [Asked({"raw": {"$base64": "?"}})], Tolerance())


def test_batches_are_of_the_cards_size_and_one_kin() -> None:
    seen: list[int] = []

    class Sized(FunctionBackend):
        def infer(self, rows: Sequence[Row]) -> list[Answer]:
            seen.append(len(rows))
            return super().infer(rows)

    run(
        Sized(CARD, lambda inputs, params: inputs["x"]),
        Check(rows=tuple(ROWS), answers=tuple(Expected(k) for k in range(5))),
    )
    assert seen == [2, 2, 1]
    seen.clear()
    rows = (Asked({"x": 1}), Asked({"x": 1}, {"p": 1}))
    run(Sized(CARD, lambda inputs, params: 1), Check(rows=rows, answers=(Expected(1), Expected(1))))
    assert seen == [1, 1]


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"rows": [{}]}', b'{"rows": [{"inputs": {}}]}', b"[" * 99_999]
)
def test_what_is_no_check_is_refused(raw: bytes) -> None:
    with pytest.raises(Damaged, match=r"m/1/check\.json"):
        decode_check(raw, "m/1/check.json")
