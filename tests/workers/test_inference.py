"""A batch that fails as a whole is tried row by row."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Sequence
from typing import Any

import pytest

from schemas.cards import Card
from workers.backends import Answer, Row, kin_of
from workers.errors import BadInput
from workers.inference import infer


class Fragile:
    """Fails wherever a row says `die`; notes the sizes of its batches."""

    card = Card(capability="a/b", side="local", version="1", model="m")

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.sizes: list[int] = []

    async def load(self) -> None: ...

    def kin(self, row: Row) -> Any:
        return kin_of(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        self.sizes.append(len(rows))
        if any("die" in row.inputs for row in rows):
            raise self.error
        return [Answer(row.inputs["n"]) for row in rows]

    def close(self) -> None: ...


def rows(*deadly: int) -> list[Row]:
    return [Row({"die": 1} if number in deadly else {"n": number}, {}) for number in range(4)]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("4111"), "backend_error"),
        (BadInput("x is odd"), "bad_input"),
        (SystemExit(3), "backend_error"),
        (MemoryError(), "backend_error"),
        (RecursionError(), "backend_error"),
        (CancelledError(), "backend_error"),
        (GeneratorExit(), "backend_error"),
        (KeyboardInterrupt(), "backend_error"),
    ],
)
def test_a_bad_row_fails_alone(error: BaseException, code: str) -> None:
    answers = infer(Fragile(error), rows(2), lambda i: False)
    assert [answer.output for answer in answers] == [0, 1, None, 3]
    assert answers[2].error is not None
    assert answers[2].error.code == code


def test_a_sound_batch_is_one_call() -> None:
    backend = Fragile(RuntimeError())
    infer(backend, rows(), lambda i: False)
    assert backend.sizes == [4]


def test_rows_that_expire_meanwhile_are_not_tried() -> None:
    backend = Fragile(RuntimeError())
    answers = infer(backend, rows(0), lambda i: i >= 2)
    assert backend.sizes == [4, 1, 1]
    assert [answer.error.code if answer.error else None for answer in answers] == [
        "backend_error",
        None,
        "deadline_exceeded",
        "deadline_exceeded",
    ]


def test_a_backend_that_answers_too_few_rows_is_tried_alone() -> None:
    class Short(Fragile):
        def infer(self, rows: Sequence[Row]) -> list[Answer]:
            self.sizes.append(len(rows))
            return [Answer(1)][: 1 if len(rows) == 1 else 0]

    assert [answer.output for answer in infer(Short(RuntimeError()), rows(), lambda i: False)] == [1, 1, 1, 1]


@pytest.mark.parametrize("odd", [None, 5, Answer(error="boom")])  # type: ignore[arg-type]
def test_what_is_no_answer_is_a_bad_output_of_its_row(odd: Any) -> None:
    class Odd(Fragile):
        def infer(self, rows: Sequence[Row]) -> list[Answer]:
            return [odd if "die" in row.inputs else Answer(1) for row in rows]

    answers = infer(Odd(RuntimeError()), rows(2), lambda i: False)
    assert [answer.error.code if answer.error else None for answer in answers] == [
        None,
        None,
        "bad_output",
        None,
    ]
