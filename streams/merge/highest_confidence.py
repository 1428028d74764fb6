"""Highest confidence: the whole output of the step that is surest of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streams.merge.parts import Merged, Part, certainty, distinct, lowest_confidence


def highest_confidence(parts: Sequence[Part], params: Mapping[str, Any]) -> Merged:
    """The output and confidence of the most confident part.

    Conflict: the higher confidence wins whole, one without a confidence only where none has any; ties by
    step name.
    Missing parts: the best of those present.
    """
    best = min(distinct(parts), key=_standing)
    return Merged(best.output, lowest_confidence([best]))


def _standing(part: Part) -> tuple[float, str]:
    return (1.0 if part.confidence is None else -certainty(part), part.step)
