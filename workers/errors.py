"""Errors of the workers, and what a caller is told of an exception that a backend raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from schemas.errors import ErrorCode
from schemas.messages import Failure

ChosenCode = Literal["bad_input", "object_missing", "overloaded", "deadline_exceeded", "backend_error"]
CHOSEN_CODES: tuple[str, ...] = get_args(ChosenCode)


class WorkerError(Exception):
    """Base of this package's errors."""


class BadInput(ValueError):
    """Inputs that a backend refuses. The message goes to the caller: it must not quote the inputs. `at` names
    the place, such as `inputs.rows[3].date`.
    """

    def __init__(self, message: str, at: str | None = None) -> None:
        super().__init__(message if at is None else f"{message} - at {at}")


class CapabilityError(Exception):
    """Raised by a capability that answers with an error of its own choosing. The message goes to the caller:
    it must not quote the inputs.

    `backend_error` speaks against the backend, and the breaker counts it; the others do not.
    """

    def __init__(self, code: ChosenCode, message: str) -> None:
        if code not in CHOSEN_CODES:
            raise TypeError(f"a capability answers with one of {', '.join(CHOSEN_CODES)}, not {code!r}")
        super().__init__(message)
        self.code: ChosenCode = code


class BadRows(BadInput):
    """Some rows of a batch are refused: `faults` maps their index to the message. The others are sound."""

    def __init__(self, faults: Mapping[int, str]) -> None:
        super().__init__(f"{len(faults)} rows are refused")
        self.faults = dict(faults)


class BadOutput(WorkerError):
    """A backend's answer that cannot be published. The message goes to the caller as it is."""


class UnknownCapability(WorkerError):
    """A capability that no backend of this side offers; the message lists those there are."""


class AppError(WorkerError):
    """An app module that cannot be loaded or offers nothing."""


class LoadError(WorkerError):
    """A model that cannot be loaded; the message says which file and why."""


class Away(LoadError):
    """A service elsewhere that cannot be asked now, and may be later; the message says which and why."""


class RepositoryError(WorkerError):
    """A model repository that cannot be read or written as asked; the message says how to mend it."""


class Damaged(RepositoryError):
    """A version whose files are not those of its manifest; the message names the file."""


class CheckFailed(WorkerError):
    """A model that answers its recorded inputs otherwise; the message names the first difference."""


def failure_of(error: BaseException, capability: str) -> Failure:
    """What the caller is told of `error`: never text that could quote the payload.

    A message is passed on where it is known to be free of payload: that of BadInput and BadOutput by
    contract, that of another ValueError where it is a literal in the code that raised it. The rest is told by
    its type alone.
    """
    code: ErrorCode = "backend_error"
    if isinstance(error, BadOutput):
        return Failure(code="bad_output", message=f"{capability}: {error}")
    if isinstance(error, CapabilityError):
        return Failure(code=error.code, message=f"{capability}: {error}")
    if isinstance(error, ValueError):
        code = "bad_input"
        told = str(error) if isinstance(error, BadInput) else _literal(error)
        if told:
            return Failure(code=code, message=f"{capability}: {told}")
    what = "refused these inputs" if code == "bad_input" else "failed"
    return Failure(
        code=code, message=f"{capability} {what} with {type(error).__name__}; see the worker's log"
    )


def where(error: BaseException) -> str:
    """`file:line in function` where `error` was raised: for the log, which must not quote a payload."""
    trace = error.__traceback__
    if trace is None:
        return "unknown place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}"


def _literal(error: BaseException) -> str | None:
    """The message, where it is a constant of the function that raised it and so quotes no payload."""
    trace = error.__traceback__
    if trace is None or len(error.args) != 1:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    text = error.args[0]
    return text if isinstance(text, str) and text in trace.tb_frame.f_code.co_consts else None
