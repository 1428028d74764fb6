"""Answers to subtasks that reach no model."""

from __future__ import annotations

from streams.delivery import Lane, Outgoing


class Refused:
    """Gathers them for one `settle`."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._offsets: list[int] = []
        self._outputs: list[Outgoing] = []

    def add(self, offset: int, output: Outgoing) -> None:
        self._offsets.append(offset)
        self._outputs.append(output)

    def settle(self) -> None:
        if self._offsets:
            self._lane.settle(self._offsets, self._outputs)
            self._offsets, self._outputs = [], []
