"""Kinds of values: how the text of a flag, a variable or a TOML value becomes a setting, and what is refused.

A kind's `read` takes a string (flags, variables) or what TOML holds; its ValueError says the mend.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_SIZES = {"": 1, "b": 1, "kb": 1000, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_TIMES = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SCALED = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})")

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")


class Secret:
    """A text that never shows itself: not in repr, str, logs or dataclasses.asdict. `reveal` gives it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __deepcopy__(self, _memo: object) -> Secret:
        return self


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: its name in the documentation, the placeholder in help, and its reader."""

    name: str
    metavar: str
    read: Callable[[Any], Any]
    choices: tuple[str, ...] = ()


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("give a text that is not empty")
    return value.strip()


def _address(value: Any) -> str:
    text = _text(value)
    text = text.removeprefix("kafka://").rstrip("/")
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        found = _HOST.fullmatch(part)
        if found is None or not 1 <= int(found[2]) <= 65535:
            raise ValueError(
                f"{part!r} is no HOST:PORT; give for example 127.0.0.1:9092 or kafka://a:9092,b:9092"
            )
    if not parts:
        raise ValueError("give HOST:PORT[,HOST:PORT...]")
    return ",".join(parts)


def _redis(value: Any) -> str | None:
    text = _text(value)
    if text == "memory":
        return None
    if not re.match(r"(rediss?|unix)://.", text):
        raise ValueError("give redis://HOST:PORT/DB, rediss://..., unix://PATH, or memory")
    if not _is_understood(text):
        raise ValueError(
            "this URL cannot be used: see its host, port and options; in a password write / # ? @ : % and "
            "spaces as %2F %23 %3F %40 %3A %25 %20"
        )
    return text


def _is_understood(url: str) -> bool:
    # The client reads a URL when a role connects, and half of its complaints hold the password.
    from redis.asyncio import ConnectionPool

    try:
        ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError):
        return False
    return True


def _url(value: Any) -> str:
    text = _text(value)
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise ValueError("give http://HOST:PORT or https://HOST:PORT, without user name and password")
    return text


def _path(value: Any) -> Path:
    return Path(_text(value)).expanduser()


def _file(value: Any) -> Path:
    path = _path(value)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def _objects(value: Any) -> str:
    from streams.claims.errors import ClaimError
    from streams.claims.names import base_of

    text = _text(value)
    url = text if "://" in text else Path(text).expanduser().absolute().as_uri()
    try:
        base_of(url)
    except ClaimError as error:
        raise ValueError(str(error)) from None
    return url


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    known = {
        "yes": True,
        "true": True,
        "1": True,
        "on": True,
        "no": False,
        "false": False,
        "0": False,
        "off": False,
    }
    try:
        return known[_text(value).lower()]
    except KeyError:
        raise ValueError("give yes or no") from None


def _names(value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else _text(value).split(",")
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("give names")
    return tuple(part.strip() for part in parts if part.strip())


def _capabilities(value: Any) -> tuple[str, ...]:
    names = _names(value)
    for name in names:
        side, _, rest = name.partition("/")
        if side not in ("local", "cloud") or not rest:
            raise ValueError(
                f"{name!r} is no capability of a side; give for example local/nlp/intent or cloud/nlp/intent"
            )
    return names


def _origins(value: Any) -> tuple[str, ...]:
    names = _names(value)
    for name in names:
        if name != "*" and not _ORIGIN.fullmatch(name):
            raise ValueError(f"{name!r} is no origin; give for example https://app.example.com, or * for all")
    return tuple(name.lower() for name in names)


def _secret(value: Any) -> Secret:
    return Secret(_text(value))


def integer(low: int, high: int) -> Kind:
    """A whole number in [low, high]."""

    def read(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"[+-]?\d[\d_]*", value.strip()):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"give a whole number from {low} to {high}")
        return value

    return Kind("number", "N", read)


def size(low: int, high: int) -> Kind:
    """A number of bytes in [low, high], also with a unit (`64MiB`)."""

    def read(value: Any) -> int:
        count = _scaled(value, _SIZES, "")
        if count is None or not low <= count <= high:
            raise ValueError(f"give bytes from {low} to {high}, also as 64MiB or 512KiB")
        return int(count)

    return Kind("bytes", "BYTES", read)


def milliseconds(low: int, high: int) -> Kind:
    """A duration in whole milliseconds in [low, high], also with a unit (`6s`)."""

    def read(value: Any) -> int:
        count = _scaled(value, _TIMES, "ms")
        if count is None or not low <= count <= high:
            raise ValueError(f"give milliseconds from {low} to {high}, also as 500ms or 6s")
        return int(count)

    return Kind("milliseconds", "MS", read)


def seconds(low: float, high: float) -> Kind:
    """A duration in seconds in [low, high], also with a unit (`500ms`)."""

    def read(value: Any) -> float:
        count = _scaled(value, _TIMES, "s")
        if count is None or not low * 1000 <= count <= high * 1000:
            raise ValueError(f"give seconds from {low:g} to {high:g}, also as 500ms or 2m")
        return count / 1000

    return Kind("seconds", "S", read)


def choice(*options: str, fold: Callable[[str], str] = str.lower) -> Kind:
    """One of `options`, upper or lower case alike."""

    def read(value: Any) -> str:
        if isinstance(value, bool) and {"yes", "no"} <= set(options):
            value = "yes" if value else "no"
        text = fold(_text(value))
        if text not in options:
            raise ValueError(f"give one of {', '.join(options)}")
        return text

    return Kind(
        " or ".join(options), options[0].upper() if len(options) == 1 else "|".join(options), read, options
    )


def ratio() -> Kind:
    """A number from 0 to 1."""

    def read(value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise ValueError("give a number from 0 to 1, such as 0.05") from error
        if isinstance(value, bool) or not 0.0 <= number <= 1.0:
            raise ValueError("give a number from 0 to 1, such as 0.05")
        return number

    return Kind("number from 0 to 1", "RATIO", read)


def duration_ms(text: str) -> int:
    """A duration with a unit (`10m`, `1h`, `90s`) in milliseconds; a bare number is seconds.

    Raises:
        ValueError: it is none.
    """
    count = _scaled(text, _TIMES, "s")
    if count is None:
        raise ValueError(f"{text!r} is no duration; give for example 30s, 10m or 1h")
    return int(count)


def _scaled(value: Any, units: dict[str, int], bare: str) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value * units[bare]
    found = _SCALED.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    unit = units.get(found[2].lower() or bare)
    return None if unit is None else float(found[1]) * unit


TEXT = Kind("text", "TEXT", _text)
ADDRESS = Kind("address", "HOST:PORT[,...]", _address)
REDIS = Kind("URL", "URL", _redis)
URL = Kind("URL", "URL", _url)
PATH = Kind("path", "PATH", _path)
FILE = Kind("file", "FILE", _file)
OBJECTS = Kind("URL or folder", "URL", _objects)
BOOLEAN = Kind("yes or no", "yes|no", _boolean, ("yes", "no"))
NAMES = Kind("names", "NAME,...", _names)
CAPABILITIES = Kind("names", "SIDE/NAME,...", _capabilities)
ORIGINS = Kind("names", "ORIGIN,...", _origins)
SECRET = Kind("secret", "SECRET", _secret)
