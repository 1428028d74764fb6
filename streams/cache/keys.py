"""The key under which an answer is kept: a digest of everything that it depends on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from schemas.claims import claim_of
from schemas.messages import Request

_CANONICAL = msgspec.msgpack.Encoder(order="deterministic").encode


def answer_key(request: Request, task: str, rules_version: str, versions: Sequence[str]) -> str:
    """The key of the whole answer to `request`, which the rules take for `task`.

    `versions` are those of the cards that may take part, in an order that equal requests share. The order of
    map keys counts for nothing; 1, 1.0 and true differ, and so do text and bytes. `max_cost` and the deadline
    are no part: an exact answer is exact for a poorer or hastier caller too.
    """
    claim = None if request.claim is None else request.claim.sha256
    return _key(
        "a",
        request.tenant,
        request.privacy,
        task,
        request.query,
        request.inputs,
        request.params,
        claim,
        rules_version,
        tuple(versions),
    )


def step_key(
    tenant: str | None,
    capability: str,
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
    versions: Sequence[str],
    rules_version: str,
) -> str:
    """The key of one step's answer, whichever side gave it; only what has the verdict `normal` is kept."""
    return _key("s", tenant, capability, inputs, params, tuple(versions), rules_version)


def is_of_answer(key: str) -> bool:
    """Whether `key` is that of a whole answer, and not of a step's."""
    return key.startswith("a:")


def over_key(key: str) -> str:
    """Where it is said that an execution for `key` is over and left no answer: an older one may be kept under
    the key itself, and must not be lost by that."""
    return f"o:{key}"


def _key(kind: str, *parts: Any) -> str:
    content = _CANONICAL((kind, *parts))
    if b"dataref" in content:
        content = _CANONICAL((f"{kind}, by content", *map(_by_content, parts)))
    return f"{kind}:{sha256(content).hexdigest()[:40]}"


def _by_content(value: Any) -> Any:
    """`value` with claims named by what they stand for: each upload has a place of its own."""
    if isinstance(value, Mapping):
        claim = claim_of(value)
        if claim is not None:
            return ("claim", claim.sha256, claim.size, claim.content_type)
        return {name: _by_content(item) for name, item in value.items()}
    return [_by_content(item) for item in value] if isinstance(value, list | tuple) else value
