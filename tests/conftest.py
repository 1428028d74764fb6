"""Fixtures that several packages' tests share, and the rule that continuous integration skips nothing."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import pytest

from tests.helpers.docker import REQUIRED, docker_required
from tests.helpers.redis import redis_server
from tests.helpers.servers import (
    llama_embedder,
    llama_server,
    mlserver,
    own_s3_server,
    s3_server,
)

__all__ = [
    "llama_embedder",
    "llama_server",
    "mlserver",
    "own_s3_server",
    "redis_server",
    "s3_server",
]

# Under `nohup` a hang-up is ignored, and every process that a test starts would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # for tests that import ONNX Runtime before `workers`


@pytest.fixture(autouse=True)
def _logs_of_the_test_alone() -> Iterator[None]:
    """A command that ran in a test leaves a handler on a stream that is closed by then: each later warning
    printed a traceback instead, thousands in a test of laws, which took minutes over it."""
    root = logging.getLogger()
    before, level = set(root.handlers), root.level
    yield
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler and handler not in before:
            root.removeHandler(handler)
            root.setLevel(level)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where Docker is required, a skipped test is a failed run: nobody reads the list of skips there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not docker_required():
        return
    if reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"\n{REQUIRED} is set, so the skipped tests count as failures", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
