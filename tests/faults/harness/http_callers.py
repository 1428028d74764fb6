"""Callers over HTTP: each asks with a key of its own until it is answered, at whichever gateway is there."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.faults.harness.load import MIX

PREFIX = "h-"
AGAIN_S = 0.5
ONE_CALL_S = 40.0


class Told(NamedTuple):
    """What a caller was told in the end: the HTTP status and the result's; how often it asked."""

    status: int
    result: str
    number: int | None
    calls: int


@dataclass(slots=True)
class Callers:
    """Callers at a steady rate; `told` by the id that each asked under."""

    ports: Sequence[int]
    deadline_ms: int
    told: dict[str, Told] = field(default_factory=dict)
    turned_away: Counter[int] = field(default_factory=Counter)
    _turn: itertools.count[int] = field(default_factory=itertools.count)

    async def run(self, count: int, rate: float) -> None:
        """Let `count` callers ask, and wait until each has its answer or gives up."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
                group.create_task(self._call(f"{PREFIX}{number}", number))

    async def _call(self, name: str, number: int) -> None:
        body = {"task": MIX[number % len(MIX)], "inputs": {"n": number}, "deadline_ms": self.deadline_ms}
        raw = json.dumps(body).encode()
        head = (
            "POST /route HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nIdempotency-Key: {name}\r\nContent-Length: {len(raw)}\r\n\r\n"
        ).encode()
        give_up = time.monotonic() + self.deadline_ms / 1000.0 + ONE_CALL_S
        for calls in itertools.count(1):
            status, answer = await self._ask(head + raw)
            if status not in (0, 429, 503) or time.monotonic() > give_up:
                # An error that a result carries counts as told; one of the gateway's own has no result.
                self.told[name] = Told(status, str(answer.get("status")), _n(answer), calls)
                return
            self.turned_away[status] += 1
            await asyncio.sleep(AGAIN_S)

    async def _ask(self, raw: bytes) -> tuple[int, dict[str, Any]]:
        port = self.ports[next(self._turn) % len(self.ports)]
        try:
            async with asyncio.timeout(ONE_CALL_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(raw)
                    found = await reader.read()
                finally:
                    writer.close()
            head, _, body = found.partition(b"\r\n\r\n")
            answer = json.loads(body) if body else {}
            return int(head.split(b" ", 2)[1]), answer if isinstance(answer, dict) else {}
        except (OSError, EOFError, TimeoutError, ValueError, IndexError):
            return 0, {}


def _n(answer: dict[str, Any]) -> int | None:
    """The number in the answer to a `light` task, by which it is known to be the caller's own."""
    output = answer.get("output")
    return output.get("n") if isinstance(output, dict) and isinstance(output.get("n"), int) else None
