"""The readiness question: a bare Kafka Metadata request, answered by the broker itself.

Aiokafka would do, but logs an error for every try while the broker is still starting.
"""

import socket
import struct

API_METADATA = 3
API_VERSION = 1
LIMIT = 1024 * 1024


def request(correlation: int) -> bytes:
    """Metadata request, version 1, about no topic (Kafka protocol guide), length prefix included."""
    client = b"edgeway-ready"
    head = struct.pack(">hhih", API_METADATA, API_VERSION, correlation, len(client)) + client
    body = head + struct.pack(">i", 0)
    return struct.pack(">i", len(body)) + body


def brokers(payload: bytes, correlation: int) -> frozenset[int]:
    """Node ids of the brokers in a version 1 response, its length prefix removed.

    Raises:
        ValueError: the bytes are no such response.
    """
    try:
        seen, count = struct.unpack_from(">ii", payload, 0)
        if seen != correlation:
            raise ValueError(f"answer to request {seen}, not {correlation}")
        offset = 8
        ids = set()
        for _ in range(count):
            (node, length) = struct.unpack_from(">ih", payload, offset)
            offset += 6 + length + 4
            (rack,) = struct.unpack_from(">h", payload, offset)
            offset += 2 + max(rack, 0)
            ids.add(node)
    except struct.error as exc:
        raise ValueError(f"truncated metadata response of {len(payload)} bytes") from exc
    return frozenset(ids)


def known_brokers(host: str, port: int, timeout: float) -> frozenset[int]:
    """Ask the broker at host:port which brokers it knows; empty while it does not answer.

    `timeout` (seconds) bounds each network step.
    """
    try:
        with socket.create_connection((host, port), timeout=timeout) as link:
            link.sendall(request(1))
            (length,) = struct.unpack(">i", _read(link, 4))
            if not 0 < length <= LIMIT:
                return frozenset()
            return brokers(_read(link, length), 1)
    except (OSError, ValueError):
        return frozenset()


def _read(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            raise ConnectionError("closed by the broker")
        data += part
    return data
