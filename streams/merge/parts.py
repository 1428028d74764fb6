"""What a merge is given and what it gives back, and the arithmetic that all strategies share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from schemas.claims import claim_of
from schemas.messages import Side


@dataclass(frozen=True, slots=True)
class Part:
    """The answer of one step. `weight` and `priority` are the step's, None where the rules give none."""

    step: str
    output: Any
    confidence: float | None = None
    weight: float | None = None
    priority: int | None = None
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class Merged:
    """The one output, its confidence in [0, 1] (None where no part has any) and what the caller should
    know."""

    output: Any
    confidence: float | None = None
    warnings: tuple[str, ...] = ()


Strategy = Callable[[Sequence[Part], Mapping[str, Any]], Merged]
"""A pure function of the answered parts (at least one) and the rules' `params`. Steps without an answer are
left out of the parts. The order of the parts must not matter, and a part given twice counts once."""


def distinct(parts: Iterable[Part]) -> tuple[Part, ...]:
    """One part a step, sorted by step. Of two answers of one step the more confident stays, then the larger
    bytes."""
    chosen: dict[str, Part] = {}
    for part in parts:
        other = chosen.get(part.step)
        if other is None or _standing(part) > _standing(other):
            chosen[part.step] = part
    return tuple(chosen[step] for step in sorted(chosen))


def canonical(value: Any) -> bytes:
    """Bytes that are the same for equal values, whatever the order of their keys."""
    return msgspec.msgpack.encode(value, order="deterministic")


def is_map(value: Any) -> bool:
    """Whether `value` is a map to look into. A claim is none: its keys belong together."""
    return isinstance(value, dict) and claim_of(value) is None


def ballot(value: Any) -> bytes:
    """Bytes that are the same for values that say the same: a claim is what lies there, not where it lies."""
    claim = claim_of(value)
    return canonical(value if claim is None else ("claim", claim.sha256, claim.size))


def certainty(part: Part) -> float:
    """The confidence in [0, 1]; 1 where the part has none, 0 where it is no number."""
    return 1.0 if part.confidence is None else _bounded(part.confidence)


def weight(part: Part) -> float:
    """The weight, at least 0; 1 where the step has none, 0 where it is no finite number."""
    if part.weight is None:
        return 1.0
    return max(0.0, part.weight) if math.isfinite(part.weight) else 0.0


def share(part: Part) -> float:
    """How much a part counts: weight times confidence."""
    return weight(part) * certainty(part)


def lowest_confidence(parts: Iterable[Part]) -> float | None:
    """The confidence of the least certain part that has one."""
    known = [certainty(part) for part in parts if part.confidence is not None]
    return min(known) if known else None


def as_maps(parts: Sequence[Part]) -> list[tuple[Part, dict[str, Any]]] | None:
    """Each part's output as a map, one that is none under its step's name; None where no output is a map."""
    maps = [is_map(part.output) for part in parts]
    if not any(maps):
        return None
    return [
        (part, part.output if has else {part.step: part.output})
        for part, has in zip(parts, maps, strict=True)
    ]


def _bounded(value: float) -> float:
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0


def _standing(part: Part) -> tuple[float, bytes]:
    whole = (part.output, part.confidence, part.weight, part.priority, part.side)
    return (-1.0 if part.confidence is None else _bounded(part.confidence), canonical(whole))
