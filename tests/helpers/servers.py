"""Real servers for tests, from the environment that deploy/servers.sh makes: MLServer, moto's S3, llama.cpp.

Each can be killed, paused and started again on its port. Every test has the fixtures (tests/conftest.py).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.helpers.docker import REQUIRED, ROOT, docker_required
from tests.helpers.redis import free_port

HOME = ROOT / ".servers"
SCRIPTS = ROOT / "tests" / "servers"
READY_S = 60.0
S3_KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",  # any will do: moto checks none
    "AWS_DEFAULT_REGION": "us-east-1",
}


def need_servers() -> None:
    """Skip the test where the servers are not installed, or fail it where nothing may be skipped."""
    if (HOME / ".made").exists():
        return
    reason = f"there are no servers in {HOME.name}; `make servers` installs them"
    if docker_required():
        pytest.fail(f"{REQUIRED} is set, but {reason}", pytrace=False)
    pytest.skip(f"needs a real server: {reason}")


class Server:
    """A server as a child process, ready once all of `ready` answer 200; its log stands in `folder`."""

    def __init__(
        self, folder: Path, command: Sequence[str], *ready: str, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = folder / "server.log"
        self._folder = folder
        self._command = [str(HOME / "bin" / "python"), str(SCRIPTS / "tied.py"), *command]
        self._ready = ready
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, within_s: float = READY_S) -> None:
        """Start it and wait until it is ready.

        Raises:
            AssertionError: it ended, or was not ready in time; the end of its log is in the message.
        """
        assert self._process is None, "it runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=self._env, cwd=self._folder
            )
        until = time.monotonic() + within_s
        while not self._answers():
            ended = self._process.poll()
            if ended is not None or time.monotonic() > until:
                told = (
                    f"ended with {ended}" if ended is not None else f"was not ready within {within_s:.0f} s"
                )
                self.kill()
                raise AssertionError(f"{Path(self._command[2]).name} {told}; its log ends:\n{self.tail()}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate(timeout=10)
            self._process = None

    def pause(self) -> None:
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server is not running"
        return self._process

    def _answers(self) -> bool:
        try:
            for url in self._ready:
                with urllib.request.urlopen(url, timeout=2) as answer:
                    if answer.status != 200:
                        return False
        except OSError:
            return False
        return True


class MLServer(Server):
    """Seldon's MLServer with the models of tests/servers/runtimes.py: `dense`, `upper`, `slow`, `echo`,
    `loose`.

    `rest` and `grpc` are its addresses.
    """

    def __init__(self, folder: Path, models: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        http, grpc = free_port(), free_port()
        self.rest, self.grpc = f"http://127.0.0.1:{http}", f"grpc://127.0.0.1:{grpc}"
        settings = {
            "host": "127.0.0.1",
            "http_port": http,
            "grpc_port": grpc,
            "metrics_endpoint": None,
            "parallel_workers": 0,
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        models = MODELS if models is None else models
        for name, model in models.items():
            (folder / name).mkdir(exist_ok=True)
            (folder / name / "model-settings.json").write_text(json.dumps({"name": name, **model}))
        command = [str(HOME / "bin" / "mlserver"), "start", str(folder)]
        # It calls itself ready also where a model could not be loaded.
        ready = [f"{self.rest}/v2/models/{name}/ready" for name in models]
        super().__init__(folder, command, *ready, env={"PYTHONPATH": str(SCRIPTS)})


def _tensor(name: str, datatype: str, *shape: int) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape)}


MODELS: dict[str, dict[str, Any]] = {
    "dense": {
        "implementation": "runtimes.Dense",
        "inputs": [_tensor("input", "FP32", -1, 1, 784)],
        "outputs": [_tensor("logits", "FP32", -1, 10)],
        "parameters": {"version": "v1"},
    },
    "upper": {
        "implementation": "runtimes.Upper",
        "inputs": [_tensor("text", "BYTES", -1, 1)],
        "outputs": [_tensor("upper", "BYTES", -1, 1), _tensor("length", "INT64", -1, 1)],
    },
    "slow": {
        "implementation": "runtimes.Slow",
        "inputs": [_tensor("wait_ms", "FP32", -1, 1)],
        "outputs": [_tensor("waited_ms", "FP32", -1, 1)],
    },
    # These tell no names and shapes, as many a model of MLServer's.
    "loose": {"implementation": "runtimes.Dense"},
    "echo": {"implementation": "runtimes.Echo"},
}


class S3Server(Server):
    """moto's S3 at `url`, empty at first and after each start; `keys` are for the environment."""

    keys = S3_KEYS

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [str(HOME / "bin" / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
        super().__init__(folder, command, f"{self.url}/moto-api/data.json", env=S3_KEYS)


class LlamaServer(Server):
    """llama.cpp's server with a tiny random model, `tiny`, at `url` (ending in /v1).

    `use` is `chat` or `embeddings` (64 numbers a text): the server takes one kind of request alone.
    """

    def __init__(self, folder: Path, use: str = "chat", model: Path = HOME / "tiny.gguf") -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/v1"
        command = [str(SCRIPTS / "serve_llama.py"), str(model), str(port), use]
        super().__init__(folder, command, f"http://127.0.0.1:{port}/health")


S = TypeVar("S", bound=Server)


@contextmanager
def running(server: S) -> Iterator[S]:
    """The server, started, and ended at the end whatever state it is in."""
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def mlserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MLServer]:
    """One for the whole run (3 s to start): a test that kills it starts it again."""
    need_servers()
    with running(MLServer(tmp_path_factory.mktemp("mlserver"))) as server:
        yield server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One for the whole run: tests use buckets of their own, and do not kill it."""
    need_servers()
    with running(S3Server(tmp_path_factory.mktemp("s3"))) as server:
        yield server


@pytest.fixture
def own_s3_server(tmp_path: Path) -> Iterator[S3Server]:
    """One of this test's own, to be killed."""
    need_servers()
    with running(S3Server(tmp_path)) as server:
        yield server


@pytest.fixture
def llama_server(tmp_path: Path) -> Iterator[LlamaServer]:
    """Chat, one of this test's own (0.2 s to start): it may be killed."""
    need_servers()
    with running(LlamaServer(tmp_path)) as server:
        yield server


@pytest.fixture
def llama_embedder(tmp_path: Path) -> Iterator[LlamaServer]:
    """Embeddings, one of this test's own: it may be killed."""
    need_servers()
    with running(LlamaServer(tmp_path, "embeddings")) as server:
        yield server
