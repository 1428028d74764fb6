"""Errors that end a command, each with the exit code it means."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    TOPICS = 4
    UNANSWERED = 5
    INTERRUPTED = 130


EXIT_TEXT = {
    Exit.OK: "all done",
    Exit.FAILED: "something unexpected, or an answer was an error",
    Exit.USAGE: "wrong flags, settings or input lines, or a port or folder that cannot be used",
    Exit.UNREACHABLE: "Kafka cannot be reached",
    Exit.TOPICS: "topics are missing or wrong",
    Exit.UNANSWERED: "something was not answered or not found",
    Exit.INTERRUPTED: "interrupted; a role, `up` or `broker` that was told to stop ends with 0",
}


class EdgewayError(Exception):
    """Base: the text says what, where and how to mend; `exit_code` is what the command ends with."""

    exit_code: Exit = Exit.FAILED


class UsageError(EdgewayError):
    """Flags or input that cannot be used."""

    exit_code = Exit.USAGE


class KafkaUnreachable(EdgewayError):
    """No broker answered."""

    exit_code = Exit.UNREACHABLE

    def __init__(self, bootstrap: str, reason: str) -> None:
        super().__init__(
            f"Kafka at {bootstrap} cannot be reached: {reason}\n"
            "Check that it runs there (`edgeway broker` or `edgeway up` start one), that --kafka or\n"
            "EDGEWAY_KAFKA names it as this machine sees it, and the --security-protocol, --ssl-*, --sasl-*."
        )


class TopicsWrong(EdgewayError):
    """Topics that are missing or cannot be worked with; one line each."""

    exit_code = Exit.TOPICS

    def __init__(self, lines: Iterable[str], bootstrap: str) -> None:
        text = "\n".join(f"  {line}" for line in lines)
        super().__init__(
            f"topics on {bootstrap} are not as they must be:\n{text}\n"
            f"Make or mend them: edgeway topics apply --kafka {bootstrap}\n"
            "(with the --rules of the roles; --fix alters what is there)"
        )


class PortTaken(EdgewayError):
    """Another process listens on the port."""

    exit_code = Exit.USAGE

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"port {port} on {host} is taken by another process: give another --port, or stop it"
        )


class HostUnusable(EdgewayError):
    """The address to listen on is none of this machine."""

    exit_code = Exit.USAGE

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"cannot listen on --host {host}, port {port}: {reason}; give an address of this machine "
            "(127.0.0.1, or 0.0.0.0 for all of them) and a port that this user may take"
        )


class OutputLost(EdgewayError):
    """Standard output takes no more."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"standard output cannot be written: {reason}; send it somewhere else, or to /dev/null"
        )


class TopicsRefused(EdgewayError):
    """The broker refused to make or alter a topic."""

    exit_code = Exit.TOPICS


class SendUnknown(EdgewayError):
    """No acknowledgement in time: the record may have been written, or may still be."""

    exit_code = Exit.UNREACHABLE

    def __init__(self, request_id: str, wait_s: float) -> None:
        super().__init__(
            f"Kafka did not acknowledge request {request_id!r} within {wait_s:g} s, so it may be written or "
            "not; send it again under the same id, which cannot execute twice"
        )
        self.request_id = request_id


class ExchangeClosed(EdgewayError):
    """The exchange was closed, so no answer can come through it any more."""

    def __init__(self) -> None:
        super().__init__("this exchange is closed; open a new one and ask again under the same id")


class ExchangeFull(EdgewayError):
    """As many callers wait as may."""

    def __init__(self, most: int, what: str = "wait for answers") -> None:
        super().__init__(f"{most} callers {what} already; try again later, or start another replica")
