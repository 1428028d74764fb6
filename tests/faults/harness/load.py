"""Load from a plain client: JSON by a Kafka producer, nothing of ours."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

TOPIC = "requests"
STEP_S = 0.02
DELIVERED_S = 60.0
MIX = ("light", "light", "light", "light", "light", "light", "light", "pair", "pair", "chain")


@dataclass(slots=True)
class Sent:
    """What a load sent: ids that were acknowledged, and those whose fate is not known."""

    acknowledged: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    began: float = 0.0
    ended: float = 0.0


def mixed(deadline_ms: int, prefix: str = "r") -> Iterator[tuple[str, bytes]]:
    """Requests without end: 70 % one step with escalation, 20 % two steps, 10 % a chain of two."""
    for number in itertools.count():
        yield request(f"{prefix}-{number}", MIX[number % len(MIX)], number, deadline_ms)


def request(name: str, task: str, number: int, deadline_ms: int, **inputs: Any) -> tuple[str, bytes]:
    """One request as its id and JSON."""
    body = {"id": name, "task": task, "inputs": {"n": number, **inputs}, "deadline_ms": deadline_ms}
    return name, json.dumps(body).encode()


def producer(bootstrap: str) -> AIOKafkaProducer:
    """Idempotent, so that a broker's death makes no second copy of a request."""
    return AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=5,
        request_timeout_ms=30_000,
        max_request_size=3 * 1024 * 1024,
    )


class Load:
    """Sends requests at a steady rate. `room` says how many more may be in the system, if that is bounded."""

    def __init__(self, bootstrap: str, *, room: Callable[[Sent], int] | None = None) -> None:
        self._producer = producer(bootstrap)
        self._room = room
        self._futures: set[asyncio.Future[Any]] = set()
        self.sent = Sent()
        self.puts = 0

    async def __aenter__(self) -> Load:
        await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        # stop() hangs where brokers are down; the process ends soon.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._producer.stop(), 10.0)

    async def run(
        self,
        requests: Iterator[tuple[str, bytes]],
        count: int,
        rate: float,
        during: asyncio.Future[Any] | None = None,
    ) -> Sent:
        """Send `count` of `requests` at `rate` a second, however slowly they are acknowledged; and more
        of them until `during` is done.
        """
        self.sent.began = self.sent.began or time.time()
        began = time.monotonic()
        done = 0
        while done < count or (during is not None and not during.done()):
            due = int((time.monotonic() - began) * rate) + 1
            due = (due if during is not None else min(count, due)) - done
            if self._room is not None:
                due = min(due, self._room(self.sent))
            for name, body in itertools.islice(requests, max(0, due)):
                await self.put(name, body)
                done += 1
            await asyncio.sleep(STEP_S)
        await self.flush()
        self.sent.ended = time.time()
        return self.sent

    async def put(self, name: str | None, body: bytes, key: bytes | None = None) -> None:
        """Send one record; `name` is its id where it counts as a request."""
        self.puts += name is not None
        future = await self._producer.send(TOPIC, body, key=key or (name.encode() if name else None))
        self._futures.add(future)
        future.add_done_callback(lambda done: self._done(name, done))

    async def flush(self) -> None:
        """Wait for the acknowledgements."""
        if self._futures:
            await asyncio.wait(set(self._futures), timeout=DELIVERED_S)

    def _done(self, name: str | None, future: asyncio.Future[Any]) -> None:
        self._futures.discard(future)
        if name is None:
            return
        failed = future.cancelled() or isinstance(future.exception(), KafkaError)
        (self.sent.unknown if failed else self.sent.acknowledged).add(name)
