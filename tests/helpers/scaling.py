"""A worker that serves the model `scale` of a repository, and a load on it that counts every answer."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from aiokafka import AIOKafkaProducer

from schemas import codec, headers
from schemas.messages import Partial, Subtask
from tests.helpers.kafka import read_all
from tests.helpers.models import CAPABILITY, folder_of
from tests.helpers.roles import Role, command
from workers.models.adding import add
from workers.models.opening import open_store
from workers.models.repository import Repository

TOPIC = "local.test.scale"
PARTIALS = "joins"
RATE_S = 0.004
NUMBERS = (1.0, 2.0, 3.0, 4.0)


class Seen(NamedTuple):
    """A partial: of which request, of which version, and when the broker had it (ms)."""

    request: int
    version: str
    at: int


def filled(place: Path, versions: int) -> Repository:
    """A repository of `scale`: version N gives its input times N; 1 is active."""
    repository = Repository(open_store(str(place / "repo")))
    for number in range(1, versions + 1):
        model = folder_of(place / "models" / str(number), float(number), version=str(number))
        add(repository, model, {"name": "scale"})
    repository.activate("scale", "1")
    return repository


def topics(place: Path, bootstrap: str) -> None:
    """One partition each, so that the order of partials is the order in which they were made."""
    about = ("--kafka", bootstrap, "--rules", str(_rules(place)), "--partitions", "1")
    done = command("topics", "apply", *about)
    assert done.returncode == 0, done.stdout + done.stderr


def worker(place: Path, bootstrap: str, *more: str) -> Role:
    """A worker of the repository in `place`, not started; it looks at it ten times a second."""
    about = ("--kafka", bootstrap, "--rules", str(_rules(place)), "--log-format", "text", "--side", "local")
    models = ("--models", str(place / "repo"), "--models-cache", str(place / "cache"))
    return Role(place, "worker", *about, *models, "--models-poll-s", "0.1", *more)


def _rules(place: Path) -> Path:
    path = place / "rules.json"
    path.write_text(json.dumps({"tasks": {"scale": {"capability": CAPABILITY}}}))
    return path


class Load:
    """Sends subtasks of the run `name` for as long as it is entered; `sent` counts them."""

    def __init__(self, bootstrap: str, name: str, at_once: int = 1) -> None:
        self._name = name
        self._at_once = at_once
        self._producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=2)
        self._task: asyncio.Task[None] | None = None
        self.sent = 0

    async def __aenter__(self) -> Self:
        await self._producer.start()
        self._task = asyncio.create_task(self._send())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})
        await self._producer.stop()

    async def _send(self) -> None:
        for number in itertools.count():
            subtask = Subtask(
                id=f"{self._name}-{number}/scale/local/0",
                capability=CAPABILITY,
                inputs={"x": list(NUMBERS)},
                deadline=int(time.time() * 1000) + 120_000,
            )
            about = headers.build("subtask", subtask.id, "test")
            await self._producer.send(
                TOPIC, codec.encode(subtask), key=str(number).encode(), headers=about, partition=0
            )
            self.sent = number + 1
            if self.sent % self._at_once == 0:
                await asyncio.sleep(RATE_S)


async def answers(bootstrap: str, name: str, wanted: int, within_s: float = 30.0) -> list[Seen]:
    """The partials of all `wanted` requests of a run, in their order; each is right for its version.

    Raises:
        AssertionError: one is missing, twice there, wrong, or an error.
    """
    until = time.monotonic() + within_s
    while True:
        records = [record for record in await read_all(bootstrap, PARTIALS, 1) if _is_of(record, name)]
        if len(records) >= wanted or time.monotonic() > until:
            break
        await asyncio.sleep(0.2)
    found = [_seen(record) for record in sorted(records, key=lambda record: record.offset)]
    assert sorted(seen.request for seen in found) == list(range(wanted))
    return found


def _is_of(record: Any, name: str) -> bool:
    return codec.decode(record.value, Partial).subtask.startswith(f"{name}-")


def _seen(record: Any) -> Seen:
    partial = codec.decode(record.value, Partial)
    assert partial.error is None, partial.error
    assert partial.model is not None
    assert partial.output == {"y": [float(partial.model.version) * x for x in NUMBERS]}
    return Seen(
        int(partial.subtask.split("/")[0].rpartition("-")[2]), partial.model.version, record.timestamp
    )


def switches(found: list[Seen]) -> list[str]:
    """The versions in their order, each as long as it went on."""
    return [version for version, _ in itertools.groupby(seen.version for seen in found)]
