"""Rows in calls of several; where such a call fails they are asked apart, so that a bad row fails alone."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from schemas.cards import Card
from workers.backends import Answer, Call
from workers.backends.remote_faults import Trouble
from workers.backends.tensors import Array
from workers.errors import BadInput
from workers.faults import FAULTS, told
from workers.inference import BACKEND_FAULTS


class Item(NamedTuple):
    """One row that is to be asked: its place in the batch, its arrays, and its call."""

    place: int
    arrays: tuple[Array, ...]
    call: Call


_LEAST_S = 0.05
"""With less time left no half is worth asking for: the whole has failed by its deadline."""

Ask = Callable[[Sequence[Item]], Awaitable[list[Answer]]]
"""Asks for rows in one call. Raises Trouble or BadInput where it fails as a whole."""


def chunks(items: Sequence[Item], most: int, params: Sequence[Hashable]) -> list[list[Item]]:
    """Items of equal shapes and params (`params[place]`) together, at most `most`, in order."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        key = (params[item.place], *(array.shape for array in item.arrays))
        groups.setdefault(key, []).append(item)
    return [group[i : i + most] for group in groups.values() for i in range(0, len(group), most)]


def together(items: Sequence[Item]) -> Call:
    """The call of several rows. It is worth waiting for while one of them is. Its name is that of its rows,
    so that the same rows asked again come under the same key; its trace is that of the first.
    """
    until = max(item.call.until for item in items)
    traceparent = items[0].call.traceparent
    names = [item.call.subtask for item in items]
    if len(names) == 1 or not all(names):
        return Call(names[0] if len(names) == 1 else "", until, traceparent)
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()
    return Call(f"rows-{digest[:40]}", until, traceparent)


class Apart:
    """Asks for rows together and, where that fails on account of a row, in halves.

    A refusal of inputs costs nothing, and is halved down to the row. Servers also call it a failure where a
    model raised over a row: that is halved too where calls cost nothing (`repeatable`), but only so often as
    two bad rows need, as it may be the model that fails on all.
    """

    def __init__(self, card: Card, service: str, ask: Ask, *, repeatable: bool) -> None:
        self._card = card
        self._service = service
        self._ask = ask
        self._repeatable = repeatable

    async def answers(self, items: Sequence[Item]) -> list[tuple[int, Answer]]:
        """The answer of each place."""
        return await self._answers(items, _Left(4 * math.ceil(math.log2(len(items) + 1))))

    async def _answers(self, items: Sequence[Item], left: _Left) -> list[tuple[int, Answer]]:
        try:
            found = await self._ask(items)
            for answer in found:
                _log(answer)
            return [(item.place, answer) for item, answer in zip(items, found, strict=True)]
        except BadInput as error:
            failed, halve = Answer(error=told(error, self._card.capability), cost=0.0), True
        except Trouble as trouble:
            failed = trouble.answer(self._card.capability, self._service)
            halve = trouble.code == "bad_input" or (self._model_failed(items, trouble) and left.take())
            _log(failed)
        except Exception as error:  # noqa: BLE001 - raised on, it would have the whole batch asked again
            failed, halve = Answer(error=told(error, self._card.capability)), False
        if len(items) == 1 or not halve:
            return [(item.place, failed) for item in items]
        parts = await self._halves(items, left)
        if failed.cost is not None:
            return parts
        # What failed with the whole may have been carried out then, whatever became of it alone.
        return [(place, replace(answer, cost=None) if answer.error else answer) for place, answer in parts]

    async def _halves(self, items: Sequence[Item], left: _Left) -> list[tuple[int, Answer]]:
        half = len(items) // 2
        parts = await asyncio.gather(*(self._answers(part, left) for part in (items[:half], items[half:])))
        return [pair for part in parts for pair in part]

    def _model_failed(self, items: Sequence[Item], trouble: Trouble) -> bool:
        in_time = time.monotonic() + _LEAST_S < together(items).until
        return self._repeatable and in_time and not trouble.free and not trouble.passing


def _log(answer: Answer) -> None:
    if answer.error is not None and answer.error.code in BACKEND_FAULTS:
        FAULTS.elsewhere(answer.error)


class _Left:
    """How many more calls may be halved."""

    def __init__(self, count: int) -> None:
        self._count = count

    def take(self) -> bool:
        self._count -= 1
        return self._count >= 0


def stacked(items: Sequence[Item], *, batched: bool) -> list[Array]:
    """The arrays of all rows, one an input."""
    if not batched:
        return list(items[0].arrays)
    return [np.stack(arrays) for arrays in zip(*(item.arrays for item in items), strict=True)]
