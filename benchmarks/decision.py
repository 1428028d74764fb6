"""What the router's decision costs: CPU per request, over a bare process that writes the same records.

    python -m benchmarks.decision [--batches 200] [--json FILE]

Each system handles the same batches of 100 requests in this process. `bare` encodes the plans and subtasks
that the router made of them, builds their headers and hands them over; it reads nothing and decides nothing.
`time.process_time` is taken around each batch, and the systems take turns, so that what else the machine does
counts little. Figures are µs a request; p50, p95 and p99 over batches.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from schemas import codec
from schemas.cards import Card, Heartbeat, Live, Offer
from schemas.messages import Plan, Request, Result, Subtask, Verdict
from schemas.rules import Rules, parse_rules
from streams.cache import MemoryCache, answer_entry, stamped
from streams.cache.entries import NOTHING
from streams.delivery import Batch, Cleared, Output
from streams.registry import Registry
from streams.router import Planner, Router
from streams.router.admission import admit
from streams.router.outputs import outputs_of
from streams.router.plan import Planned, Sent
from streams.stores import MemorySeenStore

BATCH = 100
NOW = 1_700_000_000_000
TEXTS = (
    "where is my new card, it should have come last week",
    "How do I change the PIN of the card that I got in the mail?",
    "my transfer to a friend abroad has not arrived yet and it has been four days",
    "the exchange rate on my statement looks wrong",
    "top up by cheque, how long does it take until I can use the money",
)
TASKS: dict[str, Any] = {
    "intent": {"local_threshold": 0.9},
    "caption": {"local_threshold": 0.7, "phrases": ["what is in this picture"]},
    "report": {
        "steps": [
            {"name": "clean", "side": "local"},
            {"name": "summarize", "after": ["clean"], "inputs": {"text": "steps.clean.text"}},
        ]
    },
}


@dataclass
class Record:
    value: bytes
    offset: int
    timestamp: int = NOW
    headers: Sequence[tuple[str, bytes]] = ()
    key: bytes | None = None
    topic: str = "requests"
    partition: int = 0


@dataclass
class Lane:
    """Takes records and lets go of them."""

    topic: str = "requests"
    partition: int = 0
    alive: bool = True
    handed: int = 0
    last: list[Output] = field(default_factory=list)

    def settle(self, offsets: Iterable[int], outputs: Sequence[Output] = ()) -> None:
        self.last = list(outputs)
        self.handed += len(self.last)

    def absorb(self, offset: int) -> None: ...

    def fail(self, record: Record, failure: Any) -> None:
        raise AssertionError(failure)


class Clock:
    def now(self) -> int:
        return NOW + 5


def rules_of(detectors: bool) -> Rules:
    privacy: dict[str, Any] = {} if detectors else {"detectors": []}
    return parse_rules(msgspec.json.encode({"tasks": TASKS, "builtin": False, "privacy": privacy}))


def registry_of(rules: Rules) -> Registry:
    registry = Registry()
    offers = tuple(
        Offer(
            card=Card(
                capability=capability,
                side=side,
                version="1",
                model="m",
                calibrated=side == "local" and capability == "intent",
                cacheable=True,
                cost_per_call=0.0 if side == "local" else 0.002,
                max_cost=0.0 if side == "local" else 0.002,
                input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
            ),
            live=Live(p50_ms=4.0, p90_ms=9.0, served=1000),
        )
        for side, capability in rules.capabilities
    )
    registry.observe(Heartbeat(worker="w1", offers=offers), NOW)
    return registry


def batch_of(number: int) -> list[Record]:
    """100 requests as a caller writes them: four in five JSON `intent`, the rest msgpack; all different."""
    records = []
    for index in range(BATCH):
        serial = number * BATCH + index
        text = f"{TEXTS[serial % len(TEXTS)]} ({serial})"
        task = "intent" if index % 5 else ("caption", "report")[index // 5 % 2]
        request = Request(id=f"r{serial:08}", task=task, inputs={"text": text})
        records.append(Record(codec.encode(request, "json" if index % 5 else "msgpack"), serial))
    return records


def router_of(cache: bool, detectors: bool) -> Router:
    rules = rules_of(detectors)
    held = MemoryCache(time.monotonic, limit=50_000) if cache else None
    seen = MemorySeenStore(time.monotonic, 50_000)
    return Router(Planner(rules), registry_of(rules), Clock(), seen=seen, cache=held)


def writing(router: Router, lane: Lane) -> Callable[[list[Record]], Awaitable[None]]:
    async def handle(records: list[Record]) -> None:
        await router.handle(Batch(lane, records))  # type: ignore[arg-type]

    return handle


def bare(lane: Lane) -> Callable[[list[Planned]], Awaitable[None]]:
    async def handle(planned: list[Planned]) -> None:
        outputs: list[Output] = []
        for each in planned:
            outputs += outputs_of(each)
        lane.settle((), outputs)

    return handle


def planned_in(outputs: Sequence[Output]) -> list[Planned]:
    """What was written, as it was before it was encoded."""
    found: list[Planned] = []
    for output in outputs:
        record = output.record if isinstance(output, Cleared) else output
        if record.topic == "joins":
            found.append(Planned(codec.decode(record.value, Plan), ()))
        else:
            subtask, last = codec.decode(record.value, Subtask), found[-1]
            side: Any = record.topic.partition(".")[0]
            sent = Sent(side, subtask, last.plan.request.privacy)
            found[-1] = last._replace(first=(*last.first, sent))
    return found


async def measured(batches: int) -> dict[str, list[float]]:
    """µs a request, by system and batch."""
    lane = Lane()
    plain = writing(router_of(False, False), lane)
    # A router of its own makes what `bare` writes, so that no id is seen twice.
    maker = writing(router_of(False, False), lane)
    systems = {
        "router": plain,
        "router, cache": writing(router_of(True, False), lane),
        "router, detectors": writing(router_of(False, True), lane),
        "router, cache and detectors": writing(router_of(True, True), lane),
    }
    repeats = writing(await warm_router(), lane)
    write = bare(lane)
    taken: dict[str, list[float]] = {name: [] for name in ("bare", *systems, "router, all cached")}
    for number in range(batches):
        records = batch_of(number)
        await maker(records)
        planned = planned_in(lane.last)
        work: dict[str, Callable[[], Awaitable[None]]] = {"bare": partial(write, planned)}
        for name, handle in systems.items():
            work[name] = partial(handle, records)
        again = cached_batch(number)
        work["router, all cached"] = partial(repeats, again)
        gc.collect()
        for name, run in work.items():
            began = time.process_time_ns()
            await run()
            taken[name].append((time.process_time_ns() - began) / 1000 / BATCH)
    return {name: values[len(values) // 10 :] for name, values in taken.items()}


def cached_batch(number: int) -> list[Record]:
    return [
        Record(
            codec.encode(Request(id=f"c{number}-{index}", task="intent", inputs={"text": TEXTS[index % 5]})),
            index,
        )
        for index in range(BATCH)
    ]


async def warm_router() -> Router:
    """A router whose cache has the answers of `cached_batch`."""
    rules = rules_of(True)
    cache = MemoryCache(time.monotonic)
    planner, registry = Planner(rules), registry_of(rules)
    view = registry.view(NOW)
    for text in TEXTS:
        request = Request(id="x", task="intent", inputs={"text": text})
        found = planner.find(admit(Record(codec.encode(request), 0)), NOW)
        assert not isinstance(found, Planned)
        result = Result(
            id="x",
            status="ok",
            output={"label": "card"},
            rules=rules.version,
            task="intent",
            privacy=Verdict(),
        )
        entry = answer_entry(result)
        assert entry is not None
        assert entry != NOTHING
        key = planner.keyed(found, view).key
        assert key is not None
        await cache.put([(key, stamped(entry, NOW))], 600.0)
    return Router(planner, registry, Clock(), seen=MemorySeenStore(time.monotonic, 50_000), cache=cache)


def share(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def figures(taken: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """By system; `added` is the median over that of `bare`."""
    base = median(taken["bare"])
    return {
        name: {
            "p50_us": round(median(values), 1),
            "p95_us": round(share(values, 0.95), 1),
            "p99_us": round(share(values, 0.99), 1),
            "added_p50_us": round(median(values) - base, 1),
            "added_p99_us": round(share(values, 0.99) - base, 1),
        }
        for name, values in taken.items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batches", type=int, default=200, help="of 100 requests, for each system")
    parser.add_argument("--json", type=Path, help="write the figures there")
    given = parser.parse_args(argv)
    found = figures(asyncio.run(measured(given.batches)))
    said = {"batch": BATCH, "batches": given.batches, "unit": "us of CPU a request", "systems": found}
    if given.json is not None:
        given.json.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(said))
    print(
        f"{'system':30} {'p50':>8} {'p95':>8} {'p99':>8} {'+p50':>8} {'+p99':>8}   us a request",
        file=sys.stderr,
    )
    for name, row in found.items():
        print(f"{name:30} " + " ".join(f"{value:8.1f}" for value in row.values()), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
