"""权重融合: what the steps agree on is averaged, and where they cannot be averaged the weightier one is
believed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streams.merge.labels import (
    LABEL,
    Said,
    added,
    added_rows,
    averaged,
    favourites,
    is_finite,
    is_label_map,
    is_measured,
    is_number,
    is_row,
    mean,
    rows_key,
    score_key,
)
from streams.merge.parts import Merged, Part, as_maps, ballot, certainty, distinct, is_map, share, weight

_NOTHING = object()


def weighted_fusion(parts: Sequence[Part], params: Mapping[str, Any]) -> Merged:
    """Fuse the outputs key by key; a part counts by weight times confidence (each 1 where unknown).

    Conflict: numbers are averaged, and so are lists of numbers of one length, place by place, where a float
    is among them. Label maps (`{label: probability}`, at least two labels that sum to 1, or any map of
    numbers under a key that `params.labels` lists) and lists of `{label, score}` are added label by label, a
    label that one lacks counting 0 there; a `label` beside such scores is the likeliest of the fused ones.
    Other maps are fused key by key; of anything else (texts, bytes, truth values, claims, other lists, mixed
    types) the value that most share stands behind wins, ties by the first step's name.
    NaN and infinities are left out with a warning, null where another part says more. Where some outputs are
    no maps, those stand under their step's name.
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
        if len(voices) == 1:
            return self._alone(where, voices[0].step, voices[0].value)
        usable = [voice for voice in voices if not is_number(voice.value) or is_finite(voice.value)]
        self._leave_out(where, "is", voices, usable)
        if not usable:
            return _NOTHING
        kept = [voice for voice in usable if voice.value is not None]
        if not kept:
            return None
        if all(is_map(voice.value) for voice in kept):
            if len(kept) > 1 and all(is_label_map(voice.value, key in self.labels) for voice in kept):
                return added(_said(kept))
            return self._by_key(where, kept)
        if len({ballot(voice.value) for voice in kept}) == 1:
            return kept[0].value
        if all(is_number(voice.value) for voice in kept):
            return mean([(voice.share, float(voice.value)) for voice in kept])
        if all(is_row(voice.value) for voice in kept):
            return self._rows(where, kept)
        keys = {rows_key(voice.value) for voice in kept}
        scores = next(iter(keys)) if len(keys) == 1 else None
        return _strongest(kept) if scores is None else added_rows(scores, _said(kept))

    def _alone(self, where: str, step: str, value: Any) -> Any:
        """What one step alone says: as it is, but for numbers that are not finite."""
        if type(value) is float and not is_finite(value):
            self._leave_out(where, "is", [_Voice(1.0, step, value)], ())
            return _NOTHING
        if not isinstance(value, dict):
            return value
        found = {key: self._alone(f"{where}.{key}", step, inner) for key, inner in value.items()}
        return {key: inner for key, inner in found.items() if inner is not _NOTHING}

    def _by_key(self, where: str, voices: Sequence[_Voice]) -> dict[str, Any]:
        verdict = _verdict(voices)
        if verdict is not None:
            return verdict
        keys = dict.fromkeys(key for voice in voices for key in voice.value)
        fused: dict[str, Any] = {}
        for key in keys:
            heard = [
                _Voice(voice.share, voice.step, voice.value[key]) for voice in voices if key in voice.value
            ]
            value = self.value(f"{where}.{key}", key, heard)
            if value is not _NOTHING:
                fused[key] = value
        if LABEL in fused:
            fused[LABEL] = _label(voices, fused)
        return fused

    def _rows(self, where: str, voices: Sequence[_Voice]) -> Any:
        finite = [voice for voice in voices if all(map(is_finite, voice.value))] or voices
        self._leave_out(where, "holds what", voices, finite)
        fits = is_measured([voice.value for voice in finite])
        return averaged(_said(finite)) if fits else _strongest(finite)

    def _leave_out(self, where: str, how: str, voices: Sequence[_Voice], kept: Sequence[_Voice]) -> None:
        steps = {voice.step for voice in kept}
        for voice in voices:
            if voice.step not in steps:
                text = f"step {voice.step}: {where} {how} is no finite number and was left out"
                self.warnings.append(text)


def _said(voices: Sequence[_Voice]) -> list[Said]:
    return [Said(voice.share, voice.value) for voice in voices]


def _strongest(voices: Sequence[_Voice]) -> Any:
    """The value that most share stands behind, equal values together."""
    behind: dict[bytes, list[_Voice]] = {}
    for voice in voices:
        behind.setdefault(ballot(voice.value), []).append(voice)
    strongest = min(
        behind.values(), key=lambda some: (-math.fsum(voice.share for voice in some), some[0].step)
    )
    return strongest[0].value


def _verdict(voices: Sequence[_Voice]) -> dict[str, Any] | None:
    """Maps `{label, score}` as the one of the likeliest label: scores of one label are no scores of another.
    None where the voices say something else, or all the same label."""
    keys = {score_key(voice.value) for voice in voices}
    key = next(iter(keys)) if len(keys) == 1 else None
    if key is None or len({ballot(voice.value[LABEL]) for voice in voices}) == 1:
        return None
    return added_rows(key, [Said(voice.share, [voice.value]) for voice in voices])[0]


def _label(voices: Sequence[_Voice], fused: Mapping[str, Any]) -> Any:
    """The label that fits the fused scores beside it, where each part's own label was the likeliest of its
    own scores; else as it was fused."""
    labelled = [voice.value for voice in voices if LABEL in voice.value]
    for key in sorted(fused.keys() - {LABEL}):
        if all(value[LABEL] in favourites(value.get(key)) for value in labelled):
            best = favourites(fused[key])
            if best:
                return fused[LABEL] if fused[LABEL] in best else best[0]
    return fused[LABEL]


def _confidence(parts: Sequence[Part]) -> float | None:
    known = [(weight(part), certainty(part)) for part in parts if part.confidence is not None]
    return mean(known) if known else None
