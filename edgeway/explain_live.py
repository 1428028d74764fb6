"""The heartbeats of now, read from Kafka."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from edgeway.errors import UsageError
from edgeway.explain_registry import written
from edgeway.tail import Tail
from schemas import codec
from schemas.cards import Heartbeat
from schemas.errors import Malformed
from schemas.rules import Rules
from schemas.topics import CAPABILITIES
from streams.registry import Registry, View, slow_limits
from streams.settings import Settings

LOOK_BACK_MS = 10_000
"""As a router looks back before it is ready."""


class Beats(NamedTuple):
    """Heartbeats with their append times, and the time up to which they were read, in ms."""

    beats: tuple[tuple[int, Heartbeat], ...]
    now: int

    def view(self, rules: Rules) -> View:
        """What a router knows at `now`."""
        registry = Registry(slow_limits(rules))
        for at, beat in self.beats:
            registry.observe(beat, at)
        registry.reached(self.now)
        return registry.view(self.now)

    def alive(self) -> list[Heartbeat]:
        """The last heartbeat of each worker that has not gone."""
        registry = Registry()
        for at, beat in self.beats:
            registry.observe(beat, at)
        registry.reached(self.now)
        registry.view(self.now)
        latest = {beat.worker: beat for _, beat in self.beats if registry.knows(beat.worker)}
        return [latest[name] for name in sorted(latest)]


async def read_beats(settings: Settings) -> Beats:
    """The heartbeats of the last LOOK_BACK_MS.

    Raises:
        KafkaUnreachable: no broker answers.
        TopicsWrong: the topic is missing.
    """
    found: list[tuple[int, Heartbeat]] = []
    now = int(time.time() * 1000)
    async with Tail(settings, CAPABILITIES, now - LOOK_BACK_MS) as tail:
        async for records in tail.to_end():
            for record in records:
                try:
                    found.append((record.timestamp, codec.decode(record.value or b"", Heartbeat)))
                except Malformed:
                    # A router passes over it as well, and counts on the others.
                    continue
    return Beats(tuple(found), max([now, *(at for at, _ in found)]))


def save(path: Path, beats: Beats) -> int:
    """Write the workers alive to `path`, whole or not at all; how many they are.

    Raises:
        UsageError: it cannot be written.
    """
    alive = beats.alive()
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(written(alive))
        beside.replace(path)
    except OSError as exc:
        beside.unlink(missing_ok=True)
        raise UsageError(f"--save-registry {path}: cannot be written: {exc.strerror or exc}") from exc
    return len(alive)
