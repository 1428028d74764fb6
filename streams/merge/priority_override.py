"""优先级覆盖: each key comes from the most important step that has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streams.merge.parts import Merged, Part, as_maps, certainty, distinct, lowest_confidence


def priority_override(parts: Sequence[Part], params: Mapping[str, Any]) -> Merged:
    """Lay the outputs over each other, the highest priority on top.

    A step without a priority has that of its side: cloud 1, local 0, or as `params.sides` lists them, first
    highest.
    Conflict: per key the highest priority that has the key wins, ties by confidence (unknown lowest), then
    step name.
    Outputs that are no maps override each other whole; beside maps they stand under their step's name.
    Missing parts: the next priority shows through.
    Confidence: the lowest among the parts that are seen in the output.
    """
    ranked = sorted(distinct(parts), key=lambda part: standing(part, params))
    maps = as_maps(ranked)
    if maps is None:
        return Merged(ranked[0].output, lowest_confidence(ranked[:1]))
    output: dict[str, Any] = {}
    seen: list[Part] = []
    for part, values in maps:
        fresh = {key: value for key, value in values.items() if key not in output}
        if fresh:
            seen.append(part)
        output.update(fresh)
    return Merged(output, lowest_confidence(seen))


def standing(part: Part, params: Mapping[str, Any]) -> tuple[int, float, str]:
    """Sort key, the most important part first."""
    priority = _of_side(part, params) if part.priority is None else part.priority
    return (-priority, 1.0 if part.confidence is None else -certainty(part), part.step)


def _of_side(part: Part, params: Mapping[str, Any]) -> int:
    sides = list(params.get("sides", ("cloud", "local")))
    return len(sides) - 1 - sides.index(part.side) if part.side in sides else 0
