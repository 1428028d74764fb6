"""How fast two backends answer the same rows, measured side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from workers.backends import Answer, Backend, Row
from workers.inference import infer

ROUNDS = 5
MOST_ROWS = 256
SINGLES = 64


class Speed(NamedTuple):
    """Median ms of a row alone, and rows a second in batches of the card's size."""

    single_ms: float
    rows_per_s: float


def answers_of(backend: Backend, rows: Sequence[Row]) -> list[Answer]:
    """The answers of a loaded backend, in batches of one kin and the card's size."""
    found: dict[int, Answer] = {}
    for indices in _batches(backend, rows):
        given = infer(backend, [rows[i] for i in indices], lambda _: False)
        found.update(zip(indices, given, strict=True))
    return [found[i] for i in range(len(rows))]


def race(
    one: Backend, other: Backend, rows: Sequence[Row], clock: Callable[[], float] = time.perf_counter
) -> tuple[Speed, Speed]:
    """Both speeds. They take turns, so that what else the machine does meets both; the best round counts."""
    some = list(rows[:MOST_ROWS])
    best = {id(each): [float("inf"), float("inf")] for each in (one, other)}
    for number in range(ROUNDS):
        for backend in (one, other) if number % 2 else (other, one):
            times = best[id(backend)]
            times[0] = min(times[0], _single_s(backend, some[:SINGLES], clock))
            began = clock()
            answers_of(backend, some)
            times[1] = min(times[1], clock() - began)
    speeds = (best[id(each)] for each in (one, other))
    first, second = (Speed(single * 1000.0, len(some) / max(whole, 1e-9)) for single, whole in speeds)
    return first, second


def _single_s(backend: Backend, rows: Sequence[Row], clock: Callable[[], float]) -> float:
    times = []
    for row in rows:
        began = clock()
        infer(backend, [row], lambda _: False)
        times.append(clock() - began)
    return sorted(times)[len(times) // 2]


def _batches(backend: Backend, rows: Sequence[Row]) -> list[list[int]]:
    kin: dict[object, list[int]] = {}
    for index, row in enumerate(rows):
        kin.setdefault(backend.kin(row), []).append(index)
    most = backend.card.max_batch
    return [group[i : i + most] for group in kin.values() for i in range(0, len(group), most)]
