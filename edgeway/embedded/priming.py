"""What is prepared once per Kafka version: the formatter's checkpoint and a class data archive."""

import logging
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from edgeway.embedded.errors import EmbeddedKafkaError
from edgeway.embedded.metadata import known_brokers
from edgeway.embedded.ports import choose_nodes
from edgeway.embedded.process import BrokerProcess
from edgeway.embedded.properties import HOST, LOG4J2, java_command, meta_properties, render, server_properties
from edgeway.embedded.settings import BrokerSettings
from edgeway.embedded.storage import kafka_uuid

TOOL_TIMEOUT = 120.0
TRAINING_TIMEOUT = 60.0

_log = logging.getLogger(__name__)


def checkpoint(java: Path, jars: Sequence[str]) -> bytes:
    """``bootstrap.checkpoint`` as Kafka's StorageTool writes it: the feature levels of this version.

    It holds nothing of the cluster, so that later folders are formatted without starting Java for it.

    Raises:
        EmbeddedKafkaError: the tool failed.
    """
    with tempfile.TemporaryDirectory(prefix="edgeway-format-") as name:
        folder = Path(name)
        properties, log4j2, _ = _files(folder)
        command = [str(java), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [f"-Dlog4j2.configurationFile={log4j2}", "-cp", ":".join(jars), "kafka.tools.StorageTool"]
        command += ["format", "--cluster-id", kafka_uuid(), "--config", str(properties)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT, check=False)
            return (folder / "data" / "bootstrap.checkpoint").read_bytes()
        except subprocess.TimeoutExpired as exc:
            raise EmbeddedKafkaError(f"Kafka's StorageTool took more than {TOOL_TIMEOUT:.0f} s") from exc
        except OSError as exc:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-8:])
            raise EmbeddedKafkaError(f"Kafka's StorageTool wrote no checkpoint: {said}") from exc


def archive(java: Path, jars: Sequence[str], target: Path) -> None:
    """Class data archive (`java -Xshare:dump`) of the classes that a broker loads at its start.

    Only for speed (the start took 3.0 s without and 1.6 s with it): a failure is logged and leaves none.
    """
    target.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="edgeway-archive-") as name:
        folder = Path(name)
        classes, part = folder / "classes.txt", folder / "kafka.jsa"
        dump = [str(java), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedClassListFile={classes}"]
        dump += [f"-XX:SharedArchiveFile={part}", "-cp", ":".join(jars)]
        try:
            _train(java, jars, folder, classes)
            done = subprocess.run(dump, capture_output=True, timeout=TOOL_TIMEOUT, check=False)
            if done.returncode == 0:
                fresh = target.with_suffix(".part")
                fresh.write_bytes(part.read_bytes())
                fresh.replace(target)
            else:
                _log.warning("no class data archive: java -Xshare:dump ended with %d", done.returncode)
        except (OSError, subprocess.TimeoutExpired, EmbeddedKafkaError) as exc:
            _log.warning("no class data archive: %s", exc)


def _files(folder: Path) -> tuple[Path, Path, int]:
    """Configuration of a single throw-away broker: properties, logging, client port."""
    nodes = choose_nodes(1, None, random.Random())
    properties, log4j2 = folder / "server.properties", folder / "log4j2.properties"
    lines = server_properties(nodes[0], nodes, str(folder / "data"), BrokerSettings())
    properties.write_text(render(lines), encoding="utf-8")
    log4j2.write_text(LOG4J2, encoding="utf-8")
    return properties, log4j2, nodes[0].client_port


def _train(java: Path, jars: Sequence[str], folder: Path, classes: Path) -> None:
    """Run a broker in `folder` until it answers, so that it lists the classes it loads."""
    properties, log4j2, port = _files(folder)
    (folder / "data").mkdir()
    meta = meta_properties(kafka_uuid(), kafka_uuid(), 1)
    (folder / "data" / "meta.properties").write_text(meta, encoding="utf-8")
    command = java_command(str(java), jars, 512, str(log4j2), str(properties))
    command.insert(1, f"-XX:DumpLoadedClassList={classes}")
    child = BrokerProcess(command, folder / "training.log")
    try:
        deadline = time.monotonic() + TRAINING_TIMEOUT
        while not known_brokers(HOST, port, 1.0):
            if not child.alive or time.monotonic() >= deadline:
                raise EmbeddedKafkaError("the broker did not start")
            time.sleep(0.1)
        child.signal(signal.SIGTERM)
        child.wait(TRAINING_TIMEOUT)
    finally:
        child.kill()
