"""Versions pulled into a folder of this machine: resumed, compared with their hashes, swapped in at once.

<cache>/<repository>/<name>/<version>/        complete, as its manifest has it
<cache>/<repository>/<name>/.pulling-<version>/   under way, or left by one that was killed
<cache>/<repository>/<name>/.serving          the version that worked last
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workers.errors import Damaged, RepositoryError
from workers.models.local_store import locked, mend_of, remove_folder, sizes_of, sync_folder, write_file
from workers.models.manifest import (
    KEPT,
    MANIFEST,
    File,
    Manifest,
    check_files,
    decode_manifest,
)
from workers.models.repository import Repository, nothing
from workers.models.stores import CHUNK, Advance
from workers.models.versions import check_name, is_name

LOCK_S = 3600.0
"""Another process may pull the same large model meanwhile."""
_SERVING = ".serving"
_STAGED = ".manifest"


class Cache:
    """The versions of the repository at `url` that lie below `root`.

    Several processes may use one: of those that pull the same model one pulls, and the others find it there.
    """

    def __init__(self, root: Path, url: str) -> None:
        readable = re.sub(r"[^A-Za-z0-9]+", "-", url).strip("-")[-40:]
        self._root = (
            root.expanduser().absolute() / f"{readable}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
        )

    def pull(self, repository: Repository, name: str, version: str, advance: Advance = nothing) -> Path:
        """The folder of a version, complete and as its manifest has it. Blocks.

        `advance` is told of bytes, those that were here already included. What a process that was killed
        left is used as far as it goes.

        Raises:
            Damaged: files that are not those of the manifest; nothing is left here then.
            RepositoryError: the repository does not answer, or there is no room.
        """
        manifest, raw = repository.raw_manifest(name, version)
        target = self._root / name / version
        with self._told(target), self._locked(name):
            if self._is_there(target, raw):
                advance(manifest.size)
                return target
            sizes = repository.store.sizes(f"{name}/{version}")
            sizes.pop(MANIFEST, None)
            check_files(manifest, sizes, f"{repository.store.url}/{name}/{version}")
            staging = self._root / name / f".pulling-{version}"
            try:
                _begin(staging, raw)
                self._require_room(manifest, staging)
                for path, file in manifest.files.items():
                    _fetch(repository, f"{name}/{version}/{path}", file, staging / path, advance)
                _swap_in(staging, target, raw)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    # Half a model would only take room that others need.
                    shutil.rmtree(staging, ignore_errors=True)
                raise
        return target

    def there(self, name: str, version: str) -> Path:
        """The folder of a version that was pulled before, compared with its hashes again.

        Raises:
            Damaged: it is not there, or somebody changed it.
        """
        folder = self._root / check_name(name) / check_name(version, "version")
        with self._told(folder):
            if not (folder / MANIFEST).is_file():
                raise Damaged(f"{folder} is not there: {name} {version} was never pulled to this machine")
            verify_folder(folder)
        return folder

    def names(self) -> list[str]:
        """Models of which something was pulled."""
        return _folders(self._root)

    def versions(self, name: str) -> list[str]:
        """The versions of a model that are here, the one used last first; they may be damaged."""
        folder = self._root / check_name(name)
        found = [v for v in _folders(folder) if (folder / v / MANIFEST).is_file()]
        return sorted(found, key=lambda v: _used_at(folder / v), reverse=True)

    def remember(self, name: str, version: str) -> None:
        """Note that a version works."""
        with self._told(self._root / name):
            write_file(self._root / check_name(name) / _SERVING, version.encode())
            os.utime(self._root / name / version / MANIFEST)

    def remembered(self, name: str) -> str | None:
        """The version that worked last, None where none is known."""
        with suppress(OSError, UnicodeDecodeError):
            found = (self._root / check_name(name) / _SERVING).read_text("utf-8")
            return found if is_name(found) else None
        return None

    def prune(self, name: str, using: Iterable[str], keep: int = KEPT) -> list[str]:
        """Remove versions beyond the `keep` that were used last, none of `using`; what was removed."""
        kept = set(using)
        gone = [v for v in self.versions(name)[keep:] if v not in kept]
        if not gone:
            return []
        with self._told(self._root / name), self._locked(name):
            for version in gone:
                remove_folder(self._root / name / version)
        return gone

    def _is_there(self, target: Path, raw: bytes) -> bool:
        """Whether the version is here as `raw` has it; one that is not is removed."""
        try:
            if (target / MANIFEST).read_bytes() == raw:
                verify_folder(target)
                # Others that prune meanwhile take what was used last for what is in use.
                os.utime(target / MANIFEST)
                return True
        except (FileNotFoundError, Damaged):
            pass
        remove_folder(target)
        return False

    def _require_room(self, manifest: Manifest, staging: Path) -> None:
        needed = manifest.size - sum(sizes_of(staging).values())
        free = shutil.disk_usage(staging).free
        if needed > free:
            shutil.rmtree(staging, ignore_errors=True)
            raise RepositoryError(
                f"{manifest.name} {manifest.version} needs {needed} bytes more, and {self._root} has {free}: "
                "make room there, or name another folder with --models-cache"
            )

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        (self._root / check_name(name)).mkdir(parents=True, exist_ok=True)
        with locked(self._root / name / ".lock", LOCK_S):
            yield

    @contextmanager
    def _told(self, place: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or place
            raise RepositoryError(f"{where}: {error.strerror or error}{mend_of(error)}") from error


def verify_folder(folder: Path) -> Manifest:
    """The manifest of a version's folder, with which all its files were compared.

    Raises:
        Damaged: names the first file that is not as in the manifest.
    """
    manifest = decode_manifest((folder / MANIFEST).read_bytes(), str(folder / MANIFEST))
    sizes = sizes_of(folder)
    sizes.pop(MANIFEST, None)
    check_files(manifest, sizes, str(folder))
    for path, file in manifest.files.items():
        if hashed(folder / path).hexdigest() != file.sha256:
            raise Damaged(f"{folder}: {path} is not what was added: its SHA-256 differs")
    return manifest


def hashed(path: Path) -> hashlib._Hash:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest


def _begin(staging: Path, raw: bytes) -> None:
    """Make the folder of what is under way; what is there of another manifest is removed."""
    with suppress(FileNotFoundError):
        if (staging / _STAGED).read_bytes() == raw:
            return
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    write_file(staging / _STAGED, raw)


def _fetch(repository: Repository, path: str, file: File, target: Path, advance: Advance) -> None:
    """One file, from where `target` ends; from its beginning where that turns out to be something else.

    Raises:
        Damaged: it is not the file of the manifest.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    start = target.stat().st_size if target.is_file() else 0
    if start > file.bytes:
        target.unlink()
        start = 0
    advance(start)
    if _appended(repository, path, file, target, start, advance):
        return
    if start:
        advance(-file.bytes)
        target.unlink()
        if _appended(repository, path, file, target, 0, advance):
            return
    target.unlink()
    raise Damaged(f"{repository.store.url}/{path} is not what was added: its SHA-256 or size differs")


def _appended(
    repository: Repository, path: str, file: File, target: Path, start: int, advance: Advance
) -> bool:
    """Append what is missing of a file; whether it is that of the manifest then."""
    digest = hashed(target) if start else hashlib.sha256()
    size = start
    with target.open("ab") as write:
        for chunk in repository.store.chunks(path, start) if start < file.bytes else ():
            size += len(chunk)
            if size > file.bytes:
                break
            write.write(chunk)
            digest.update(chunk)
            advance(len(chunk))
        write.flush()
        os.fsync(write.fileno())
    return size == file.bytes and digest.hexdigest() == file.sha256


def _swap_in(staging: Path, target: Path, raw: bytes) -> None:
    (staging / _STAGED).unlink()
    write_file(staging / MANIFEST, raw)
    for each in [staging, *(each for each in staging.rglob("*") if each.is_dir())]:
        sync_folder(each)
    staging.rename(target)
    sync_folder(target.parent)


def _folders(folder: Path) -> list[str]:
    try:
        return sorted(each.name for each in folder.iterdir() if each.is_dir() and is_name(each.name))
    except OSError:
        return []


def _used_at(folder: Path) -> int:
    try:
        return (folder / MANIFEST).stat().st_mtime_ns
    except OSError:
        return 0
