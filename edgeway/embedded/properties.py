"""Text of the files a broker reads at its start. Pure: no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgeway.embedded.settings import BrokerSettings

HOST = "127.0.0.1"
INTERNAL_PARTITIONS = 8

LOG4J2 = """\
status=warn
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %m (%c{1})%n
rootLogger.level=info
rootLogger.appenderRef.console.ref=console
logger.config.name=org.apache.kafka.common.config.AbstractConfig
logger.config.level=warn
"""


@dataclass(frozen=True, slots=True)
class Node:
    """One process: broker and controller. `number` counts from 1 and is Kafka's node id."""

    number: int
    client_port: int
    controller_port: int


def server_properties(
    node: Node, nodes: Sequence[Node], folder: str, settings: BrokerSettings
) -> dict[str, str]:
    """``server.properties`` of one node that keeps its log in `folder`.

    Names and defaults: Apache Kafka 4.1, broker configuration. Replication follows the number of nodes:
    3 replicas of which 2 in sync, or 1 and 1.
    """
    replicas = str(len(nodes))
    in_sync = "2" if len(nodes) > 1 else "1"
    voters = ",".join(f"{n.number}@{HOST}:{n.controller_port}" for n in nodes)
    size = str(settings.message_max_bytes)
    more = [(name, *at) for name, at in settings.listeners.items()]
    clients = ",".join(
        f"{name}://{HOST}:{port}" for name, _, port in [("PLAINTEXT", "", node.client_port), *more]
    )
    protocols = "".join(f",{name}:{protocol}" for name, protocol, _ in more)
    lines = {
        "process.roles": "broker,controller",
        "node.id": str(node.number),
        "controller.quorum.voters": voters,
        "listeners": f"{clients},CONTROLLER://{HOST}:{node.controller_port}",
        "advertised.listeners": clients,
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT{protocols}",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": folder,
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "log.message.timestamp.type": "LogAppendTime",
        "message.max.bytes": size,
        "replica.fetch.max.bytes": size,
        "group.initial.rebalance.delay.ms": "0",
        # A killed broker may register again only when its session has ended: 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "1000",
        # The cleaner takes its buffer from the heap at the start: 128 MiB by default.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        lines[f"{topic}.replication.factor"] = replicas
        lines[f"{topic}.num.partitions"] = str(INTERNAL_PARTITIONS)
    lines["transaction.state.log.min.isr"] = in_sync
    lines["share.coordinator.state.topic.min.isr"] = in_sync
    return {**lines, **settings.properties}


def render(lines: Mapping[str, str]) -> str:
    """Java properties text; backslashes and line breaks in values are escaped."""

    def escape(value: str) -> str:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")

    return "".join(f"{key}={escape(value)}\n" for key, value in lines.items())


def meta_properties(cluster_id: str, directory_id: str, number: int) -> str:
    """``meta.properties`` of a formatted folder, as Kafka's StorageTool writes it (version 1)."""
    return render(
        {"version": "1", "cluster.id": cluster_id, "node.id": str(number), "directory.id": directory_id}
    )


def java_command(
    java: str,
    jars: Sequence[str],
    heap_mb: int,
    log4j2: str,
    properties: str,
    archive: str | None = None,
    *,
    long_lived: bool = False,
) -> list[str]:
    """Command line of one broker. Serial collector and, unless `long_lived`, the first compiler only: quick
    start, small memory."""
    shared = [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"] if archive else []
    return [
        java,
        "-server",
        "-Xms64m",
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        *(() if long_lived else ("-XX:TieredStopAtLevel=1",)),
        "-XX:+ExitOnOutOfMemoryError",
        "--enable-native-access=ALL-UNNAMED",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={log4j2}",
        *shared,
        "-cp",
        ":".join(jars),
        "kafka.Kafka",
        properties,
    ]
