"""Collect: nothing is merged, every step's output stands under its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streams.merge.parts import Merged, Part, distinct, lowest_confidence


def collect(parts: Sequence[Part], params: Mapping[str, Any]) -> Merged:
    """`{step: output}`.

    Conflict: none can arise. Missing parts: their keys are absent. Confidence: the lowest of the parts.
    """
    present = distinct(parts)
    return Merged({part.step: part.output for part in present}, lowest_confidence(present))
