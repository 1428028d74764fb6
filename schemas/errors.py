"""Error codes that travel in answers and dead letters, and the exceptions of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Self, get_args

ErrorCode = Literal[
    "malformed",
    "unsupported_version",
    "too_large",
    "invalid_request",
    "id_conflict",
    "unknown_task",
    "unknown_capability",
    "no_placement",
    "object_missing",
    "deadline_exceeded",
    "cancelled",
    "overloaded",
    "over_budget",
    "decomposer_failed",
    "backend_error",
    "bad_input",
    "bad_output",
    "result_too_large",
    "merge_failed",
    "handler_error",
    "killed_its_process",
    "unanswered",
    "internal",
]
"""Every code a Result, a Partial or a dead letter can carry; docs/architecture.md says what each means."""

ERROR_CODES: tuple[str, ...] = get_args(ErrorCode)


class SchemaError(ValueError):
    """Base of this package's errors. `code` is one of ERROR_CODES."""

    code: ErrorCode = "invalid_request"


class Malformed(SchemaError):
    """Bytes that are no message: bad syntax, wrong types, too deep, too many parts, a number JSON has no word
    for.
    """

    code: ErrorCode = "malformed"


class TooLarge(Malformed):
    """More bytes than a record may hold; checked before anything is decoded."""

    code: ErrorCode = "too_large"


class UnsupportedVersion(Malformed):
    """A message of a major version that this build does not read."""

    code: ErrorCode = "unsupported_version"


class UnknownTopic(SchemaError):
    """A topic name that the topics table does not have, or a capability name that makes none."""

    code: ErrorCode = "unknown_capability"


class Problem(NamedTuple):
    """What is wrong with a rules file: the JSON path, the line (from 1), and the reason with its mend."""

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path} (line {self.line}): {self.reason}"


class RulesError(SchemaError):
    """A rules file that is refused; the message says where and why. `problems` holds the first of each
    independent part of the file; it is empty where the rules are fine in themselves and do not fit here.
    """

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> Self:
        """The error that lists `problems`."""
        return cls("rules: " + "\n  ".join(map(str, problems)), problems)
