"""Where the bytes of an image or a file come from: the inputs, or a URL on the hosts of the rules."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from schemas.cards import Card
from schemas.messages import Failure
from schemas.rules import Rules
from workers.backends import Answer
from workers.backends.function import FunctionBackend, Load
from workers.errors import BadInput
from workers.library.fetch import Allowed, Fetcher, Unreachable

Look = Callable[[bytes, dict[str, Any], dict[str, Any]], Any]
"""The bytes, the inputs and the params to what a capability's function may return."""


class Source:
    """Reads `inputs[key]`, or fetches `inputs[key_url]`."""

    def __init__(self, key: str, fetcher: Fetcher | None = None) -> None:
        self._key = key
        self._fetcher = fetcher or Fetcher()

    def adopting(self, rules: Rules) -> Callable[[], None]:
        """What makes it follow the hosts of `rules`."""
        allowed = Allowed(rules.hosts)

        def adopt() -> None:
            self._fetcher.allowed = allowed

        return adopt

    def raw(self, inputs: dict[str, Any]) -> bytes:
        """The bytes.

        Raises:
            BadInput: neither or both are given, or what is given cannot be read.
            Unreachable: the host of the URL fails.
        """
        key = self._key
        given, url = inputs.get(key), inputs.get(f"{key}_url")
        if (given is None) == (url is None):
            raise BadInput(
                f"give inputs.{key} (bytes, base64 or a data URL) or inputs.{key}_url: one of them"
            )
        if given is not None:
            return bytes_of(given, key)
        if not isinstance(url, str):
            raise BadInput(f"inputs.{key}_url is no text")
        if url.startswith("data:"):
            return bytes_of(url, key)
        try:
            return self._fetcher.get(url)
        except BadInput as error:
            raise BadInput(f"inputs.{key}_url: {error}") from error

    def told(self, error: Unreachable, capability: str) -> Answer:
        """What the caller is answered where the host failed."""
        message = f"{capability}: inputs.{self._key}_url: {error}"
        return Answer(error=Failure(code="backend_error", message=message))


def bytes_of(given: Any, key: str) -> bytes:
    """Bytes as they are, or from base64 or a data URL.

    Raises:
        BadInput: something else.
    """
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    if not isinstance(given, str):
        raise BadInput(f"inputs.{key} is neither bytes nor text")
    if given.startswith("data:"):
        about, comma, given = given.partition(",")
        if not comma or not about.endswith(";base64"):
            raise BadInput(f"inputs.{key} is a data URL without base64")
    try:
        return base64.b64decode("".join(given.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"inputs.{key} is no base64") from error


class SourceBackend(FunctionBackend):
    """A function of one image or file, given or fetched from the hosts of the rules."""

    threads = 2

    def __init__(
        self,
        card: Card,
        look: Look,
        *,
        key: str = "image",
        load: Load | None = None,
        fetcher: Fetcher | None = None,
    ) -> None:
        self._source = Source(key, fetcher)
        self._look = look
        super().__init__(card, self._answer_to, load=load)

    def prepare(self, rules: Rules) -> Callable[[], None]:
        """What makes it follow `rules`."""
        return self._source.adopting(rules)

    def _answer_to(self, inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        try:
            raw = self._source.raw(inputs)
        except Unreachable as error:
            return self._source.told(error, self.card.capability)
        return self._look(raw, inputs, params)
