"""A worker without Kafka: it answers over HTTP alone."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable
from typing import cast

from edgeway.roles.process import Process
from streams.delivery import Outlet, Stuck
from streams.settings import Settings
from workers.desk import Desk


class _NoOutlet:
    """Writes nothing, since nothing is read."""

    def __init__(self) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        """Nothing to connect to."""

    async def stop(self, wait_s: float) -> None:
        """Nothing to send."""

    async def send(self, *_outputs: object) -> None:
        raise AssertionError("a process without Kafka has nowhere to write to")


def settings_alone(settings: Settings) -> Settings:
    """The settings of a process that joins no group, and so needs no slot in one."""
    return dataclasses.replace(settings, auto_slot=False, slot=None)


def without_kafka(process: Process) -> None:
    """Have `process`, not started yet, connect to no broker."""
    process.outlet = cast("Outlet", _NoOutlet())


def model_watchdog(desk: Desk, limit_s: float) -> Callable[[], Awaitable[None]]:
    """Ends the process where a model hangs, also where other threads go on: its records wait for ever."""

    async def look() -> None:
        if names := desk.hanging(time.monotonic(), limit_s):
            raise Stuck(f"{', '.join(names)}: a model has been running for more than {limit_s:g} s")

    return look
