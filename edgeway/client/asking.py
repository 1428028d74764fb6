"""From the arguments of a call to the request that is sent. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec

from schemas import codec
from schemas.bounds import DEFAULT_DEADLINE_MS, TENANT_WORDS
from schemas.errors import Malformed
from schemas.messages import Privacy, Request

GRACE_S = 15.0
"""Beyond a request's deadline: an answer is promised a second after it, later where an owner has died."""


class AskedAlike(TypedDict, total=False):
    """What all requests of a `map` have alike."""

    query: str | None
    params: Mapping[str, Any] | None
    tenant: str | None
    privacy: Privacy
    deadline_ms: int | None
    max_cost: float | None


class Asked(AskedAlike, total=False):
    """What `route`, `submit` and `stream` take beside `task` and `timeout_s`."""

    inputs: Mapping[str, Any] | None
    id: str | None


_KNOWN = Asked.__required_keys__ | Asked.__optional_keys__


def request_of(task: str | None, asked: Asked, new_id: str) -> Request:
    """The request that `asked` describes, under its own id or `new_id`.

    Raises:
        SchemaError: it is none: neither task nor query, a wrong type, too large, too deep.
    """
    unknown = asked.keys() - _KNOWN
    if unknown:
        known = ", ".join(sorted(_KNOWN))
        raise TypeError(f"no such argument: {', '.join(sorted(unknown))}; a request has task, {known}")
    if task is None and asked.get("query") is None:
        raise Malformed("what is asked? give task=NAME, or query=PHRASE")
    said: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    for name in ("inputs", "params"):
        if not isinstance(said.get(name, {}), Mapping):
            raise Malformed(f"{name} is no mapping of names to values: give for example {{'text': '...'}}")
        said[name] = dict(said.get(name, {}))
    said |= {"id": said.get("id", new_id), "task": task}
    try:
        request = msgspec.convert(said, Request)
    except msgspec.ValidationError as exc:
        text = str(exc)
        mend = f": a tenant is {TENANT_WORDS}" if text.endswith(".tenant`") else ""
        raise Malformed(f"not a request: {text}{mend}") from exc
    # What no role could read must fail here, and the same over Kafka and over HTTP.
    codec.decode_request(codec.encode(request))
    return request


def wait_of(deadline_ms: int | None, timeout_s: float | None) -> float:
    """How long a caller waits, in seconds: as said, else the request's deadline and GRACE_S."""
    if timeout_s is not None:
        return timeout_s
    return (DEFAULT_DEADLINE_MS if deadline_ms is None else deadline_ms) / 1000 + GRACE_S


def inputs_of(item: Any) -> Mapping[str, Any]:
    """The inputs that one item of `map` stands for: a mapping as it is, a text as the input `text`.

    Raises:
        Malformed: it is neither.
    """
    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, Mapping):
        return item
    raise Malformed(f"an input of map is a mapping of inputs or a text, not {type(item).__name__}")
