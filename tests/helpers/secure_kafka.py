"""A Kafka that asks for TLS and a login, with an authority of its own."""

from __future__ import annotations

import hashlib
import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import serialization

from edgeway.embedded import BrokerSettings, EmbeddedKafka
from edgeway.embedded.ports import free_ports

USER, PASSWORD = "alice", "wonder/land: 1%"
ITERATIONS = 4096
_SHA_512 = 2
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True)
class SecureKafka:
    """Where each listener is, and the files of its clients. `plain` needs nothing, for looking behind."""

    plain: str
    login: str
    mutual: str
    cafile: Path
    certfile: Path
    keyfile: Path
    wrong_cafile: Path

    def settings(self, mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
        """What a client with a password is given."""
        return {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "sasl_username": USER,
            "sasl_password": PASSWORD,
            "ssl_cafile": self.cafile,
        }

    def mutual_settings(self) -> dict[str, Any]:
        """What a client with a certificate is given."""
        return {
            "security_protocol": "SSL",
            "ssl_cafile": self.cafile,
            "ssl_certfile": self.certfile,
            "ssl_keyfile": self.keyfile,
        }


@contextmanager
def secure_kafka(folder: Path) -> Iterator[SecureKafka]:
    """One broker with a listener for each of plain text, TLS with a login, and TLS with a certificate."""
    login, mutual = free_ports(2, random.Random())
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1", "localhost")
    client = authority.issue_cert("alice@example.org")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().cert_pem.write_to_path(folder / "other-ca.pem")
    chain = b"".join(pem.bytes() for pem in server.cert_chain_pems)
    (folder / "server.pem").write_bytes(_pkcs8(server.private_key_pem.bytes()) + chain)
    client.private_key_pem.write_to_path(folder / "client.key")
    for pem in client.cert_chain_pems:
        pem.write_to_path(folder / "client.pem", append=True)
    settings = BrokerSettings(
        properties=_properties(folder), listeners={"LOGIN": ("SASL_SSL", login), "MUTUAL": ("SSL", mutual)}
    )
    kafka = EmbeddedKafka(settings)
    kafka.start_sync()
    try:
        host, _, port = kafka.bootstrap.partition(":")
        add_scram_user(host, int(port), USER, PASSWORD)
        files = [folder / name for name in ("ca.pem", "client.pem", "client.key", "other-ca.pem")]
        yield SecureKafka(kafka.bootstrap, f"{host}:{login}", f"{host}:{mutual}", *files)
    finally:
        kafka.stop_sync()


def _properties(folder: Path) -> dict[str, str]:
    users = f'user_{USER}="{PASSWORD}"'
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.login.plain.sasl.jaas.config": f"{_PLAIN} required {users};",
        "listener.name.login.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
    }


def _pkcs8(key: bytes) -> bytes:
    """A private key in the one form that Kafka reads."""
    return serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def add_scram_user(host: str, port: int, name: str, password: str) -> None:
    """Give a user a SCRAM-SHA-512 password: AlterUserScramCredentials, version 0 (Kafka protocol guide)."""
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ITERATIONS)
    user = (
        _compact(name.encode()) + struct.pack(">bi", _SHA_512, ITERATIONS) + _compact(salt) + _compact(salted)
    )
    # Header: key, version, correlation, client id, tags. Body: no deletions, one upsertion, tags.
    head = struct.pack(">hhih", 51, 0, 1, -1) + b"\0"
    body = b"\x01" + b"\x02" + user + b"\0" + b"\0"
    with socket.create_connection((host, port), timeout=10) as link:
        link.sendall(struct.pack(">i", len(head + body)) + head + body)
        with link.makefile("rb") as reader:
            (length,) = struct.unpack(">i", reader.read(4))
            answer = reader.read(length)
    # Header: correlation, tags. Body: throttle time, results: name, error code.
    at = 4 + 1 + 4 + 1 + 1 + len(name)
    (error,) = struct.unpack_from(">h", answer, at)
    assert error == 0, answer


def _compact(value: bytes) -> bytes:
    assert len(value) < 127
    return bytes([len(value) + 1]) + value
