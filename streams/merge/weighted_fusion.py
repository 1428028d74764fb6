"""权重融合: what the steps agree on is averaged, and where they cannot be averaged the weightier one is
believed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streams.merge.parts import Merged, Part, as_maps, certainty, distinct, share, weight

_NOTHING = object()
_SUM_TOLERANCE = 0.05


def weighted_fusion(parts: Sequence[Part], params: Mapping[str, Any]) -> Merged:
    """Fuse the outputs key by key; a part counts by weight times confidence (each 1 where unknown).

    Conflict: numbers are averaged; label maps (`{label: probability}`, at least two labels that sum to 1, or
    any map of numbers under a key that `params.labels` lists) are added label by label, a label that one map
    lacks counting 0 there; other maps are fused key by key; of anything else the part that counts most wins,
    ties by step name.
    NaN and infinities are left out with a warning. Where some outputs are no maps, those stand under their
    step's name.
    Missing parts: the weights of those present are scaled up.
    Confidence: mean of the known confidences, by weight.
    """
    present = distinct(parts)
    fusion = _Fusion(frozenset(params.get("labels", ())))
    maps = as_maps(present)
    if maps is None:
        voices = [_Voice(share(part), part.step, part.output) for part in present]
    else:
        voices = [_Voice(share(part), part.step, output) for part, output in maps]
    output = fusion.value("output", "", voices)
    return Merged(None if output is _NOTHING else output, _confidence(present), tuple(fusion.warnings))


class _Voice(NamedTuple):
    share: float
    step: str
    value: Any


@dataclass(slots=True)
class _Fusion:
    labels: frozenset[str]
    warnings: list[str] = field(default_factory=list)

    def value(self, where: str, key: str, voices: Sequence[_Voice]) -> Any:
        kept = [voice for voice in voices if self._usable(where, voice)]
        if not kept:
            return _NOTHING
        first = kept[0].value
        if all(
            type(voice.value) is type(first) and voice.value == first for voice in kept[1:]
        ) and not isinstance(first, dict):
            return first
        if all(_is_number(voice.value) for voice in kept):
            return _mean([(voice.share, float(voice.value)) for voice in kept])
        if all(isinstance(voice.value, dict) for voice in kept):
            if len(kept) > 1 and all(self._is_label_map(key, voice.value) for voice in kept):
                return _added(kept)
            return self._by_key(where, kept)
        return min(kept, key=lambda voice: (-voice.share, voice.step)).value

    def _by_key(self, where: str, voices: Sequence[_Voice]) -> dict[str, Any]:
        keys = dict.fromkeys(key for voice in voices for key in voice.value)
        fused: dict[str, Any] = {}
        for key in keys:
            heard = [
                _Voice(voice.share, voice.step, voice.value[key]) for voice in voices if key in voice.value
            ]
            value = self.value(f"{where}.{key}", key, heard)
            if value is not _NOTHING:
                fused[key] = value
        return fused

    def _usable(self, where: str, voice: _Voice) -> bool:
        if (
            not isinstance(voice.value, (int, float))
            or isinstance(voice.value, bool)
            or _is_finite(voice.value)
        ):
            return True
        self.warnings.append(f"step {voice.step}: {where} is no finite number and was left out")
        return False

    def _is_label_map(self, key: str, value: dict[str, Any]) -> bool:
        numbers = list(value.values())
        if not all(_is_number(number) and _is_finite(number) for number in numbers):
            return False
        if key in self.labels:
            return True
        likely = len(numbers) > 1 and all(0.0 <= number <= 1.0 for number in numbers)
        return likely and abs(math.fsum(numbers) - 1.0) <= _SUM_TOLERANCE


def _added(voices: Sequence[_Voice]) -> dict[str, float]:
    labels = dict.fromkeys(label for voice in voices for label in voice.value)
    return {
        label: _mean([(voice.share, float(voice.value.get(label, 0.0))) for voice in voices])
        for label in labels
    }


def _mean(weighted: Sequence[tuple[float, float]]) -> float:
    """Weighted mean; plain where nothing weighs anything. Held between the smallest and the largest value,
    which also keeps a sum of huge numbers from running over to infinity."""
    heaviest = max(by for by, _ in weighted)
    scaled = [(by / heaviest if heaviest > 0.0 else 1.0, value) for by, value in weighted]
    total = math.fsum(by for by, _ in scaled)
    mean = sum(value * (by / total) for by, value in scaled)
    values = [value for _, value in weighted]
    return min(max(mean, min(values)), max(values))


def _confidence(parts: Sequence[Part]) -> float | None:
    known = [(weight(part), certainty(part)) for part in parts if part.confidence is not None]
    return _mean(known) if known else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond what a float can hold
        return False
