"""A Kafka, the topics, and the roles of one scenario."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeway.embedded import BrokerSettings, EmbeddedKafka
from edgeway.rules_of import rules_of
from edgeway.topics_admin import apply_topics
from schemas.topics import topics_for
from streams.settings import Settings
from tests.faults.harness.children import Children

RULES = Path(__file__).resolve().parents[1] / "app" / "rules.json"
PARTITIONS = 6
CAPABILITIES = ("fault/light", "fault/step")
READY_S = 60.0


@dataclass(slots=True)
class Fault:
    """Something done on purpose. `at` and `until` are seconds since the epoch."""

    kind: str
    name: str
    at: float
    until: float | None = None


@dataclass(slots=True)
class Cluster:
    """What a scenario works with."""

    folder: Path
    kafka: EmbeddedKafka
    bootstrap: str
    children: Children
    faults: list[Fault] = field(default_factory=list)
    rules: Path = RULES
    redis: str | None = None

    def router(self, number: int = 0, *, static: bool = True, port: int | None = None) -> str:
        flags = () if port is None else ("--port", str(port))
        return self._start("router", f"router-{number}", static, flags)

    def aggregator(self, number: int = 0, *, static: bool = True) -> str:
        return self._start("aggregator", f"aggregator-{number}", static, ())

    def worker(
        self,
        side: str,
        number: int,
        capabilities: Sequence[str] = CAPABILITIES,
        *,
        static: bool = True,
        more: Sequence[str] = (),
    ) -> str:
        flags = ("--side", side, "--capabilities", ",".join(f"{side}/{name}" for name in capabilities), *more)
        return self._start("worker", f"{side}-{number}", static, flags)

    def gateway(self, number: int, port: int) -> str:
        return self._start("gateway", f"gateway-{number}", False, ("--port", str(port)))

    async def ready(self, names: Sequence[str]) -> None:
        """Wait until each of `names` owns its partitions."""
        await self.children.until_said(names, "is ready", READY_S)

    def mark(self, kind: str, name: str) -> Fault:
        """Note a fault, now."""
        fault = Fault(kind, name, time.time())
        self.faults.append(fault)
        return fault

    def _start(self, role: str, name: str, static: bool, flags: Sequence[str]) -> str:
        common = [
            "--kafka",
            self.bootstrap,
            "--rules",
            str(self.rules),
            *(("--slot", name) if static else ()),
        ]
        common += [] if self.redis is None else ["--redis", self.redis]
        self.children.start(name, [role, *common, *flags])
        return name


@contextlib.asynccontextmanager
async def cluster(
    folder: Path, *, brokers: int = 1, rules: Path = RULES, redis: str | None = None
) -> AsyncIterator[Cluster]:
    """A Kafka with the topics of the rules; all processes end with it."""
    folder.mkdir(parents=True, exist_ok=True)
    async with EmbeddedKafka(BrokerSettings(brokers=brokers)) as kafka:
        replication = 3 if brokers == 3 else 1
        settings = Settings(
            kafka=kafka.bootstrap, rules=rules, partitions=PARTITIONS, replication=replication
        )
        report = await apply_topics(settings, topics_for(rules_of(settings), PARTITIONS))
        assert report.good, report.problems
        children = Children(folder)
        try:
            yield Cluster(folder, kafka, kafka.bootstrap, children, rules=rules, redis=redis)
        finally:
            await children.stop_all()


async def usual(
    at: Cluster,
    *,
    routers: int = 1,
    aggregators: int = 1,
    workers: int = 2,
    static: bool = True,
    capabilities: Sequence[str] = CAPABILITIES,
) -> list[str]:
    """The roles of most scenarios, ready: routers, aggregators, and so many workers a side."""
    names = [at.worker("local", number, capabilities, static=static) for number in range(workers)]
    names += [at.worker("cloud", number, static=static) for number in range(workers)]
    names += [at.aggregator(number, static=static) for number in range(aggregators)]
    names += [at.router(number, static=static) for number in range(routers)]
    await at.ready(names)
    # The first heartbeats go out once a worker is ready; a router must have read them.
    await asyncio.sleep(1.0)
    return names
