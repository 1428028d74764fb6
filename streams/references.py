"""Where a step's inputs come from: references into the request and into the outputs of earlier steps.

A reference is `query`, `inputs.NAME`, `params.NAME`, `steps.STEP` or `steps.STEP.NAME`; NAME is all after
its dot. What is not there leaves its name out, so that a step may name inputs that only some requests give;
a step none of whose names has a value is an error. A step without references gets all inputs of the request
and, where the request has a query and no input of that name, `query`. Router and aggregator resolve alike,
so that an attempt gets the same inputs whoever sends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.claims import claim_of

_NOTHING: Mapping[str, Any] = {}
_ABSENT = object()


class Unresolved(LookupError):
    """Inputs that lead nowhere; the message names the reference and what would mend it, never a value."""


def resolve(
    refs: Mapping[str, str],
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
    query: str | None,
    outputs: Mapping[str, Any] = _NOTHING,
) -> dict[str, Any]:
    """The inputs of a step by name. `outputs` are the outputs of answered steps by step name.

    Raises:
        Unresolved: no reference leads to a value, one names a step that has not answered, or one is none at
        all.
    """
    if not refs:
        resolved = dict(inputs)
        if query is not None:
            resolved.setdefault("query", query)
        return resolved
    resolved = {}
    for name, reference in refs.items():
        value = _follow(reference, inputs, params, query, outputs)
        if value is not _ABSENT:
            resolved[name] = value
    if not resolved:
        wanted = ", ".join(sorted(set(refs.values())))
        raise Unresolved(f"nothing is there of what the step reads; give at least one of {wanted}")
    return resolved


def resolve_known(
    refs: Mapping[str, str], inputs: Mapping[str, Any], params: Mapping[str, Any], query: str | None
) -> dict[str, Any]:
    """The part of a step's inputs that the request alone decides: references to earlier steps are left out.

    Raises:
        Unresolved: as `resolve`, for a step that reads nothing but the request. So a request that can never
        feed
            a later step is refused before the first one runs.
    """
    known = {name: reference for name, reference in refs.items() if not reference.startswith("steps.")}
    if refs and not known:
        return {}
    if len(known) == len(refs):
        return resolve(refs, inputs, params, query)
    found = {name: _follow(reference, inputs, params, query, _NOTHING) for name, reference in known.items()}
    return {name: value for name, value in found.items() if value is not _ABSENT}


def _follow(
    reference: str,
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
    query: str | None,
    outputs: Mapping[str, Any],
) -> Any:
    if reference == "query":
        return _ABSENT if query is None else query
    source, _, name = reference.partition(".")
    if source == "inputs":
        return inputs.get(name, _ABSENT)
    if source == "params":
        return params.get(name, _ABSENT)
    if source == "steps":
        return _output(reference, name, outputs)
    raise Unresolved(
        f"`{reference}` is no reference; use query, inputs.NAME, params.NAME or steps.STEP[.NAME]"
    )


def _output(reference: str, name: str, outputs: Mapping[str, Any]) -> Any:
    if name in outputs:
        return outputs[name]
    step, _, part = name.partition(".")
    if step not in outputs:
        raise Unresolved(f"`{reference}`: that step has not answered; name it in `after`")
    output = outputs[step]
    if claim_of(output) is not None:
        raise Unresolved(
            f"`{reference}`: that output lies in an object store; take all of it: `steps.{step}`"
        )
    return output.get(part, _ABSENT) if isinstance(output, Mapping) else _ABSENT
