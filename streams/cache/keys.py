"""The key under which an answer is kept: a digest of everything that it depends on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

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


def _key(kind: str, *parts: Any) -> str:
    return f"{kind}:{sha256(_CANONICAL((kind, *parts))).hexdigest()[:40]}"
