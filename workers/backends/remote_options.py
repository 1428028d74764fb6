"""The options of remote backends, as cards and apps give them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httpx

from workers.backends.remote_wire import USUAL, Limits, url_of
from workers.errors import LoadError

_SECONDS = (0.01, 600.0)
_BYTES = (1, 64 * 1024 * 1024)
_ATTEMPTS = (1, 10)


_SECRET = re.compile(r"(?:key|token|secret|password|passwd|pwd|signature|^sig|^auth)$")


def url_without_key(capability: str, text: str) -> httpx.URL:
    """The URL in an option.

    Raises:
        LoadError: none of http or https, or one that holds a key; the message does not quote it.
    """
    url = url_of(capability, text)
    if url.userinfo:
        raise LoadError(
            f"{capability}: the option url holds a password; keys come from the environment or a file alone"
        )
    for name in url.params:
        if _SECRET.search(re.sub(r"[^a-z]", "", name.lower())):
            raise LoadError(
                f"{capability}: the option url holds {name!r} in its query; keys come from the environment "
                "or a file alone, as headers"
            )
    return url


class Options:
    """Reads options one by one; `end` refuses those that nobody read."""

    def __init__(self, capability: str, kind: str, given: Mapping[str, Any]) -> None:
        self._label = f"{capability}: the {kind} backend's option"
        self._given = dict(given)
        self._known: set[str] = set()

    def text(self, name: str) -> str | None:
        value = self._take(name, str, "text")
        if value == "":
            raise LoadError(f"{self._label} {name} is empty")
        return value  # type: ignore[no-any-return]

    def number(self, name: str, usual: float, least: float, most: float) -> float:
        value = self._take(name, (int, float), "a number")
        if value is None:
            return usual
        if not least <= value <= most:
            raise LoadError(f"{self._label} {name} is {value}; give {least:g} to {most:g}")
        return float(value)

    def count(self, name: str, usual: int, least: int, most: int) -> int:
        value = self.number(name, usual, least, most)
        if value != int(value):
            raise LoadError(f"{self._label} {name} is {value}; give a whole number")
        return int(value)

    def flag(self, name: str, *, usual: bool = False) -> bool:
        if isinstance(value := self._given.get(name), bool):
            self._known.add(name)
            return value
        self._take(name, (), "true or false")
        return usual

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._take(name, (list, tuple), "a list of texts") or ()
        if not all(isinstance(text, str) for text in found):
            raise LoadError(f"{self._label} {name} is no list of texts")
        return tuple(found)

    def texts_by_name(self, name: str) -> dict[str, str]:
        found = self.mapping(name)
        if not all(isinstance(text, str) for text in found.values()):
            raise LoadError(f"{self._label} {name} maps something to what is no text")
        return found

    def mapping(self, name: str) -> dict[str, Any]:
        found = self._take(name, (dict, Mapping), "a mapping") or {}
        if not all(isinstance(key, str) for key in found):
            raise LoadError(f"{self._label} {name} maps something that is no text")
        return dict(found)

    def limits(self, usual: Limits = USUAL) -> Limits:
        """`timeout_s`, `connect_s`, `max_request_bytes`, `max_answer_bytes`, `attempts`, `redirect_hosts`,
        `ca_file`, `idempotent`.
        """
        return Limits(
            timeout_s=self.number("timeout_s", usual.timeout_s, *_SECONDS),
            connect_s=self.number("connect_s", usual.connect_s, *_SECONDS),
            request_bytes=self.count("max_request_bytes", usual.request_bytes, *_BYTES),
            answer_bytes=self.count("max_answer_bytes", usual.answer_bytes, *_BYTES),
            attempts=self.count("attempts", usual.attempts, *_ATTEMPTS),
            hosts=self.texts("redirect_hosts"),
            ca_file=self.text("ca_file"),
            idempotent=self.flag("idempotent"),
        )

    def end(self) -> None:
        """Raises LoadError where an option is none of those read."""
        if unknown := sorted(set(self._given) - self._known):
            known = ", ".join(sorted(self._known))
            raise LoadError(f"{self._label}s do not include {', '.join(unknown)}; they are {known}")

    def _take(self, name: str, kinds: Any, wanted: str) -> Any:
        self._known.add(name)
        value = self._given.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
            raise LoadError(f"{self._label} {name} is a {type(value).__name__}; give {wanted}")
        return value
