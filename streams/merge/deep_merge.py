"""Deep merge: maps are laid over each other at every depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streams.merge.parts import Merged, Part, as_maps, distinct, is_map, lowest_confidence
from streams.merge.priority_override import standing


def deep_merge(parts: Sequence[Part], params: Mapping[str, Any]) -> Merged:
    """One map with the keys of all, at every depth.

    Conflict: where both sides are maps they are merged; else the more important part wins, as in
    `priority_override`; lists and claims are values, never joined. Outputs that are no maps: as in
    `priority_override`.
    Missing parts: their keys are absent. Confidence: the lowest of the parts.
    """
    ranked = sorted(distinct(parts), key=lambda part: standing(part, params))
    maps = as_maps(ranked)
    if maps is None:
        return Merged(ranked[0].output, lowest_confidence(ranked[:1]))
    output: dict[str, Any] = {}
    for _, values in maps:
        output = _under(output, values)
    return Merged(output, lowest_confidence(ranked))


def _under(top: dict[str, Any], bottom: dict[str, Any]) -> dict[str, Any]:
    merged = dict(top)
    for key, value in bottom.items():
        if key not in merged:
            merged[key] = value
        elif is_map(merged[key]) and is_map(value):
            merged[key] = _under(merged[key], value)
    return merged
