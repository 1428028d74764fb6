"""Docker, for the tests that need it: whether it answers, how to build, what to do where it is missing."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRAPPER = ROOT.parent / "shared" / "images" / "docker-build"
REQUIRED = "EDGEWAY_REQUIRE_DOCKER"


@functools.cache
def why_not() -> str | None:
    """What keeps Docker from being used, or None where it answers."""
    if shutil.which("docker") is None:
        return "there is no docker command"
    try:
        asked = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "the Docker daemon did not answer within 10 s"
    return None if asked.returncode == 0 else asked.stderr.strip() or "the Docker daemon does not answer"


def docker_answers() -> bool:
    """Whether containers can be run here."""
    return why_not() is None


def docker_required() -> bool:
    """Whether a missing Docker is a failure (`EDGEWAY_REQUIRE_DOCKER=1`, as in continuous integration)."""
    return os.environ.get(REQUIRED, "") not in ("", "0")


def need_docker() -> None:
    """Skip the test where Docker does not answer, or fail it where Docker is required."""
    reason = why_not()
    if reason is None:
        return
    if docker_required():
        pytest.fail(f"{REQUIRED} is set, but {reason}", pytrace=False)
    pytest.skip(f"needs Docker: {reason}")


def builder() -> list[str]:
    """The command that builds an image: the wrapper beside the repository if it is there, else Docker's."""
    return [str(WRAPPER)] if os.access(WRAPPER, os.X_OK) else ["docker", "build"]


def build_image(tag: str, dockerfile: Path, context: Path = ROOT, timeout_s: float = 600) -> None:
    """Build `dockerfile` as `tag`; the builder's output is in the AssertionError where it fails."""
    command = [*builder(), "-t", tag, "-f", str(dockerfile), str(context)]
    run(command, timeout_s=timeout_s)


def run(command: list[str], timeout_s: float = 60, env: dict[str, str] | None = None) -> str:
    """Standard output of a command that has to succeed."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    said = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{said}"
    return done.stdout
