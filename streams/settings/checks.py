"""Settings that do not go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streams.claims.names import base_of, overlap
from streams.settings.model import flag_of


def conflicts(values: Mapping[str, Any], origins: Mapping[str, str]) -> list[str]:
    """One line for each pair that cannot be used together; `origins` says where a setting was given."""
    return [f"{_where(names, origins)}: {text}" for names, text in _conflicts(values)]


def _where(names: tuple[str, ...], origins: Mapping[str, str]) -> str:
    return " and ".join(origins.get(name, f"{flag_of(name)} (default)") for name in names)


def _conflicts(v: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    yield from _security(v)
    local, cloud = v["objects"], v["cloud_objects"]
    if local is not None and cloud is not None and overlap(base_of(local), base_of(cloud)):
        yield (
            ("objects", "cloud_objects"),
            "one lies in the other, so what is kept at the edge would lie in the cloud; give two places",
        )
    if v["heartbeat_ms"] * 3 > v["session_timeout_ms"]:
        yield (
            ("heartbeat_ms", "session_timeout_ms"),
            f"a heartbeat every {v['heartbeat_ms']} ms is too rare; give at most a third of the session",
        )
    if v["commit_ms"] * 4 > v["session_timeout_ms"]:
        yield (
            ("commit_ms", "session_timeout_ms"),
            # Timers speak only after a commit younger than half the session.
            f"a commit every {v['commit_ms']} ms is too rare; give at most a quarter of the session",
        )
    if v["drain_s"] > v["stop_s"]:
        yield (
            ("drain_s", "stop_s"),
            f"a rebalance may not wait ({v['drain_s']:g} s) longer than a stop ({v['stop_s']:g} s)",
        )
    if v["batch_records"] > v["window_records"]:
        yield (
            ("batch_records", "window_records"),
            f"a batch of {v['batch_records']} does not fit a window of {v['window_records']} records",
        )


def _security(v: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    protocol = v["security_protocol"]
    if protocol.startswith("SASL"):
        for name in ("sasl_username", "sasl_password"):
            if v[name] is None:
                also = ", EDGEWAY_SASL_PASSWORD or --sasl-password-file" if name == "sasl_password" else ""
                yield ("security_protocol",), f"{protocol} needs {name}{also}"
    elif v["sasl_username"] is not None or v["sasl_password"] is not None:
        name = "sasl_username" if v["sasl_username"] is not None else "sasl_password"
        yield (
            (name, "security_protocol"),
            f"{protocol} has no login; give security_protocol SASL_SSL or SASL_PLAINTEXT",
        )
    for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
        if v[name] is not None and not protocol.endswith("SSL"):
            yield (
                (name, "security_protocol"),
                f"{protocol} has no certificates; give security_protocol SSL or SASL_SSL",
            )
    if v["ssl_keyfile"] is not None and v["ssl_certfile"] is None:
        yield ("ssl_keyfile",), "a key needs its certificate; give ssl_certfile"
