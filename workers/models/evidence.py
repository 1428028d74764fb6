"""Samples that a model is judged by, and how right its answers to them are: pure.

A line of JSON a sample: `{"inputs": {...}, "params": {...}, "label": ...}`. The label is what the answer
says: its `label` where the output has one, else the output itself. Samples without a label tell only whether
two models agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from workers.backends import Answer
from workers.errors import WorkerError

CLOSE = 0.05
"""Numbers agree within this share of the largest of the output's numbers."""


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sample; `label` None where nobody knows."""

    inputs: dict[str, Any]
    params: dict[str, Any] = {}
    label: Any = None


class Rightness(NamedTuple):
    """Shares of samples: answered as labelled (None without labels), answered alike by both, refused."""

    accuracy: float | None
    agreement: float
    refused: float


def samples_of(lines: Iterable[str | bytes], where: str) -> list[Sample]:
    """The samples of a file's lines.

    Raises:
        WorkerError: a line that is none; the text names it and quotes nothing.
    """
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(msgspec.json.decode(line, type=Sample))
        except (msgspec.DecodeError, RecursionError) as error:
            raise WorkerError(
                f'{where}, line {number} is no sample: {error}; write {{"inputs": {{...}}, "label": ...}}'
            ) from error
    return found


def rightness(samples: Sequence[Sample], answers: Sequence[Answer], others: Sequence[Answer]) -> Rightness:
    """How right `answers` are, and how often they are those of another model (`others`)."""
    labelled = [(s, a) for s, a in zip(samples, answers, strict=True) if s.label is not None]
    right = sum(a.error is None and is_right(a.output, s.label) for s, a in labelled)
    alike = sum(agree(a, b) for a, b in zip(answers, others, strict=True))
    refused = sum(a.error is not None for a in answers)
    rows = len(samples)
    return Rightness(right / len(labelled) if labelled else None, alike / rows, refused / rows)


def is_right(output: Any, label: Any) -> bool:
    """Whether an output says what the label says; numbers within CLOSE."""
    said = output["label"] if isinstance(output, dict) and "label" in output else output
    return _alike(said, label)


def agree(one: Answer, other: Answer) -> bool:
    """Whether two answers say the same: the same label where there is one, else numbers within CLOSE."""
    if one.error is not None or other.error is not None:
        return one.error is not None and other.error is not None
    first, second = one.output, other.output
    if isinstance(first, dict) and isinstance(second, dict) and "label" in first:
        return bool(first["label"] == second.get("label"))
    return _alike(first, second)


def _alike(one: Any, other: Any) -> bool:
    first, second = list(_leaves(one)), list(_leaves(other))
    if [path for path, _ in first] != [path for path, _ in second]:
        return False
    numbers = [abs(float(v)) for _, v in second if _is_number(v)]
    near = CLOSE * max(numbers, default=0.0)
    return all(
        abs(a - b) <= near if _is_number(a) and _is_number(b) else type(a) is type(b) and a == b
        for (_, a), (_, b) in zip(first, second, strict=True)
    )


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], (*path, key))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _leaves(each, (*path, index))
    else:
        yield path, value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def parted(samples: Sequence[Sample], share: float, seed: int = 0) -> tuple[list[Sample], list[Sample]]:
    """The samples that calibrate (`share` of them, one at least), and the others, which judge."""
    order = np.random.default_rng(seed).permutation(len(samples)).tolist()
    first = max(1, round(share * len(samples)))
    return [samples[i] for i in sorted(order[:first])], [samples[i] for i in sorted(order[first:])]
