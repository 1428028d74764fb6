"""An agent that copies records, hosted as roles are; `python -m tests.helpers.echo JSON` is a process of it.

Keys of the JSON: `kafka`, `topic` (one of a capability), `out`, and optionally `slot`, `leave`, `delay_s`,
`killers` (values that end the process), `hang` (a value whose handler never returns), `bug` (a value whose
handler raises what nobody catches), `task_ends` (true: a background task returns; false: it raises), and
settings of delivery by their names.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgeway.cli.output import say
from edgeway.errors import EdgewayError
from edgeway.roles.process import Process
from edgeway.roles.run import serve
from schemas.messages import Failure
from schemas.rules import parse_rules
from streams.app import Host
from streams.delivery import (
    Batch,
    BrokerClock,
    Inlet,
    InletSettings,
    Lane,
    Outgoing,
    Outlet,
    Output,
    Record,
    Runner,
)
from streams.delivery.drivers.aiokafka_sink import AiokafkaSink
from streams.delivery.drivers.aiokafka_source import AiokafkaSource
from streams.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


class Echo:
    """Copies each record to `out`, `delay_s` after it was handed out; remembers what it was told."""

    def __init__(self, out: str, delay_s: float = 0.0) -> None:
        self.out = out
        self.delay_s = delay_s
        self.handled = 0
        self.lanes: list[Lane] = []
        self.revocations = 0
        self.refused: list[tuple[int, str]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, batch: Batch) -> None:
        self.handled += len(batch.records)
        if self.delay_s == 0:
            self._settle(batch.lane, batch.records)
            return
        task = asyncio.create_task(self._later(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _later(self, batch: Batch) -> None:
        await asyncio.sleep(self.delay_s)
        self._settle(batch.lane, batch.records)

    def _settle(self, lane: Lane, records: Sequence[Record]) -> None:
        for record in records:
            lane.settle((record.offset,), [Outgoing(self.out, record.key, record.value or b"")])

    def refuse(self, record: Record, failure: Failure) -> Sequence[Output]:
        self.refused.append((record.offset, failure.code))
        return ()

    def assigned(self, lane: Lane) -> None:
        self.lanes.append(lane)

    def revoked(self, lane: Lane) -> None:
        self.revocations += 1


class Member:
    """A member of a group in this process, hosted by Faust."""

    def __init__(
        self,
        bootstrap: str,
        agent: Any,
        topic: str,
        group: str,
        *,
        slot: str | None = None,
        session_ms: int = 6000,
        send_timeout_s: float = 20.0,
        substitute: Any = None,
        **settings: Any,
    ) -> None:
        options = {"bootstrap_servers": bootstrap}
        clock = BrokerClock()
        self.outlet = Outlet(
            AiokafkaSink(options), clock, send_timeout_s=send_timeout_s, substitute=substitute
        )
        source = AiokafkaSource(options, [topic], group, slot=slot, session_ms=session_ms)
        self.inlet = Inlet(
            source,
            self.outlet,
            agent,
            InletSettings(group, session_s=session_ms / 1000, **settings),
            clock,
        )
        self.host = Host("echo")
        self.host.attach(self.inlet, Runner(agent))

    async def start(self) -> None:
        await self.outlet.start()
        self.host.guard(self.outlet.failed)
        await self.host.start()
        await asyncio.wait_for(self.inlet.ready.wait(), 60)

    async def stop(self, deadline_s: float = 10.0) -> None:
        await self.host.stop(deadline_s)
        await self.outlet.stop(deadline_s)

    async def __aenter__(self) -> Member:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


class _Bug(BaseException):
    """What no handler of exceptions expects."""


class _Faulty(Echo):
    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told["out"], told.get("delay_s", 0.0))
        self.killers = {value.encode() for value in told.get("killers", ())}
        self.hang = told.get("hang", "").encode()
        self.bug = told.get("bug", "").encode()

    async def handle(self, batch: Batch) -> None:
        for record in batch.records:
            say(f"handles {record.value!r} at {record.offset}")
            if record.value in self.killers:
                await asyncio.sleep(0.3)  # what was handled before is acknowledged and committed
                os.kill(os.getpid(), signal.SIGKILL)
            if self.bug and record.value == self.bug:
                raise _Bug
            if self.hang and record.value == self.hang:
                await asyncio.Event().wait()
            await super().handle(Batch(batch.lane, [record]))


async def _main(told: dict[str, Any]) -> int:
    fields = {name: told[name] for name in told if name in Settings.__dataclass_fields__}
    settings = Settings(leave_on_stop="yes" if told.get("leave") else "no", **fields)
    process = Process.create("echo", settings, parse_rules(b"{}"))
    agent = _Faulty(told)
    process.add_inlet(agent, [told["topic"]], told["topic"])

    async def broken() -> None:
        await asyncio.sleep(0.5)
        if not told.get("task_ends"):
            raise RuntimeError("this task breaks")

    if "task_ends" in told:
        process.host.add_task("broken", broken)

    async def announce() -> None:
        say("ready")

    return await serve(process, announce)


def main() -> int:
    try:
        return asyncio.run(_main(json.loads(sys.argv[1])))
    except EdgewayError as error:
        say(f"edgeway: {error}")
        return error.exit_code


class EchoProcess:
    """A child process of this module; its standard error is `said`."""

    def __init__(self, folder: Path, **told: Any) -> None:
        self.log = folder / f"echo-{time.monotonic_ns()}.log"
        self._told = told
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, *, until: str = "ready") -> EchoProcess:
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.helpers.echo",
                json.dumps(self._told),
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )
        if until:
            await self.says(until)
        return self

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    async def says(self, text: str, within_s: float = 40.0) -> None:
        async with asyncio.timeout(within_s):
            while text not in self.said:
                assert self._process is not None
                assert self._process.returncode is None, self.said
                await asyncio.sleep(0.02)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def ended(self, within_s: float = 40.0) -> int:
        assert self._process is not None
        return await asyncio.wait_for(self._process.wait(), within_s)

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


if __name__ == "__main__":
    sys.exit(main())
