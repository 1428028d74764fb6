"""The one file that knows Faust: it hosts agents, services and timers; records come by our own inlets.

Faust's consumer can commit past unfinished work and is slow, so its Kafka side is switched off altogether.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import faust
from faust.app.base import BootStrategy
from mode import Service

from streams.delivery import Batch, DeliveryError, Inlet, Runner

log = logging.getLogger(__name__)

FAUST_STOP_S = 5.0
CHANNEL_BATCHES = 16
"""Batches that wait between an inlet and its agent; the windows bound their records and bytes."""


class _NoKafka(BootStrategy):
    enable_kafka = False
    enable_web = False


class _App(faust.App):
    BootStrategy = _NoKafka

    async def on_started(self) -> None:
        await super().on_started()
        # Without a consumer nothing else resumes the flow, and channels never deliver.
        self.flow_control.resume()

    def _create_directories(self) -> None:
        # Faust keeps its tables in folders it makes in the working directory. We have no tables, and a
        # container's working directory cannot be written.
        pass


class Host:
    """A Faust app around inlets, their agents, timers and background tasks. One a process."""

    def __init__(self, name: str) -> None:
        self._app = _App(
            name,
            broker="kafka://localhost:1",
            store="memory://",
            web_enabled=False,
            topic_allow_declare=False,
            topic_disable_leader=True,
            table_standby_replicas=0,
            worker_redirect_stdouts=False,
            version=1,
            autodiscover=False,
        )
        self._inlets: list[Inlet] = []
        self._tasks: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self._running: list[asyncio.Task[None]] = []
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def attach(self, inlet: Inlet, runner: Runner) -> None:
        """Host `runner`'s agent, fed by `inlet`."""
        group = inlet.settings.group
        channel = self._app.channel(maxsize=CHANNEL_BATCHES)

        async def run(stream: Any) -> None:
            # The body is wrapped by the runner: an exception that escaped would make Faust drop the batch
            # and go on.
            async for batch in stream:
                try:
                    await runner.run(batch)
                except asyncio.CancelledError:
                    raise
                except BaseException as error:
                    # Faust would end the agent in silence for whatever it does not know.
                    self.end(error)
                    raise

        async def deliver(batch: Batch) -> None:
            await channel.send(value=batch)

        class InletService(Service):
            async def on_start(self) -> None:
                await inlet.start(deliver)

        self._app.agent(channel, name=group)(run)
        self._app.service(InletService)
        self._inlets.append(inlet)

    def add_task(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` beside the agents; its end, by whatever cause, ends the process."""
        self._tasks.append((name, work))

    def every(self, seconds: float, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` in intervals of `seconds`."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(seconds)
                await work()

        self.add_task(name, repeat)

    def end(self, error: BaseException) -> None:
        """End `run` with `error`."""
        if not self._ended.done():
            self._ended.set_exception(error)

    async def start(self) -> None:
        """Start everything; returns when the agents run."""
        await self._app.start()
        for name, work in self._tasks:
            task = asyncio.ensure_future(work())
            task.add_done_callback(partial(self._task_ended, name))
            self._running.append(task)
        for inlet in self._inlets:
            self.guard(inlet.failed)

    def guard(self, failed: asyncio.Future[None]) -> None:
        """End the process when `failed` ends with an error."""
        failed.add_done_callback(self._failed)

    async def wait(self, stop: asyncio.Event) -> None:
        """Wait for `stop`.

        Raises:
            Exception: what ended an inlet, an agent, a task or Faust itself.
        """
        stopped = asyncio.ensure_future(stop.wait())
        crash = asyncio.ensure_future(self._watch_faust())
        try:
            ends: set[asyncio.Future[Any]] = {stopped, crash, self._ended}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._ended.done():
                self._ended.result()
            if crash.done():
                crash.result()
        finally:
            stopped.cancel()
            crash.cancel()
            await asyncio.gather(stopped, crash, return_exceptions=True)

    async def stop(self, deadline_s: float) -> None:
        """Drain and stop the inlets, then Faust: it cancels agents and drops what is queued.

        Everything is stopped, whatever fails; failures are logged, since the process ends anyway.
        """
        stops = (inlet.stop(deadline_s) for inlet in self._inlets)
        for ended in await asyncio.gather(*stops, return_exceptions=True):
            if isinstance(ended, BaseException):
                log.error("an inlet did not stop in order: %s", ended, exc_info=ended)
        for task in self._running:
            task.cancel()
        # Not wait_for: Faust's stop swallows a cancellation while an agent does not end.
        stopping = {*self._running, asyncio.ensure_future(self._app.stop())}
        ended_now, late = await asyncio.wait(stopping, timeout=FAUST_STOP_S)
        for future in ended_now:
            if not future.cancelled() and (error := future.exception()) is not None:
                log.debug("ended with %s", type(error).__name__, exc_info=error)
        if late:
            log.warning("%d agents or tasks did not end within %.0f s", len(late), FAUST_STOP_S)

    async def _watch_faust(self) -> None:
        # A dead service sets these flags and nothing else; the process would live on, silent.
        while True:
            await asyncio.sleep(0.2)
            if self._app.crashed or self._app.should_stop:
                reason = getattr(self._app, "crash_reason", None)
                raise DeliveryError(f"the Faust app ended: {reason!r}")

    def _failed(self, failed: asyncio.Future[None]) -> None:
        if not failed.cancelled() and (error := failed.exception()) is not None:
            self.end(error)

    def _task_ended(self, name: str, task: asyncio.Future[None]) -> None:
        if task.cancelled():
            return
        self.end(task.exception() or DeliveryError(f"the task {name} ended"))
