"""The manifest of a version: every file with its SHA-256 and size; and which version is active. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from workers.errors import Damaged, RepositoryError
from workers.models.versions import check_name

MANIFEST, ACTIVE, CARD, CHECK = "manifest.json", "active.json", "card.json", "check.json"
MOST_FILES = 10_000
KEPT = 3
"""Versions that `prune` keeps of a model: the active one and two before."""

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_PART = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: its SHA-256 in hex, and its size in bytes."""

    sha256: Digest
    bytes: Annotated[int, msgspec.Meta(ge=0)]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All files of a version but the manifest itself, by path within its folder; `created_ms` in UTC."""

    name: str
    version: str
    files: dict[str, File]
    created_ms: int = 0

    @property
    def size(self) -> int:
        """All files together, in bytes."""
        return sum(file.bytes for file in self.files.values())


class Active(msgspec.Struct, frozen=True, kw_only=True):
    """Which version is served since when (ms, UTC), and those before it, the latest first.

    `unchecked` says that it was activated without its self-check.
    """

    version: str
    previous: tuple[str, ...] = ()
    since_ms: int = 0
    unchecked: bool = False

    @property
    def kept(self) -> tuple[str, ...]:
        """The versions in use: this and those that a rollback would come to."""
        return (self.version, *self.previous)[:KEPT]


def activated(old: Active | None, version: str, now: int, *, unchecked: bool = False) -> Active:
    """`version` in the place of `old`'s; one that was active before moves to the front."""
    before = () if old is None else (old.version, *old.previous)
    return Active(
        version=version,
        previous=tuple(v for v in before if v != version)[: KEPT - 1],
        since_ms=max(now, 0 if old is None else old.since_ms + 1),
        unchecked=unchecked,
    )


def rolled_back(old: Active | None, name: str, now: int) -> Active:
    """The version before in the place of `old`'s, which is dropped from those before.

    Raises:
        RepositoryError: there is none.
    """
    if old is None or not old.previous:
        told = "nothing is active" if old is None else f"there is none before {old.version}"
        raise RepositoryError(f"{name} cannot be rolled back: {told}; see `edgeway models list`")
    version, *rest = old.previous
    return Active(version=version, previous=tuple(rest), since_ms=max(now, old.since_ms + 1))


def decode_manifest(raw: bytes, where: str) -> Manifest:
    """The manifest at `where`.

    Raises:
        Damaged: it cannot be used; the text says why.
    """
    try:
        found = msgspec.json.decode(raw, type=Manifest)
        check_name(found.name)
        check_name(found.version, "version")
        _check_paths(found.files)
    except (msgspec.DecodeError, RepositoryError, RecursionError) as error:
        raise Damaged(f"{where}: {error}; remove that version and add it again") from error
    return found


def decode_active(raw: bytes, where: str) -> Active:
    """The `active.json` at `where`.

    Raises:
        Damaged: it cannot be used.
    """
    try:
        found = msgspec.json.decode(raw, type=Active)
        for version in (found.version, *found.previous):
            check_name(version, "version")
    except (msgspec.DecodeError, RepositoryError, RecursionError) as error:
        raise Damaged(f"{where}: {error}; activate a version again") from error
    return found


def encode(found: Manifest | Active) -> bytes:
    """As it stands in its file."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def digest_of(raw: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(raw).hexdigest()


def check_files(manifest: Manifest, sizes: Mapping[str, int], where: str) -> None:
    """Whether `sizes` (bytes by path, the manifest left out) are those of the manifest.

    Raises:
        Damaged: names the first file that is missing, of another size, or not listed.
    """
    for path, file in manifest.files.items():
        if path not in sizes:
            raise Damaged(f"{where}: {path} is missing, which the manifest lists")
        if sizes[path] != file.bytes:
            raise Damaged(
                f"{where}: {path} has {sizes[path]} bytes, the manifest says {file.bytes}: half copied?"
            )
    for path in sorted(set(sizes) - set(manifest.files)):
        raise Damaged(f"{where}: {path} is not in the manifest: somebody put it there later")


def is_hidden(path: str) -> bool:
    """Whether a part begins with a dot: what is under way, locks, and what desktops leave behind."""
    return any(part.startswith(".") for part in path.split("/"))


def _check_paths(files: Iterable[str]) -> None:
    paths = list(files)
    if CARD not in paths:
        raise RepositoryError(f"it lists no {CARD}")
    if len(paths) > MOST_FILES:
        raise RepositoryError(f"it lists {len(paths)} files, of {MOST_FILES} at most")
    for path in paths:
        check_path(path)


def check_path(path: str) -> str:
    """`path`, which stays within its folder and is neither hidden nor the manifest's.

    Raises:
        RepositoryError: it does not.
    """
    parts = path.split("/")
    if is_hidden(path) or path == MANIFEST or not all(_PART.fullmatch(part) for part in parts):
        raise RepositoryError(f"a version cannot hold a file {path[:200]!r}")
    return path
