"""Ids: deterministic, so that redelivery derives the same ones."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from schemas.errors import Malformed
from schemas.messages import Side

MAX_ID_BYTES = 128
_MARK = "\x1f"


def check_id(value: str, what: str = "id") -> str:
    """`value` where it is 1 to MAX_ID_BYTES bytes of UTF-8.

    Raises:
        Malformed: otherwise.
    """
    size = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if not 1 <= size <= MAX_ID_BYTES:
        raise Malformed(f"{what} has {size} bytes; give 1 to {MAX_ID_BYTES}")
    return value


def scoped(tenant: str | None, request_id: str) -> str:
    """The id inside Edgeway: the caller's id scoped by tenant. One-to-one, so no two callers can meet in a
    join.
    """
    if tenant:
        return f"{_MARK}{tenant}{_MARK}{request_id}"
    if request_id.startswith(_MARK):
        return f"{_MARK}{_MARK}{request_id}"
    return request_id


def unscoped(scoped_id: str) -> tuple[str | None, str]:
    """(tenant, caller's id) of a scoped id."""
    if not scoped_id.startswith(_MARK):
        return None, scoped_id
    tenant, _, request_id = scoped_id[1:].partition(_MARK)
    return tenant or None, request_id


def derived(topic: str, partition: int, offset: int, timestamp: int) -> str:
    """The id of a request that came without one, from its place in the log and its append time (32 hex
    digits).
    """
    place = f"{topic}/{partition}/{offset}/{timestamp}".encode()
    return hashlib.sha256(place).hexdigest()[:32]


def conflicting(request_id: str, digest: str) -> str:
    """The id under which a repeated id with other content, whose digest is `digest`, is answered
    (`id_conflict`): the same content always gets the same one, whoever notices it.
    """
    mark = hashlib.sha256(f"{request_id}/{digest}".encode()).hexdigest()[:12]
    start = request_id[: MAX_ID_BYTES // 4].encode()[: MAX_ID_BYTES - len(mark) - 1]
    return f"{start.decode(errors='ignore')}~{mark}"


class SubtaskId(NamedTuple):
    """The parts of a subtask id; `request` is the scoped request id."""

    request: str
    step: str
    side: Side
    attempt: int


def subtask_id(request: str, step: str, side: Side, attempt: int) -> str:
    """`request/step/side/attempt`; a step's name holds no slash, a request's id may."""
    return f"{request}/{step}/{side}/{attempt}"


def parse_subtask_id(value: str) -> SubtaskId:
    """The parts of `value`.

    Raises:
        Malformed: where it is no subtask id.
    """
    parts = value.rsplit("/", 3)
    if (
        len(parts) != 4
        or parts[2] not in ("local", "cloud")
        or not parts[3].isascii()
        or not parts[3].isdigit()
    ):
        raise Malformed("subtask id is not REQUEST/STEP/local|cloud/ATTEMPT")
    return SubtaskId(parts[0], parts[1], parts[2], int(parts[3][:9]))  # type: ignore[arg-type]
