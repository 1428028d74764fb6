"""Fetch Kafka's jars with jgo: ``python -m edgeway.embedded.resolve CACHE VERSION JAVA``.

A process of its own: jgo has no cancellation, and the certificates for requests can only be chosen by an
environment variable. Needs neither Maven nor a system Java; jgo is never asked to fetch one.
"""

import fcntl
import os
import re
import sys
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from edgeway.embedded import priming
from edgeway.embedded.errors import EmbeddedKafkaError
from edgeway.embedded.jars import Jars, archive_file, cached, manifest_file
from edgeway.embedded.maven import certificate_bundle, repositories
from edgeway.embedded.settings import SCALA_VERSION

if TYPE_CHECKING:
    from jgo.maven import Dependency, MavenContext

ATTEMPTS = 3
REQUEST_TIMEOUT = 60  # seconds without an answer from the repository
DOWNLOADS = 6


def binding(versions: dict[str, str]) -> str:
    """Coordinate of the logging binding that fits the resolved artifacts (artifact id -> version).

    Kafka depends on the slf4j interface but brings no binding: its log would be empty.

    Raises:
        EmbeddedKafkaError: Kafka no longer logs by slf4j and log4j.
    """
    log4j, slf4j = versions.get("log4j-core"), versions.get("slf4j-api")
    if log4j is None or slf4j is None:
        raise EmbeddedKafkaError(
            f"this Kafka brings log4j-core {log4j} and slf4j-api {slf4j}: both are needed"
        )
    artifact = "log4j-slf4j-impl" if slf4j.startswith("1.") else "log4j-slf4j2-impl"
    return f"org.apache.logging.log4j:{artifact}:{log4j}"


def without_secrets(text: str) -> str:
    """The text with user and password of every URL replaced: jgo's errors quote repositories whole."""
    return re.sub(r"(\w+://)[^/@\s]+@", r"\1***@", text)


def broken(path: Path) -> bool:
    """Whether a jar or POM is damaged, as an interrupted download leaves it."""
    try:
        if path.suffix == ".jar":
            with zipfile.ZipFile(path) as archive:
                return archive.testzip() is not None
        ElementTree.parse(path)
    except (OSError, zipfile.BadZipFile, ElementTree.ParseError):
        return True
    return False


def sweep(repository: Path) -> None:
    """Remove damaged files from our own repository: jgo takes whatever exists for complete."""
    for pattern in ("*.jar", "*.pom"):
        for path in repository.rglob(pattern):
            if broken(path):
                path.unlink()


def fetch(context: "MavenContext", version: str) -> list[Path]:
    """Resolve and download everything that Kafka needs at run time.

    Raises:
        EmbeddedKafkaError: a jar is damaged.
    """
    kafka = context.create_dependency(f"org.apache.kafka:kafka_{SCALA_VERSION}:{version}")
    own, others = context.resolver.resolve([kafka])
    needed: list[Dependency] = [*own, *(d for d in others if d.scope in ("compile", "runtime"))]
    versions = {d.artifactId: d.version for d in needed}
    needed.append(context.create_dependency(binding(versions)))
    with ThreadPoolExecutor(DOWNLOADS) as pool:
        paths = list(pool.map(lambda d: Path(d.artifact.resolve()), needed))
    for path in paths:
        if broken(path):
            raise EmbeddedKafkaError(f"{path} is damaged: remove it")
    return paths


def download(cache: Path, version: str) -> list[Path]:
    """Fetch with retries into ``CACHE/maven``; at first also from the user's Maven repository, read only."""
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL, default_maven_repo
    from jgo.maven import MavenContext

    maven = Path.home() / ".m2"
    remote = repositories(
        os.environ, maven / "settings.xml", GlobalSettings.load().repositories, MAVEN_CENTRAL_URL
    )
    for attempt in range(ATTEMPTS):
        users = default_maven_repo()
        context = MavenContext(
            repo_cache=cache / "maven",
            local_repos=[users] if attempt == 0 and users.is_dir() else [],
            remote_repos=remote,
            timeout=REQUEST_TIMEOUT,
        )
        try:
            return fetch(context, version)
        except Exception as exc:  # jgo raises RuntimeError, AssertionError, ParseError and those of requests.
            if attempt == ATTEMPTS - 1:
                raise EmbeddedKafkaError(f"{type(exc).__name__}: {exc}") from exc
            sweep(cache / "maven")
            time.sleep(2.0 * attempt)
    raise AssertionError("unreachable")


def main(arguments: Sequence[str]) -> int:
    cache, version, java = Path(arguments[0]), arguments[1], Path(arguments[2])
    if bundle := certificate_bundle(os.environ):
        os.environ["REQUESTS_CA_BUNDLE"] = bundle
    with (cache / f"kafka-{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if cached(cache, version):
            return 0  # Another process fetched them while this one waited.
        try:
            paths = [str(path.resolve()) for path in download(cache, version)]
            bootstrap = priming.checkpoint(java, paths)
        except EmbeddedKafkaError as exc:
            sys.stderr.write(f"{without_secrets(str(exc))}\n")
            return 1
        except ImportError as exc:
            sys.stderr.write(f"{exc}: run `pip install 'edgeway[embedded]'`\n")
            return 1
        priming.archive(java, paths, archive_file(cache, version))
        found = Jars(version, {path: Path(path).stat().st_size for path in paths}, bootstrap)
        part = cache / f".kafka-{version}.json.part"
        part.write_text(found.to_json(), encoding="utf-8")
        part.replace(manifest_file(cache, version))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
