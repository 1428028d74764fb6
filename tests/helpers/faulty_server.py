"""A real HTTP server that fails as it is told: late, cut off, malformed, refused, sent elsewhere, endless.

`with faulty(lambda asked: {"output": 1}) as server`, then say `server.fault = lambda asked: FAULTS["500"]`,
ask `server.url`, and look at `server.paid["key"]`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOREVER_S = 3600.0


@dataclass(frozen=True)
class Asked:
    """One call: method, path with query, headers by lower-case name, body."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return self.headers.get("idempotency-key", "")

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Fault:
    """How an answer goes wrong; by default it does not.

    `after_s` before anything is said; `body` in place of the good answer; `trickle_s` between its bytes;
    `cut_at` so many bytes of the answer the connection breaks (0: before the status); `endless` bytes go on
    until the caller leaves; `raw` stands for the whole answer, status and all; `drop` closes the connection
    after the answer without saying so. `paid`: the service has done its work all the same.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    after_s: float = 0.0
    trickle_s: float = 0.0
    cut_at: int | None = None
    endless: bool = False
    raw: bytes | None = None
    drop: bool = False
    paid: bool = True


def _refusing(status: int, **headers: str) -> Fault:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault(status, said, b'{"error": {"message": "4111-1111-secret"}}', paid=False)


FAULTS: dict[str, Fault] = {
    "never answers": Fault(after_s=FOREVER_S),
    "trickles": Fault(trickle_s=0.2),
    "cut before the status": Fault(cut_at=0),
    "cut in the headers": Fault(cut_at=20),
    "cut in the body": Fault(cut_at=-5),
    "empty": Fault(body=b""),
    "malformed": Fault(body=b'{"output": ["4111-1111-secret"'),
    "no json": Fault(body=b"<html>4111-1111-secret</html>"),
    "no http": Fault(raw=b"SSH-2.0-4111-1111-secret\r\n"),
    "deep": Fault(body=b"[" * 100_000),
    "no text": Fault(body=b'"\xff\xfe"'),
    "400": _refusing(400),
    "401": _refusing(401),
    "404": _refusing(404),
    "429": _refusing(429),
    "429, come back too late": _refusing(429, retry_after="3000"),
    "500": _refusing(500),
    "503": _refusing(503),
    "503, come back too late": _refusing(503, retry_after="Fri, 31 Dec 2100 23:59:59 GMT"),
    "sent elsewhere": _refusing(307, location="http://127.0.0.2:1/4111-1111-secret"),
    "sent nowhere": _refusing(308),
    "a POST made a GET": _refusing(302, location="/other"),
    "without end": Fault(endless=True),
    "a gzip bomb": Fault(headers={"content-encoding": "gzip"}, body=gzip.compress(bytes(32 * 1024 * 1024))),
}
"""Every way in which no caller can get an answer."""


class FaultyServer:
    """`answer` makes the good answer to a call, a value for JSON; `fault` says whether it fails instead.

    `calls` keeps all calls; `paid` counts, by idempotency key, how often the work was done. Where
    `idempotent` a key whose work was done gets its answer again, and is not paid again. `connections` were
    opened in all.
    """

    def __init__(self, answer: Callable[[Asked], Any], certificate: tuple[Path, Path] | None = None) -> None:
        self.answer = answer
        self.fault: Callable[[Asked], Fault | None] = lambda _: None
        self.calls: list[Asked] = []
        self.paid: Counter[str] = Counter()
        self.idempotent = False
        self.connections = 0
        self.url = ""
        self._port = 0
        self._certificate = certificate
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Listen; a second time on the same port."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty server", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    def stop(self) -> None:
        """Break every connection. Stopping twice is nothing."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        asyncio.run_coroutine_threadsafe(self._stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(10)
        loop.close()

    def count(self, key: str) -> int:
        """How many calls came under `key`."""
        return sum(asked.key == key for asked in self.calls)

    async def _start(self) -> None:
        context = None
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._certificate)
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port, ssl=context)
        scheme = "http" if context is None else "https"
        self._port = self._server.sockets[0].getsockname()[1]
        self.url = f"{scheme}://127.0.0.1:{self._port}"

    async def _stop(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=5)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (asked := await _read(reader)) is not None:
                if not await self._answered(asked, writer):
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the caller has gone (its deadline, or its limit), or the server is stopped
        finally:
            writer.close()

    async def _answered(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        self.calls.append(asked)
        fault = self.fault(asked) or Fault()
        if fault.paid and not (self.idempotent and self.paid[asked.key]):
            self.paid[asked.key] += 1
        await asyncio.sleep(fault.after_s)
        if fault.endless:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
                await writer.drain()
        body = json.dumps(self.answer(asked)).encode() if fault.body is None else fault.body
        said = _head(fault, len(body)) + body if fault.raw is None else fault.raw
        if fault.cut_at is not None:
            writer.write(said[: fault.cut_at])
            await writer.drain()
            writer.transport.abort()
            return False
        await _write(writer, said, len(said) - len(body) if fault.trickle_s else len(said), fault.trickle_s)
        return fault.raw is None and not fault.drop


@contextmanager
def faulty(
    answer: Callable[[Asked], Any], certificate: tuple[Path, Path] | None = None
) -> Iterator[FaultyServer]:
    """A started server, stopped at the end."""
    server = FaultyServer(answer, certificate)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def self_signed(folder: Path, name: str = "cert") -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that nobody signed, and its key; needs `openssl`."""
    assert shutil.which("openssl"), "openssl is not installed, and nothing else here makes certificates"
    made, key = folder / f"{name}.pem", folder / f"{name}-key.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
    command = ["openssl", *words.split(" "), "-out", str(made), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    return made, key


def _head(fault: Fault, size: int) -> bytes:
    lines = [f"HTTP/1.1 {fault.status} Said", "content-type: application/json", f"content-length: {size}"]
    lines += [f"{name}: {value}" for name, value in fault.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    """The next call of a connection, None where it ends."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Asked(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


async def _write(writer: asyncio.StreamWriter, said: bytes, at_once: int, trickle_s: float) -> None:
    writer.write(said[:at_once])
    for byte in said[at_once:]:
        await writer.drain()
        await asyncio.sleep(trickle_s)
        writer.write(bytes((byte,)))
    await writer.drain()
