"""Error codes that travel in answers and dead letters, and the exceptions of this package."""

from __future__ import annotations

from typing import Literal, get_args

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


class RulesError(SchemaError):
    """A rules file that is refused; the message says where and why."""
