"""First complete: the first output, in order of importance, that has everything asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streams.merge.parts import Merged, Part, distinct, is_map, lowest_confidence
from streams.merge.priority_override import standing


def first_complete(parts: Sequence[Part], params: Mapping[str, Any]) -> Merged:
    """The most important output that is complete: a map with every key of `params.keys`, or, where none are
    listed, anything that is not null, an empty string, list or map.

    Importance is as in `priority_override` (time of arrival plays no part: redelivery must not change an
    answer).
    Conflict: the first wins whole. Missing parts: the next complete one; where none is complete the most
    important one, with a warning. Confidence: its own.
    """
    ranked = sorted(distinct(parts), key=lambda part: standing(part, params))
    keys = tuple(params.get("keys", ()))
    for part in ranked:
        if _is_complete(part.output, keys):
            return Merged(part.output, lowest_confidence([part]))
    return Merged(ranked[0].output, lowest_confidence(ranked[:1]), ("no step gave a complete output",))


def _is_complete(output: Any, keys: tuple[str, ...]) -> bool:
    if keys:
        return is_map(output) and all(output.get(key) is not None for key in keys)
    return output is not None and output != "" and output != [] and output != {}
