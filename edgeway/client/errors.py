"""What a client raises: of the way to an answer, and, by `raise_for_error`, of an answer that is an error."""

from __future__ import annotations

from edgeway.errors import EdgewayError, Exit
from schemas.errors import ErrorCode
from schemas.messages import Result


class ClientError(EdgewayError):
    """Base of all that a client raises of its own."""


class ClientClosed(ClientError):
    """The client is not open: before it was entered, after it was closed, or in a forked child."""


class RequestTimeout(ClientError, TimeoutError):
    """No answer within the caller's own time. The request goes on: `result(id)` asks for its answer again."""

    exit_code = Exit.UNANSWERED

    def __init__(self, request_id: str, timeout_s: float) -> None:
        super().__init__(
            f"no answer to request {request_id} within {timeout_s:g} s; it was not cancelled: ask again with "
            f"result({request_id!r}), or give a longer timeout_s"
        )
        self.id = request_id


class NotSent(ClientError):
    """Every try to hand the request over ended without a word. It may have been taken all the same.

    To try once more is safe under the same `id` and with the same content: it is not run twice.
    """

    exit_code = Exit.UNREACHABLE

    def __init__(self, request_id: str, tries: int, reason: str) -> None:
        super().__init__(
            f"request {request_id} was not acknowledged in {tries} tries: {reason}; it may have been taken "
            f"all the same: send it again with id={request_id!r}, which never runs it twice"
        )
        self.id = request_id


class GatewayRefused(ClientError):
    """The gateway refused the call itself: no request of it was made, or none is known."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"the gateway refused with {status} ({code}): {detail}")
        self.status = status
        self.code = code
        self.detail = detail


class Unauthorized(GatewayRefused):
    """The token is missing, wrong, or not allowed this (401, 403)."""


class UnknownRequest(GatewayRefused):
    """The gateway knows no request of this id (404): never sent, of another tenant, or too long ago."""


class AnswerError(ClientError):
    """The answer is an error: `result` is the whole of it, `code` one of schemas.ERROR_CODES."""

    def __init__(self, result: Result) -> None:
        failure = result.error
        said = f"{failure.message} ({failure.code})" if failure else "an error without words"
        super().__init__(f"request {result.id}: {said}")
        self.result = result
        self.code: ErrorCode = failure.code if failure else "internal"


class InvalidRequest(AnswerError):
    """The request itself cannot be used; the same again will fail again."""


class BadInput(InvalidRequest):
    """A capability refuses these inputs."""


class UnknownTask(InvalidRequest):
    """No such task or capability in the rules."""


class IdConflict(InvalidRequest):
    """The id was used for a request with other content."""


class NoPlacement(AnswerError):
    """No side may or can run a step now: privacy, budget, no live worker."""


class DeadlineExceeded(AnswerError):
    """Nothing to answer with by the request's deadline."""


class RequestCancelled(AnswerError):
    """Somebody cancelled the request."""


class Overloaded(AnswerError):
    """Too much at once; a new request, later, may do better."""


class OverBudget(AnswerError):
    """The budget, or the request's `max_cost`, does not allow it."""


class ResultTooLarge(AnswerError):
    """There is an answer, and no record or store holds it."""


class CapabilityFailed(AnswerError):
    """A model, a merge or a role failed."""


FAILURES: dict[ErrorCode, type[AnswerError]] = {
    "malformed": InvalidRequest,
    "unsupported_version": InvalidRequest,
    "too_large": InvalidRequest,
    "invalid_request": InvalidRequest,
    "id_conflict": IdConflict,
    "unknown_task": UnknownTask,
    "unknown_capability": UnknownTask,
    "no_placement": NoPlacement,
    "object_missing": BadInput,
    "deadline_exceeded": DeadlineExceeded,
    "cancelled": RequestCancelled,
    "overloaded": Overloaded,
    "over_budget": OverBudget,
    "decomposer_failed": CapabilityFailed,
    "backend_error": CapabilityFailed,
    "bad_input": BadInput,
    "bad_output": CapabilityFailed,
    "result_too_large": ResultTooLarge,
    "merge_failed": CapabilityFailed,
    "handler_error": CapabilityFailed,
    "killed_its_process": CapabilityFailed,
    "unanswered": CapabilityFailed,
    "internal": CapabilityFailed,
}
"""The exception of each error code."""
