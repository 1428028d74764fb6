"""Where a step's inputs come from: references into the request and into the outputs of earlier steps.

A reference is `query`, `inputs.NAME`, `params.NAME`, `steps.STEP` or `steps.STEP.NAME`. NAME is everything after its dot, so
names with dots work; where `steps.A.B` could mean a step `A.B` as well as the part `B` of step `A`, the step wins.
A step without references gets all inputs of the request and, where the request has a query and no input of that name, `query`.
Router and aggregator resolve alike, so that an attempt gets the same inputs whoever sends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOTHING: Mapping[str, Any] = {}


class Unresolved(LookupError):
    """A reference that leads nowhere; the message names it and what would mend it, never a value."""


def resolve(
    refs: Mapping[str, str],
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
    query: str | None,
    outputs: Mapping[str, Any] = _NOTHING,
) -> dict[str, Any]:
    """The inputs of a step by name. `outputs` are the outputs of answered steps by step name.

    Raises:
        Unresolved: where the request or an earlier step lacks what a reference names.
    """
    if not refs:
        resolved = dict(inputs)
        if query is not None:
            resolved.setdefault("query", query)
        return resolved
    return {name: _follow(reference, inputs, params, query, outputs) for name, reference in refs.items()}


def resolve_known(
    refs: Mapping[str, str], inputs: Mapping[str, Any], params: Mapping[str, Any], query: str | None
) -> dict[str, Any]:
    """The part of a step's inputs that the request alone decides: references to earlier steps are left out.

    Raises:
        Unresolved: as `resolve`. So a request that can never feed a later step is refused before the first one runs.
    """
    if not refs:
        return resolve(refs, inputs, params, query)
    return {
        name: _follow(reference, inputs, params, query, _NOTHING)
        for name, reference in refs.items()
        if not reference.startswith("steps.")
    }


def _follow(
    reference: str,
    inputs: Mapping[str, Any],
    params: Mapping[str, Any],
    query: str | None,
    outputs: Mapping[str, Any],
) -> Any:
    if reference == "query":
        if query is None:
            raise Unresolved("the request has no query; give `query`")
        return query
    source, _, name = reference.partition(".")
    if source == "inputs":
        if name not in inputs:
            raise Unresolved(f"the request's inputs lack what `{reference}` names; give it in `inputs`")
        return inputs[name]
    if source == "params":
        if name not in params:
            raise Unresolved(f"the request's params lack what `{reference}` names; give it in `params`")
        return params[name]
    if source == "steps":
        return _output(reference, name, outputs)
    raise Unresolved(f"`{reference}` is no reference; use query, inputs.NAME, params.NAME or steps.STEP[.NAME]")


def _output(reference: str, name: str, outputs: Mapping[str, Any]) -> Any:
    if name in outputs:
        return outputs[name]
    step, dot, key = name.partition(".")
    while dot:
        if step in outputs:
            output = outputs[step]
            if isinstance(output, Mapping) and key in output:
                return output[key]
            raise Unresolved(f"`{reference}`: the output of step {step} has no such part")
        more, dot, key = key.partition(".")
        step = f"{step}.{more}"
    raise Unresolved(f"`{reference}`: no such step has answered; name it in `after`")
