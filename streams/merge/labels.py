"""Labels with probabilities, in the forms in which models give them, and how those of several are fused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from streams.merge.parts import canonical

SCORE_KEYS = ("score", "probability", "confidence")
LABEL = "label"
SUM_TOLERANCE = 0.05
_SCALARS = (str, int, float, bool, bytes, type(None))


class Said(NamedTuple):
    """What one part says, and how much it counts."""

    share: float
    value: Any


def is_number(value: Any) -> bool:
    """Whether `value` is a number; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: int | float) -> bool:
    """Whether a float holds it."""
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond what a float can hold
        return False


def mean(weighted: Sequence[tuple[float, float]]) -> float:
    """Weighted mean; plain where nothing weighs anything. Held between the smallest and the largest value,
    which also keeps a sum of huge numbers from running over to infinity."""
    heaviest = max(by for by, _ in weighted)
    scaled = [(by / heaviest if heaviest > 0.0 else 1.0, value) for by, value in weighted]
    total = math.fsum(by for by, _ in scaled)
    found = sum(value * (by / total) for by, value in scaled)
    values = [value for _, value in weighted]
    return min(max(found, min(values)), max(values))


def is_label_map(value: Mapping[str, Any], listed: bool) -> bool:
    """`{label: probability}`: at least two labels that sum to 1, or any finite numbers where `listed`."""
    numbers = list(value.values())
    if not all(is_number(number) and is_finite(number) for number in numbers):
        return False
    if listed:
        return True
    likely = len(numbers) > 1 and all(0.0 <= number <= 1.0 for number in numbers)
    return likely and abs(math.fsum(numbers) - 1.0) <= SUM_TOLERANCE


def added(said: Sequence[Said]) -> dict[str, float]:
    """Label maps added label by label; a label that one lacks counts 0 there."""
    labels = dict.fromkeys(label for each in said for label in each.value)
    return {
        label: mean([(each.share, float(each.value.get(label, 0.0))) for each in said]) for label in labels
    }


def score_key(value: Any) -> str | None:
    """Under which key a map `{label, score}` has its score, a number in [0, 1]; None where it is no such map.
    What else it holds are scalars: a box makes it a find in an image, of which there may be many of a label.
    """
    if not isinstance(value, dict) or not isinstance(value.get(LABEL), str | int):
        return None
    keys = [key for key in SCORE_KEYS if key in value]
    if len(keys) != 1 or not is_number(value[keys[0]]) or not 0.0 <= value[keys[0]] <= 1.0:
        return None
    return keys[0] if all(isinstance(each, _SCALARS) for each in value.values()) else None


def rows_key(value: Any) -> str | None:
    """The key of the scores of a list of maps `{label, score}`, each label once; None where it is none."""
    if not isinstance(value, list | tuple) or not value:
        return None
    keys = {score_key(row) for row in value}
    labels = {canonical(row[LABEL]) for row in value} if None not in keys else set()
    return next(iter(keys)) if len(keys) == 1 and len(labels) == len(value) else None


def added_rows(key: str, said: Sequence[Said]) -> list[dict[str, Any]]:
    """Lists of `{label, score}` added label by label, the likeliest first, ties by the label. What else a row
    holds is that of the part that counts most."""
    rows: dict[bytes, dict[str, Any]] = {}
    scores: dict[bytes, dict[int, float]] = {}
    for index, each in sorted(enumerate(said), key=lambda pair: (-pair[1].share, pair[0])):
        for row in each.value:
            label = canonical(row[LABEL])
            rows.setdefault(label, row)
            scores.setdefault(label, {})[index] = float(row[key])
    fused = []
    for label, row in rows.items():
        by = scores[label]
        fused.append((mean([(each.share, by.get(at, 0.0)) for at, each in enumerate(said)]), label, row))
    fused.sort(key=lambda one: (-one[0], one[1]))
    return [{**row, key: score} for score, _, row in fused]


def favourites(value: Any) -> list[Any]:
    """The likeliest labels of a distribution in any form, those of a bare list by their place in it; empty
    where it is none."""
    if isinstance(value, dict):
        pairs = list(value.items())
    elif (key := rows_key(value)) is not None:
        pairs = [(row[LABEL], row[key]) for row in value]
    elif is_row(value):
        pairs = list(enumerate(value))
    else:
        return []
    if not pairs or not all(is_number(number) and is_finite(number) for _, number in pairs):
        return []
    most = max(number for _, number in pairs)
    return [label for label, number in pairs if number == most]


def is_row(value: Any) -> bool:
    """Whether `value` is a list of numbers, not empty."""
    return isinstance(value, list | tuple) and bool(value) and all(map(is_number, value))


def is_measured(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether lists of numbers measure something, so that their mean does: of one length, all finite, a float
    among them. Integers alone may be ids, whose mean is nonsense."""
    return (
        len({len(row) for row in rows}) == 1
        and any(isinstance(number, float) for row in rows for number in row)
        and all(is_finite(number) for row in rows for number in row)
    )


def averaged(said: Sequence[Said]) -> list[float]:
    """Lists of numbers of one length, place by place."""
    places = zip(*(each.value for each in said), strict=True)
    return [
        mean([(each.share, float(number)) for each, number in zip(said, numbers, strict=True)])
        for numbers in places
    ]
