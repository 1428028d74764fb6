"""What a caller may choose about an embedded broker."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edgeway.embedded.errors import UnusableSetting

KAFKA_VERSION = "4.1.1"
SCALA_VERSION = "2.13"
MESSAGE_MAX_BYTES = 2 * 1024 * 1024 + 64 * 1024


def kafka_version() -> str:
    """Version of Apache Kafka to run: ``EDGEWAY_KAFKA_VERSION``, else the tested default."""
    return os.environ.get("EDGEWAY_KAFKA_VERSION") or KAFKA_VERSION


@dataclass(frozen=True)
class BrokerSettings:
    """Settings of an `EmbeddedKafka`.

    Attributes:
        data: folder kept between runs; None is a temporary folder, removed at the stop.
        port: client port of the first broker (the others take the next ones); None chooses free ports.
        brokers: 1 or 3; each is broker and controller. Three replicate everything, two must be in sync.
        version: of Apache Kafka, 4.0.0 or later.
        message_max_bytes: largest record batch the broker accepts, in bytes.
        heap_mb: Java heap of each broker in MiB; None is 512 for one broker, 320 for each of three.
        long_lived: whether Java compiles fully what runs often: half the CPU a record once warm, which takes
            some 20 s of load; otherwise the first compiler alone, for a quick start.
        start_timeout: seconds until all brokers must know each other, fetching the jars not counted.
        stop_timeout: seconds for a clean stop before SIGKILL.
        fetch_timeout: seconds for the first download of the jars (about 45 MB).
        properties: further lines of ``server.properties``; they win over ours.
        listeners: further listeners of a single broker, each name with its security protocol and port; what
            they need (certificates, users) stands in `properties`.

    Raises:
        UnusableSetting: a value is out of range.
    """

    data: Path | None = None
    port: int | None = None
    brokers: int = 1
    version: str = field(default_factory=kafka_version)
    message_max_bytes: int = MESSAGE_MAX_BYTES
    heap_mb: int | None = None
    long_lived: bool = False
    start_timeout: float = 60.0
    stop_timeout: float = 15.0
    fetch_timeout: float = 900.0
    properties: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.brokers not in (1, 3):
            raise UnusableSetting(f"brokers is {self.brokers}: an embedded Kafka has 1 or 3 brokers")
        if self.listeners and self.brokers != 1:
            raise UnusableSetting("only a single embedded broker takes further listeners")
        if self.port is not None and not 1 <= self.port <= 65536 - self.brokers:
            raise UnusableSetting(f"port {self.port} is out of range: give 1 to {65536 - self.brokers}")
        if not 1024 <= self.message_max_bytes <= 2**31 - 1:
            raise UnusableSetting(f"message_max_bytes {self.message_max_bytes} is not within 1 KiB to 2 GiB")
        if self.heap_mb is not None and self.heap_mb < 128:
            raise UnusableSetting(f"heap_mb {self.heap_mb} is too small: a broker needs 128 MiB")

    @property
    def heap(self) -> int:
        """Java heap of each broker, MiB."""
        return self.heap_mb or (512 if self.brokers == 1 else 320)
