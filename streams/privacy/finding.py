"""What detectors give, and the kinds of what they find."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

KINDS = frozenset(
    {
        "address",
        "age",
        "bank_account",
        "birth_date",
        "credit_card",
        "date",
        "driving_licence",
        "email",
        "iban",
        "image",
        "ip",
        "location",
        "mac",
        "national_id",
        "nationality",
        "organization",
        "passport",
        "person",
        "phone",
        "plate",
        "secret",
        "title",
        "unread",
        "url",
        "username",
    }
)
"""The kinds of the built-in detectors. A user's detector may add its own."""


class Finding(NamedTuple):
    """`text` of `kind` in what was examined, with a confidence in [0, 1]. It is personal: never log it."""

    kind: str
    text: str
    score: float = 1.0
    detector: str = ""

    def __repr__(self) -> str:
        return f"Finding(kind={self.kind!r}, detector={self.detector!r})"


@runtime_checkable
class Detector(Protocol):
    """Finds personal data in a text. Whatever it raises makes the verdict `high`."""

    name: str

    def find(self, text: str, /) -> Iterable[Finding]: ...


@runtime_checkable
class TextReader(Protocol):
    """Reads the text in an image (PNG, JPEG, WebP, GIF, TIFF, BMP). None: there is none to read."""

    name: str

    def read(self, data: bytes, /) -> str | None: ...
