"""Keys of remote services: from the environment or a file alone, never from a card."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from workers.errors import LoadError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_LONGEST = 16 * 1024


class Key(NamedTuple):
    """Where the value of a secret header stands: an environment variable or a file, and what goes before."""

    env: str = ""
    file: str = ""
    prefix: str = ""

    def read(self) -> str:
        """The value, without blanks around it. A file is read anew each time: it may be replaced.

        Raises:
            LoadError: it is not there, empty, or no header value; the message names the place alone.
        """
        if self.env:
            place, text = f"the environment variable {self.env}", os.environ.get(self.env)
        else:
            place, text = f"the file {Path(self.file).name}", _text(self.file)
        if text is None:
            raise LoadError(f"its key is not there: set {place}")
        text = text.strip()
        if not _VALUE.fullmatch(text) or len(text) > _LONGEST:
            raise LoadError(f"its key cannot be sent: {place} holds none, or more than one line of ASCII")
        return self.prefix + text


class Keys:
    """Secret headers by name."""

    def __init__(self, keys: Mapping[str, Key] | None = None) -> None:
        self.keys = {name.lower(): key for name, key in (keys or {}).items()}
        for name in self.keys:
            if not is_header(name):
                raise LoadError(f"{name!r} is no name of a header")

    def headers(self) -> dict[str, str]:
        """Raises LoadError as `Key.read`."""
        return {name: key.read() for name, key in self.keys.items()}


def is_header(name: str, value: str = "x") -> bool:
    """Whether this can be sent as a header."""
    return bool(_NAME.fullmatch(name) and _VALUE.fullmatch(value))


def bearer(env: str = "", file: str = "") -> Keys:
    """`Authorization: Bearer ...`, nothing where neither is given.

    Raises:
        LoadError: both are given.
    """
    if env and file:
        raise LoadError("give key_env or key_file, not both")
    return Keys({"authorization": Key(env, file, "Bearer ")} if env or file else None)


def _text(file: str) -> str | None:
    try:
        with Path(file).open(encoding="utf-8") as opened:
            return opened.read(_LONGEST + 2)
    except (OSError, UnicodeDecodeError):
        return None
