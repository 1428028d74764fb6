"""A worker in this process under load: rows in at a rate or as answers come back, latencies out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.measure import percentile
from schemas import codec
from schemas.cards import Card
from schemas.messages import Subtask
from workers.backends.onnx import OnnxBackend
from workers.backends.tensors import TensorPost
from workers.work import Origin
from workers.worker import Worker

DEADLINE_MS = 3_600_000
TICK_S = 0.001
POOL = 64
"""Different inputs, encoded once: the worker decodes each of its records, the load makes none."""


class Clock:
    """Milliseconds of this machine."""

    def now(self) -> int:
        return int(time.time() * 1000)


@dataclass(slots=True)
class Record:
    """One record as the worker reads it."""

    value: bytes
    offset: int
    timestamp: int = 0
    key: bytes = b"r"
    topic: str = "local.bench/model"
    partition: int = 0
    headers: Sequence[Any] = ()


@dataclass(slots=True)
class Lane:
    """Notes when each offset was answered."""

    topic: str = "local.bench/model"
    alive: bool = True
    writing_bytes: int = 0
    answered: dict[int, float] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def settle(self, offsets: Iterable[int], outputs: Sequence[Any] = ()) -> None:
        now = time.perf_counter()
        for offset in offsets:
            self.answered[offset] = now
        self.news.set()


@dataclass(frozen=True, slots=True)
class Figures:
    """What a load came to. Times in ms; `cpu_ms` a row of the whole process, which makes the load too."""

    rows: int
    rate: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    cpu_ms: float
    rows_a_run: float


class Bench:
    """A worker with one ONNX model, and a load on it."""

    def __init__(self, model: Any, source: str, inputs: Sequence[dict[str, Any]], max_batch: int) -> None:
        card = Card(
            capability="bench/model",
            side="local",
            version="1",
            model="m",
            model_type="onnx",
            max_batch=max_batch,
        )
        self._backend = _Counted(card, model, sources={source: "x"}, post=TensorPost())
        self._worker = Worker([self._backend], name="bench", clock=Clock())
        until = Clock().now() + DEADLINE_MS
        self._values = [
            codec.encode(Subtask(id="r/step/local/0", capability="bench/model", deadline=until, inputs=each))
            for each in inputs[:POOL]
        ]

    async def __aenter__(self) -> Bench:
        await self._worker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._worker.stop(10.0)

    async def closed(self, rows: int, clients: int) -> Figures:
        """`clients` that each send the next row when the last one is answered."""
        lane, sent = Lane(), {}
        self._begin()
        while len(lane.answered) < rows:
            room = min(clients - (len(sent) - len(lane.answered)), rows - len(sent))
            if room > 0:
                await self._send(lane, sent, [time.perf_counter()] * room)
            else:
                lane.news.clear()
                await lane.news.wait()
        return self._figures(lane, sent)

    async def opened(self, rate: float, seconds: float) -> Figures:
        """`rate` rows a second, whatever comes back. A row's time counts from when it was due."""
        lane, sent = Lane(), {}
        rows = int(rate * seconds)
        self._begin()
        began = time.perf_counter()
        while len(lane.answered) < rows:
            due = min(rows, int((time.perf_counter() - began) * rate) + 1)
            if due > len(sent):
                await self._send(lane, sent, [began + n / rate for n in range(len(sent), due)])
            await asyncio.sleep(TICK_S)
        return self._figures(lane, sent)

    async def _send(self, lane: Lane, sent: dict[int, float], times: list[float]) -> None:
        first = len(sent)
        records = [Record(self._values[n % len(self._values)], n) for n in range(first, first + len(times))]
        sent.update(zip(range(first, first + len(times)), times, strict=True))
        await self._worker.handle(_Batch(lane, records))  # type: ignore[arg-type]

    def _begin(self) -> None:
        self._backend.runs = 0
        self._cpu, self._began = time.process_time(), time.perf_counter()

    def _figures(self, lane: Lane, sent: dict[int, float]) -> Figures:
        cpu = time.process_time() - self._cpu
        took = max(lane.answered.values()) - self._began
        times = [(lane.answered[n] - at) * 1000.0 for n, at in sent.items()]
        p50, p95, p99 = (round(percentile(times, share), 2) for share in (0.5, 0.95, 0.99))
        rows = len(times)
        return Figures(
            rows,
            round(rows / took, 1),
            p50,
            p95,
            p99,
            round(cpu / rows * 1000, 4),
            round(rows / self._backend.runs, 1),
        )


@dataclass(slots=True)
class _Batch:
    lane: Origin
    records: list[Record]


class _Counted(OnnxBackend):
    runs = 0

    def infer(self, rows: Any) -> Any:
        self.runs += 1
        return super().infer(rows)
