"""From the arguments of a call to the request that is sent. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import msgspec

from schemas import codec, ids
from schemas.bounds import DEFAULT_DEADLINE_MS, TENANT_WORDS
from schemas.errors import Malformed, SchemaError
from schemas.messages import Privacy, Request

GRACE_S = 15.0
"""Beyond a request's deadline: an answer is promised a second after it, later where an owner has died."""


IdOf = Callable[[Any], str]
Named = str | None | SchemaError
"""What `named` gives: an id, none, or why there is none."""


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
        return seconds(timeout_s)
    return (DEFAULT_DEADLINE_MS if deadline_ms is None else deadline_ms) / 1000 + GRACE_S


def seconds(timeout_s: Any) -> float:
    """`timeout_s` itself.

    Raises:
        Malformed: it is no number; told before anything is sent.
    """
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or math.isnan(timeout_s):
        raise Malformed(f"timeout_s is a number of seconds, not {type(timeout_s).__name__}")
    return float(timeout_s)


def key_of(request_id: Any, tenant: str | None) -> str:
    """The scoped id of a request that was sent before.

    Raises:
        Malformed: no request can have had this id, or this tenant.
    """
    asked: Asked = {"id": request_id}
    if tenant is not None:
        asked["tenant"] = tenant
    if not isinstance(request_id, str):
        raise Malformed(f"the id of a request is a text, not {type(request_id).__name__}")
    request_of("-", asked, request_id)
    return ids.scoped(tenant, request_id)


def named(id_of: IdOf | None, item: Any) -> Named:
    """The id that a caller's `id_of` has for one input of a `map`; where it fails, what its Result says.

    An error of its own must not pass for one of the inputs: a StopIteration would end the map early, without
    a word.
    """
    if id_of is None:
        return None
    try:
        found: Any = id_of(item)
    except Exception as exc:  # noqa: BLE001 - the caller's code; its text may quote the input
        return Malformed(f"`ids` has failed at this input: {type(exc).__name__}")
    if not isinstance(found, str):
        return Malformed(f"`ids` gave no text for this input, but {type(found).__name__}")
    return found


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
