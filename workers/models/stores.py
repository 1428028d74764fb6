"""Where a repository lies: a folder, or any URL that fsspec reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from workers.errors import RepositoryError

CHUNK = 1 << 20
MOST_JSON = 16 << 20
"""Manifests, cards and recorded checks are not larger, in bytes."""
Advance = Callable[[int], None]
"""Told of bytes that were copied."""


class Missing(RepositoryError):
    """There is no such file."""


class Store(Protocol):
    """Files by path below one root. Every method raises RepositoryError where the store does not answer."""

    @property
    def url(self) -> str:
        """The root, for messages."""

    def read(self, path: str) -> bytes:
        """A small file, at once.

        Raises:
            Missing: it is not there.
            RepositoryError: it has more than MOST_JSON bytes.
        """

    def chunks(self, path: str, start: int) -> Iterator[bytes]:
        """A file from byte `start` on.

        Raises:
            Missing: it is not there.
        """

    def folders(self, under: str) -> list[str]:
        """The names of the folders below `under`, hidden ones left out; none where it is not there."""

    def sizes(self, under: str) -> dict[str, int]:
        """Bytes by path below `under`, hidden ones left out."""

    def write(self, path: str, content: bytes) -> None:
        """Put a small file in its place, at once: a reader sees the old one or the new one."""

    def place(self, under: str, files: Mapping[str, Path], advance: Advance) -> None:
        """Put a folder of `files` at `under`, so that its manifest is there only once all others are.

        Raises:
            RepositoryError: there is one with a manifest already.
        """

    def remove(self, under: str) -> None:
        """Remove a folder, its manifest first; nothing where it is not there."""

    def locked(self, name: str) -> AbstractContextManager[None]:
        """While it is held nobody else changes the model `name`, as far as the store can see to that."""
