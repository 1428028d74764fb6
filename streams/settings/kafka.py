"""The settings of the connection to Kafka."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from streams.settings import kinds
from streams.settings.about import setting
from streams.settings.kinds import Secret

DEFAULT_KAFKA = "127.0.0.1:9092"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """How Kafka is reached; the first of all Settings."""

    kafka: str | None = setting(
        None,
        kinds.ADDRESS,
        "kafka",
        f"Kafka's bootstrap addresses; `up` starts its own Kafka without it, the others ask {DEFAULT_KAFKA}",
    )
    security_protocol: str = setting(
        "PLAINTEXT",
        kinds.choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", fold=str.upper),
        "kafka",
        "how to talk to Kafka",
    )
    sasl_mechanism: str = setting(
        "PLAIN",
        kinds.choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", fold=str.upper),
        "kafka",
        "how to log in",
    )
    sasl_username: str | None = setting(None, kinds.TEXT, "kafka", "user name for SASL")
    sasl_password: Secret | None = setting(
        None,
        kinds.SECRET,
        "kafka",
        "password for SASL; no flag, so that no process list shows it",
        flag=False,
    )
    sasl_password_file: Path | None = setting(
        None, kinds.FILE, "kafka", "file whose first line is the password for SASL"
    )
    ssl_cafile: Path | None = setting(
        None, kinds.FILE, "kafka", "certificates to trust (PEM); without it those of the system"
    )
    ssl_certfile: Path | None = setting(None, kinds.FILE, "kafka", "own certificate (PEM), for mutual TLS")
    ssl_keyfile: Path | None = setting(None, kinds.FILE, "kafka", "key of the own certificate (PEM)")
    ssl_check_hostname: bool = setting(
        True, kinds.BOOLEAN, "kafka", "whether the certificate must name the broker's host"
    )
