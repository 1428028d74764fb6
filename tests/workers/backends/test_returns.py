"""What functions give back: schemas by annotation, outputs checked and made plain."""

from __future__ import annotations

import dataclasses
import enum
import re
from datetime import date
from typing import Any, Literal, TypedDict

import msgspec
import numpy as np
import pytest

from workers.backends import Answer, Row
from workers.backends.function import backends_of, capability
from workers.backends.returns import Returns


class Money(msgspec.Struct):
    amount: float
    unit: Literal["EUR", "CNY"] = "EUR"


@dataclasses.dataclass
class Summary:
    text: str
    sums: list[Money]


class Loose(TypedDict, total=False):
    day: date
    summary: Summary


class Level(enum.Enum):
    HIGH = "high"


NUMBER = {"type": "number"}


def returns(hint: Any, *, batch: bool = False) -> Returns:
    def function(rows: Any) -> Any: ...

    function.__annotations__["return"] = hint
    return Returns.of(function, batch=batch)


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (float, NUMBER),
        (tuple[float, float], NUMBER),
        (tuple[float, float | None], NUMBER),
        (tuple[float, float] | None, {"anyOf": [NUMBER, {"type": "null"}]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Any, {}),
        (Answer, {}),
        (np.ndarray, {}),
        (Answer | float, {}),
    ],
)
def test_the_schema_is_that_of_the_output(hint: Any, schema: dict[str, Any]) -> None:
    assert returns(hint).schema == schema


def test_a_batch_answers_rows() -> None:
    assert returns(list[tuple[float, float] | ValueError], batch=True).schema == NUMBER
    assert returns(dict[str, float], batch=True).schema == {}


def test_records_are_spelt_out() -> None:
    schema = returns(tuple[Summary, float]).schema
    assert (schema["title"], schema["required"]) == ("Summary", ["text", "sums"])
    assert schema["$defs"]["Money"]["properties"]["unit"]["enum"] == ["CNY", "EUR"]


def test_what_is_no_plain_value_becomes_one() -> None:
    given: Loose = {"day": date(2026, 1, 31), "summary": Summary("a", [Money(1)])}
    plain = {"day": "2026-01-31", "summary": {"text": "a", "sums": [{"amount": 1, "unit": "EUR"}]}}
    assert returns(Loose).answer(given).output == plain
    assert returns(Any).answer((Summary("a", []), 0.5)) == Answer({"text": "a", "sums": []}, 0.5)
    assert returns(Level).answer(Level.HIGH).output == "high"
    assert returns(bytes).answer(b"\x00\xff").output == b"\x00\xff"


@pytest.mark.parametrize(
    ("hint", "value", "told"),
    [
        (
            Summary,
            Summary("s3cret", [{"amount": "s3cret"}]),
            r"Expected `float`, got `str` - at `?output\.sums",
        ),
        (Money, Money(1, "s3cret"), r"not allowed here - at output\.unit"),
        (list[float], [1.0, np.float32(2)], r"numpy\.float32"),
        (dict[str, float], {"s3cret": None}, r"Expected `float`, got `null`"),
    ],
)
def test_an_output_that_is_not_as_annotated_is_bad_output(hint: Any, value: Any, told: str) -> None:
    def function(inputs: Any, params: Any) -> Any:
        return value

    function.__annotations__["return"] = hint
    (backend,) = backends_of(capability("local/any")(function))
    (answer,) = backend.infer([Row({}, {})])
    assert answer.error is not None
    assert answer.error.code == "bad_output"
    assert "s3cret" not in answer.error.message
    assert re.search(told, answer.error.message)


def test_a_card_tells_inputs_outputs_and_the_whole_docstring() -> None:
    @capability("local/sum")
    def total(sums: list[Money]) -> tuple[Money, float]:
        """The sum of some money.

        All sums are of one unit.
        """
        return Money(sum(each.amount for each in sums), sums[0].unit), 1.0

    card = backends_of(total)[0].card
    assert card.description == "The sum of some money."
    assert card.input_schema["description"].endswith("All sums are of one unit.")
    assert card.input_schema["properties"]["sums"]["type"] == "array"
    assert "Money" in card.input_schema["$defs"]
    assert card.output_schema["title"] == "Money"
    (answer,) = backends_of(total)[0].infer([Row({"sums": [{"amount": 2}, {"amount": 3}]}, {})])
    assert (answer.output, answer.confidence) == ({"amount": 5.0, "unit": "EUR"}, 1.0)
