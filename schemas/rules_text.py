"""The text of a rules file: JSON with places, so that an error can say where it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

import msgspec

from schemas.choices import choices_at, located
from schemas.errors import Problem, RulesError
from schemas.oddities import first_oddity
from schemas.places import Path, offset, show
from schemas.rules_structs import BudgetRule, MergeRule, PrivacyRule, StepRule, Weights
from schemas.values import check_value

MAX_RULES_BYTES = 2**20
"""What a ConfigMap can carry."""

MAX_PROBLEMS = 20
"""Reading ends with so many: to find the line of each takes a walk through the text."""

S = TypeVar("S", bound=msgspec.Struct)

_UNKNOWN = re.compile(r"unknown field `(.*?)`", re.DOTALL)
_FORM = 'write {"tasks": {"NAME": {...}}}'
_PARTS: dict[str, type[msgspec.Struct]] = {
    "steps": StepRule,
    "merge": MergeRule,
    "weights": Weights,
    "privacy": PrivacyRule,
    "budget": BudgetRule,
}


class RulesText:
    """The text of a rules file and what it says. `problems` are the refusals so far; `in_code` says that the
    steps were made for one request.
    """

    def __init__(self, text: str, said: dict[str, Any], in_code: bool = False) -> None:
        self.text = text
        self.said = said
        self.in_code = in_code
        self.flat = "tasks" not in said
        self.problems: list[Problem] = []

    @classmethod
    def read(cls, raw: bytes, in_code: bool = False) -> RulesText:
        """The file in `raw`.

        Raises:
            RulesError: no JSON object, or one that other programs would read otherwise.
        """
        if len(raw) > MAX_RULES_BYTES:
            raise _refusal(f"more than {MAX_RULES_BYTES} bytes; a ConfigMap carries no more, so write less")
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise _refusal(f"not UTF-8 at byte {error.start}; save the file as UTF-8", line) from None
        if not text.strip():
            raise _refusal(f"the file is empty; {_FORM}")
        try:
            said = json.loads(text, parse_int=_integer)
        except json.JSONDecodeError as error:
            raise _refusal(f"column {error.colno}: {error.msg}", error.lineno) from None
        except RecursionError:
            raise _refusal("nested too deep") from None
        if odd := first_oddity(text):
            raise RulesError.of([Problem(show(odd.path), _line(text, odd.at), odd.reason)])
        if not isinstance(said, dict):
            raise _refusal(f"not a JSON object; {_FORM}")
        try:
            check_value(said, "the file")
        except ValueError as error:
            raise _refusal(str(error)) from None
        return cls(text, said, in_code)

    @contextmanager
    def part(self) -> Iterator[None]:
        """An independent part of the file: a refusal inside is kept, and the other parts are read still."""
        try:
            yield
        except RulesError as error:
            self.problems += error.problems
            if len(self.problems) >= MAX_PROBLEMS:
                self.settle()

    def settle(self) -> None:
        """Raises what was kept.

        Raises:
            RulesError: some part was refused; its problems stand in the order of the text.
        """
        if self.problems:
            raise RulesError.of(sorted(self.problems, key=lambda problem: problem.line))

    def refuse(self, path: Path, why: str) -> NoReturn:
        """Raises the error at `path`, with its line."""
        raise RulesError.of([self.problem(path, why)])

    def problem(self, path: Path, why: str) -> Problem:
        """What is wrong at `path`, with its line."""
        return Problem(show(path), _line(self.text, offset(self.text, path)), why)

    def convert(self, value: Any, kind: type[S], path: Path) -> S:
        """`value` as `kind`, with errors at their place below `path`."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            why, below = located(str(error))
            if why.startswith("Invalid enum value") and (known := choices_at(kind, below)):
                why += f"; give one of {', '.join(known)}"
            elif why.startswith("Expected `str` matching regex"):
                why = "no URL; give http://HOST... or https://HOST..."
            unknown = _UNKNOWN.search(why)
            if unknown is None:
                self.refuse(path + below, why)
            self.refuse((*path, *below, unknown.group(1)), _unknown(unknown.group(1), kind, below))

    def task_path(self, name: str) -> Path:
        """Where the task `name` stands."""
        return (name,) if self.flat else ("tasks", name)

    def step_path(self, name: str, index: int) -> Path:
        """Where a step of the task `name` stands, or what stands for it."""
        entry, path = self.entry(name), self.task_path(name)
        if "steps" in entry:
            return (*path, "steps", index)
        return (*path, "capability") if "capability" in entry else path

    def names(self, task: str) -> bool:
        """Whether the file itself has the task."""
        return task in (self.said if self.flat else self.said["tasks"])

    def entry(self, name: str) -> dict[str, Any]:
        """What the file itself says of the task `name`; nothing for one that is built in."""
        found = (self.said if self.flat else self.said["tasks"]).get(name, {})
        return dict(found)


def near(name: str, known: list[str]) -> str:
    """The end of an error about an unknown name: the nearest of `known`, or all of them."""
    found = get_close_matches(name, known, 1)
    return f"did you mean {found[0]!r}?" if found else f"known are {', '.join(sorted(known)) or 'none'}"


def _unknown(key: str, kind: type[msgspec.Struct], below: Path) -> str:
    part: Any = _PARTS.get(str(below[0]), kind) if below else kind
    return f"unknown key; {near(key, list(part.__struct_encode_fields__))}"


def _refusal(reason: str, line: int = 1) -> RulesError:
    return RulesError.of([Problem("$", line, reason)])


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _integer(digits: str) -> int:
    # Python refuses thousands of digits without a place; `first_oddity` gives one.
    return int(digits) if len(digits) <= 40 else 0
