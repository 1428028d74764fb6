"""A real Apache Kafka in processes of its own, started from its jars."""

import asyncio
import logging
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Self

from edgeway.embedded.errors import EmbeddedKafkaError
from edgeway.embedded.jars import Jars, archive_file, cache_folder, jars
from edgeway.embedded.java import find_java
from edgeway.embedded.metadata import known_brokers
from edgeway.embedded.ports import choose_nodes
from edgeway.embedded.process import BrokerProcess
from edgeway.embedded.properties import HOST, LOG4J2, Node, java_command, render, server_properties
from edgeway.embedded.settings import BrokerSettings
from edgeway.embedded.storage import TEMPORARY, DataFolder, sweep

POLL = 0.05
ASK_TIMEOUT = 1.0
PORT_TRIES = 3
LOG_LINES = 20

_log = logging.getLogger(__name__)


class _PortLost(EmbeddedKafkaError):
    """A port that was free when it was chosen was taken before the broker bound it."""


class EmbeddedKafka:
    """One or three Kafka brokers that live as long as this object, or this process, at most.

    ::

        async with EmbeddedKafka(BrokerSettings(brokers=3)) as kafka:
            producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)

    `start`, `stop`, `kill` and `restart` are for an event loop; the same names with ``_sync`` block. One
    call at a time. Brokers are numbered from 1.
    """

    def __init__(self, settings: BrokerSettings | None = None) -> None:
        self.settings = settings or BrokerSettings()
        self._nodes: list[Node] = []
        self._processes: dict[int, BrokerProcess] = {}
        self._folder: DataFolder | None = None
        self._java: Path | None = None
        self._cache: Path | None = None
        self._jars: Jars | None = None
        self._given_up = threading.Event()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def bootstrap(self) -> str:
        """``127.0.0.1:port[,...]`` of all brokers, for ``bootstrap_servers``."""
        return ",".join(f"{HOST}:{node.client_port}" for node in self._nodes)

    @property
    def data(self) -> Path:
        """The data folder in use."""
        return self._owned().path

    @property
    def pids(self) -> dict[int, int]:
        """Process ids of the brokers that run, by broker number."""
        return {number: p.pid for number, p in self._processes.items() if p.alive}

    @property
    def ended(self) -> dict[int, str]:
        """Brokers that are down though nobody stopped the cluster: number -> exit code and end of the log."""
        return {
            number: f"exit code {p.exit_code}\n{_last_lines(p)}"
            for number, p in self._processes.items()
            if not p.alive
        }

    async def start(self) -> None:
        """Start all brokers and wait until they know each other. See `start_sync`.

        A cancelled start stops what it had started.
        """
        await self._in_thread(self.start_sync)

    async def stop(self) -> None:
        """Stop all brokers and give the data folder free. See `stop_sync`."""
        await self._in_thread(self.stop_sync)

    async def kill(self, number: int) -> None:
        """SIGKILL one broker: a fault for tests."""
        await self._in_thread(lambda: self.kill_sync(number))

    async def restart(self, number: int) -> None:
        """Start a killed broker again on its old port, or stop a running one first."""
        await self._in_thread(lambda: self.restart_sync(number))

    def start_sync(self) -> None:
        """Start all brokers and wait until they know each other.

        Raises:
            EmbeddedKafkaError: no Java or jars, a port or the data folder is taken, or the brokers did not
                get ready in time; nothing is left running.
        """
        if self._folder is not None:
            raise EmbeddedKafkaError("this EmbeddedKafka is started already: stop it first")
        self._given_up.clear()
        settings = self.settings
        self._java = find_java(os.environ.get("JAVA_HOME"))
        self._cache = cache_folder(os.environ, Path.home())
        self._jars = jars(
            self._cache, settings.version, self._java, settings.fetch_timeout, self._given_up.is_set
        )
        if settings.data is None:
            sweep(Path(tempfile.gettempdir()), time.time())
        path = settings.data or Path(tempfile.mkdtemp(prefix=TEMPORARY))
        try:
            self._folder = DataFolder(path.resolve(), settings.brokers)
            self._launch_all()
        except BaseException:
            self.stop_sync()
            raise

    def stop_sync(self) -> None:
        """SIGTERM, wait `stop_timeout`, SIGKILL; a temporary data folder is removed, its brokers just killed.

        Does nothing when nothing runs.
        """
        temporary = self.settings.data is None
        for process in self._processes.values():
            process.signal(signal.SIGKILL if temporary else signal.SIGTERM)
        deadline = time.monotonic() + self.settings.stop_timeout
        for number, process in self._processes.items():
            if not process.wait(max(deadline - time.monotonic(), 0.0)):
                _log.warning("broker %d did not stop in %.0f s: killed", number, self.settings.stop_timeout)
                process.kill()
        self._processes.clear()
        if self._folder is not None:
            self._folder.close()
            if temporary:
                shutil.rmtree(self._folder.path, ignore_errors=True)
            self._folder = None

    def give_up(self) -> None:
        """From another thread: let a running `start_sync` or `restart_sync` fail now."""
        self._given_up.set()

    def kill_sync(self, number: int) -> None:
        """SIGKILL one broker."""
        self._process(number).kill()

    def restart_sync(self, number: int) -> None:
        """Start one broker again (a running one is stopped first) and wait until it is known."""
        process = self._process(number)
        process.signal(signal.SIGTERM)
        if not process.wait(self.settings.stop_timeout):
            process.kill()
        self._given_up.clear()
        self._launch(self._nodes[number - 1])
        self._await_ready([number])

    def _launch_all(self) -> None:
        for attempt in range(PORT_TRIES):
            self._nodes = choose_nodes(self.settings.brokers, self.settings.port, random.Random())
            try:
                for node in self._nodes:
                    self._launch(node)
                self._await_ready([node.number for node in self._nodes])
                return
            except _PortLost:
                if attempt == PORT_TRIES - 1:
                    raise
                for process in self._processes.values():
                    process.kill()

    def _launch(self, node: Node) -> None:
        folder = self._owned()
        if self._java is None or self._jars is None or self._cache is None:
            raise EmbeddedKafkaError("this EmbeddedKafka is not started")
        folder.format(node.number, self._jars.bootstrap)
        lines = server_properties(node, self._nodes, str(folder.node(node.number)), self.settings)
        properties = folder.write(f"kafka-{node.number}.properties", render(lines))
        log4j2 = folder.write("log4j2.properties", LOG4J2)
        archive = archive_file(self._cache, self.settings.version)
        command = java_command(
            str(self._java),
            self._jars.paths,
            self.settings.heap,
            str(log4j2),
            str(properties),
            str(archive) if archive.exists() else None,
            long_lived=self.settings.long_lived,
        )
        log = folder.log(node.number)
        self._processes[node.number] = BrokerProcess(command, log, inherited=[folder.lock])

    def _await_ready(self, waiting: Collection[int]) -> None:
        """Until each broker of `waiting` answers and knows all brokers that run."""
        deadline = time.monotonic() + self.settings.start_timeout
        left = set(waiting)
        while left:
            for number in sorted(left):
                process = self._processes[number]
                if self._given_up.is_set():
                    raise EmbeddedKafkaError("the start was given up")
                if not process.alive:
                    self._fail(process, f"ended with exit code {process.exit_code} while starting")
                if time.monotonic() >= deadline:
                    self._fail(process, f"is not ready after {self.settings.start_timeout:.0f} s")
                port = self._nodes[number - 1].client_port
                known = known_brokers(HOST, port, ASK_TIMEOUT)
                # Itself among them: a broker that has died since it was looked at is in neither set.
                if number in known and known >= self.pids.keys():
                    left.discard(number)
            if left:
                time.sleep(POLL)

    def _fail(self, process: BrokerProcess, what: str) -> None:
        tail = _last_lines(process)
        kind = _PortLost if "Address already in use" in process.said() else EmbeddedKafkaError
        raise kind(f"the Kafka broker {what}. The end of {process.log}:\n{tail}")

    def _owned(self) -> DataFolder:
        if self._folder is None:
            raise EmbeddedKafkaError("this EmbeddedKafka is not started")
        return self._folder

    def _process(self, number: int) -> BrokerProcess:
        self._owned()
        if number not in self._processes:
            raise EmbeddedKafkaError(f"there is no broker {number}: they are 1 to {len(self._nodes)}")
        return self._processes[number]

    async def _in_thread(self, work: Callable[[], None]) -> None:
        task = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            # A thread cannot be cancelled: tell it to give up, and see it end before saying so.
            self.give_up()
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None and work == self.start_sync:
                await asyncio.to_thread(self.stop_sync)
            raise


def _last_lines(process: BrokerProcess) -> str:
    return "\n".join(process.said().splitlines()[-LOG_LINES:])
