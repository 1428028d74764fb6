"""Whose answers may be kept for equal requests, and under which key. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.messages import Request
from schemas.rules import StepRule, sides_of
from streams.cache.keys import step_key
from streams.registry.figures import View

Versions = tuple[str, ...]


def versions_of(step: StepRule, capabilities: Sequence[str], view: View) -> Versions | None:
    """The versions of all cards that may answer `step`; None where its answer may not be kept.

    It may where the rules say so, or where they are silent and every live card of the step is `cacheable`.
    """
    if step.cache is False:
        return None
    versions: list[str] = []
    for side in sides_of(step):
        for capability in capabilities:
            target = view.at(side, capability)
            if target is None:
                continue
            if step.cache is None and not target.figures.cacheable:
                return None
            versions += [f"{side}/{capability}@{version}" for version in target.figures.versions]
    return tuple(versions) if versions else None


def step_key_of(
    step: StepRule,
    capabilities: Sequence[str],
    request: Request,
    inputs: Mapping[str, Any],
    view: View,
    rules: str,
) -> str | None:
    """The key of the answer to one step, None where it may not be kept."""
    versions = versions_of(step, capabilities, view)
    if versions is None:
        return None
    return step_key(request.tenant, step.capability, inputs, request.params, versions, rules)
