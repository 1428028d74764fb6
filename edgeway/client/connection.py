"""Where a client connects: a URL and keyword arguments, by the names of the settings. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from edgeway.errors import UsageError
from streams.settings import Secret, Settings, SettingsError, flag_of, resolve, variable_of
from streams.settings.model import TABLE

PORT = 9092
KAFKA_NAMES = tuple(name for name, about in TABLE.items() if about.group == "kafka" and name != "kafka")
"""The settings that a URL of Kafka takes behind its `?`, and a client as keyword arguments."""
_SCHEMES = {"kafka": None, "kafka+ssl": "SSL", "kafka+sasl": "SASL_PLAINTEXT", "kafka+sasl_ssl": "SASL_SSL"}
_TLS_NAMES = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname")
_FORM = "kafka://HOST:PORT[,HOST:PORT...], kafka+ssl://..., http://HOST:PORT or https://..."
_FLAGS = sorted(((flag_of(name), name) for name in TABLE), key=lambda pair: -len(pair[0]))


class Address(NamedTuple):
    """Where to, without a secret: `shown` may be printed. `settings` holds the rest; TLS also for https."""

    kind: Literal["kafka", "http"]
    shown: str
    settings: Settings


def address_of(url: str | None, given: Mapping[str, Any], env: Mapping[str, str]) -> Address:
    """What `url` and the keyword arguments say, the latter before the former, both before EDGEWAY_*.

    Raises:
        UsageError: they make no address; no secret stands in the text.
    """
    if not isinstance(url, str | None):
        raise UsageError(f"a URL is a text, not {type(url).__name__}; give {_FORM}")
    scheme, _, rest = (url or "kafka:").partition(":")
    if scheme in ("http", "https") and rest.startswith("//"):
        return _http(str(url), given)
    said = _known(given, KAFKA_NAMES, "argument")
    if url is not None:
        said = _kafka_url(url) | said
    found = {name: value for name in ("kafka", *KAFKA_NAMES) if (value := env.get(variable_of(name)))}
    settings = _settings({**found, **said})
    return Address("kafka", f"kafka://{settings.bootstrap}", settings)


def token_of(token: Any) -> Secret | None:
    """A bearer token as it may stand in a header; one read from a file may end in a line break.

    Raises:
        UsageError: it cannot be one. What cannot be sent must fail here: an HTTP library quotes the header.
    """
    if token is None:
        return None
    bare = token.strip() if isinstance(token, str) else ""
    if not bare or not bare.isascii() or not bare.isprintable() or " " in bare:
        raise UsageError("the token is none: it is empty, or holds blanks or what is no printable ASCII")
    return Secret(bare)


def _settings(values: Mapping[str, Any]) -> Settings:
    try:
        return resolve({name: _text(value) for name, value in values.items()}, {})
    except SettingsError as exc:
        lines = []
        for line in exc.problems:
            for flag, name in _FLAGS:
                line = line.replace(flag, name)
            lines.append(line)
        raise UsageError("\n".join(lines)) from None


def _text(value: Any) -> Any:
    return value if isinstance(value, str | bool) or value is None else str(value)


def _known(given: Mapping[str, Any], names: tuple[str, ...], what: str) -> dict[str, Any]:
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1, 0.6)
            mend = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise UsageError(f"{name!r} is no {what} of a connection; {mend}")
    return {name: value for name, value in given.items() if value is not None}


def _kafka_url(url: str) -> dict[str, Any]:
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "kafka", url
    if scheme not in _SCHEMES:
        raise UsageError(f"a URL of the scheme {scheme!r} names nothing to connect to; give {_FORM}")
    place, _, query = rest.partition("?")
    user, mark, hosts = place.rpartition("@")
    said: dict[str, Any] = {"kafka": _with_ports(hosts.strip("/"))}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise UsageError("what stands behind the ? of the URL is no NAME=VALUE&NAME=VALUE") from None
    said |= _known(dict(pairs), KAFKA_NAMES, "setting")
    if mark:
        name, colon, password = user.partition(":")
        said["sasl_username"] = unquote(name)
        if colon:
            said["sasl_password"] = unquote(password)
    protocol = _SCHEMES[scheme]
    if protocol == "SSL" and mark:
        protocol = "SASL_SSL"
    if protocol is not None:
        said.setdefault("security_protocol", protocol)
    return said


def _with_ports(hosts: str) -> str:
    parts = [part.strip() for part in hosts.split(",") if part.strip()]
    if not parts:
        raise UsageError(f"the URL names no host; give {_FORM}")
    return ",".join(part if re.search(r":\d+$", part) else f"{part}:{PORT}" for part in parts)


def _http(url: str, given: Mapping[str, Any]) -> Address:
    said = _known(given, _TLS_NAMES, "argument")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError("the URL has a host or port that cannot be read; give http://HOST:PORT") from None
    if not parts.hostname or not parts.hostname.isprintable() or " " in parts.hostname:
        raise UsageError("the URL of a gateway has no host that could be one; give http://HOST:PORT")
    if parts.query or parts.fragment:
        raise UsageError("the URL of a gateway is http://HOST:PORT[/PATH], without ? and #")
    if parts.username is not None or parts.password is not None:
        raise UsageError("the URL of a gateway holds no user or password: give token=...")
    if said and parts.scheme == "http":
        raise UsageError(f"{next(iter(said))} is for https:// only")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    # A protocol of the settings that has certificates, so that they are checked like those for Kafka.
    return Address("http", shown, _settings({**said, "security_protocol": "SSL"} if said else {}))
