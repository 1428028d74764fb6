"""Kafka's jars: a manifest in the cache, checked at every start, made once by the resolver."""

import base64
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from edgeway.embedded.errors import EmbeddedKafkaError
from edgeway.embedded.waiting import Waiting

POLL = 0.1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Jars:
    """A complete class path. `sizes` maps jar path to bytes; `bootstrap` is the formatter's checkpoint."""

    version: str
    sizes: Mapping[str, int]
    bootstrap: bytes

    @property
    def paths(self) -> list[str]:
        return list(self.sizes)

    def to_json(self) -> str:
        checkpoint = base64.b64encode(self.bootstrap).decode("ascii")
        content = {"kafka": self.version, "bootstrap_checkpoint": checkpoint, "jars": dict(self.sizes)}
        return json.dumps(content, indent=2) + "\n"


def cache_folder(environment: Mapping[str, str], home: Path) -> Path:
    """``EDGEWAY_CACHE_DIR``, else ``edgeway`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    if chosen := environment.get("EDGEWAY_CACHE_DIR"):
        return Path(chosen)
    return Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "edgeway"


def manifest_file(cache: Path, version: str) -> Path:
    return cache / f"kafka-{version}.json"


def archive_file(cache: Path, version: str) -> Path:
    """Class data archive: halves the start. Java ignores it where it does not fit the JVM or the jars."""
    return cache / f"kafka-{version}.jsa"


def cached(cache: Path, version: str) -> Jars | None:
    """The class path of the manifest, if every jar is still there with its size; no network, no jgo."""
    try:
        content = json.loads(manifest_file(cache, version).read_text(encoding="utf-8"))
        sizes = {str(path): int(size) for path, size in content["jars"].items()}
        bootstrap = base64.b64decode(content["bootstrap_checkpoint"], validate=True)
        complete = all(Path(path).stat().st_size == size for path, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Jars(version, sizes, bootstrap) if complete and sizes else None


def jars(
    cache: Path, version: str, java: Path, timeout: float, stopped: Callable[[], bool] = lambda: False
) -> Jars:
    """The class path, fetched first where it is not cached: a separate process, so that it can be stopped.

    Raises:
        EmbeddedKafkaError: it could not be fetched in `timeout` seconds, or `stopped()` became true.
    """
    if found := cached(cache, version):
        return found
    _log.debug("fetching Apache Kafka %s into %s", version, cache)
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise EmbeddedKafkaError(
            f"cannot make the cache folder {cache}: {exc}; set EDGEWAY_CACHE_DIR to a writable folder"
        ) from exc
    report = cache / f"fetch-{version}-{os.getpid()}.log"
    try:
        with Waiting(f"fetching Apache Kafka {version} into {cache} (once, about 45 MB)") as waiting:
            code = _resolve(cache, version, java, report, timeout, _heard(stopped, waiting))
        text = report.read_text(encoding="utf-8", errors="replace").strip()
        found = cached(cache, version)
    finally:
        report.unlink(missing_ok=True)
    if code != 0 or found is None:
        raise EmbeddedKafkaError(
            f"cannot fetch Apache Kafka {version}: {text or f'the resolver ended with {code}'}\n"
            "The first start needs a Maven repository: check the network, name a mirror in "
            "EDGEWAY_MAVEN_URL, or take a Kafka that runs already (--kafka HOST:PORT)"
        )
    return found


def _heard(stopped: Callable[[], bool], waiting: Waiting) -> Callable[[], bool]:
    """`stopped`, which is asked all the time; `waiting` shows that."""

    def ask() -> bool:
        waiting.tick()
        return stopped()

    return ask


def _resolve(
    cache: Path, version: str, java: Path, report: Path, timeout: float, stopped: Callable[[], bool]
) -> int:
    root = str(Path(__file__).resolve().parents[2])
    search = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH")) if part)
    command = [sys.executable, "-m", "edgeway.embedded.resolve", str(cache), version, str(java)]
    deadline = time.monotonic() + timeout
    with report.open("wb") as out:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONPATH": search},
        )
        try:
            while (code := child.poll()) is None:
                if stopped():
                    raise EmbeddedKafkaError("the start was given up while Kafka's jars were fetched")
                if time.monotonic() >= deadline:
                    raise EmbeddedKafkaError(
                        f"fetching Kafka's jars took more than {timeout:.0f} s: run it again, "
                        "it goes on where it stopped"
                    )
                time.sleep(POLL)
            return code
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
