"""Checks that a model's answer follows the card's output schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schemas.cards import Card
from workers.errors import BadOutput, LoadError


def check_of(card: Card) -> Callable[[Any], None]:
    """What raises BadOutput for a value that `card.output_schema` refuses; it names the place and the
    keyword, and quotes nothing. Schemas elsewhere (`$ref` to a URL) are not fetched.

    Raises:
        LoadError: no JSON Schema (draft 2020-12).
    """
    if not card.output_schema:
        return lambda _: None
    # Imported here: it takes 0.1 s, and few backends check JSON.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError, best_match
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(card.output_schema)
    except SchemaError as error:
        raise LoadError(f"{card.capability}: its output_schema is none: at {error.json_path}") from error
    validator = Draft202012Validator(card.output_schema, registry=Registry())

    def check(value: Any) -> None:
        try:
            found = best_match(validator.iter_errors(value))
        except Unresolvable as error:
            raise BadOutput("the card's output_schema refers to one that is not there") from error
        except RecursionError as error:
            raise BadOutput("the answer is nested too deep for its schema") from error
        if found is not None:
            raise BadOutput(f"the answer breaks the output schema at {_place(found)}: {found.validator}")

    return check


def _place(error: Any) -> str:
    # Keys of the answer are the model's words: numbers and the schema's own keys alone are shown.
    known = {str(step) for step in error.absolute_schema_path}
    shown = (str(step) for step in error.absolute_path)
    return "$" + "".join(f".{step}" if step in known or step.isdigit() else ".*" for step in shown)
