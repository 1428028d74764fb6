"""A repository in a folder: renames are atomic, and changes of one model are under a lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from workers.errors import RepositoryError
from workers.models.manifest import MANIFEST, is_hidden
from workers.models.stores import CHUNK, MOST_JSON, Advance, Missing

LOCK_S = 60.0
_POLL_S = 0.02


class LocalStore:
    """A `Store` in the folder `root`, which is made with the first write."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def url(self) -> str:
        return str(self._root)

    def read(self, path: str) -> bytes:
        with self._told(path), (self._root / path).open("rb") as file:
            content = file.read(MOST_JSON + 1)
        if len(content) > MOST_JSON:
            raise RepositoryError(f"{self._root / path} has more than {MOST_JSON} bytes")
        return content

    def chunks(self, path: str, start: int) -> Iterator[bytes]:
        with self._told(path), (self._root / path).open("rb") as file:
            file.seek(start)
            while chunk := file.read(CHUNK):
                yield chunk

    def folders(self, under: str) -> list[str]:
        folder = self._root / under
        if not folder.is_dir():
            return []
        with self._told(under):
            return sorted(each.name for each in folder.iterdir() if each.is_dir() and each.name[0] != ".")

    def sizes(self, under: str) -> dict[str, int]:
        with self._told(under):
            return sizes_of(self._root / under)

    def write(self, path: str, content: bytes) -> None:
        with self._told(path):
            write_file(self._root / path, content)

    def place(self, under: str, files: Mapping[str, Path], advance: Advance) -> None:
        target = self._root / under
        with self._told(under):
            target.parent.mkdir(parents=True, exist_ok=True)
            for old in target.parent.glob(f".adding-{target.name}-*"):
                # Of one that was killed: the lock is ours.
                shutil.rmtree(old)
            staging = Path(tempfile.mkdtemp(prefix=f".adding-{target.name}-", dir=target.parent))
            try:
                staging.chmod(0o755)
                for path, source in files.items():
                    _copy(source, staging / path, advance)
                _sync_folders(staging)
                if target.is_dir():
                    if (target / MANIFEST).exists():
                        raise RepositoryError(f"{target} is there already; a version is never overwritten")
                    shutil.rmtree(target)
                staging.rename(target)
                sync_folder(target.parent)
            except BaseException:
                shutil.rmtree(staging, ignore_errors=True)
                raise

    def remove(self, under: str) -> None:
        target = self._root / under
        with self._told(under):
            remove_folder(target)

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        folder = self._root / name
        with self._told(name):
            folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock"):
            yield

    @contextlib.contextmanager
    def _told(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise Missing(f"{self._root / path} is not there") from error
        except OSError as error:
            where = error.filename or self._root / path
            raise RepositoryError(f"{where}: {error.strerror or error}{mend_of(error)}") from error


@contextlib.contextmanager
def locked(path: Path, within_s: float = LOCK_S) -> Iterator[None]:
    """Hold the lock file at `path`; the system lets go of it also where its holder is killed.

    Raises:
        RepositoryError: another process held it for `within_s`.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise RepositoryError(f"{path}: {error.strerror or error}") from error
    try:
        until = time.monotonic() + within_s
        while not _taken(handle):
            if time.monotonic() > until:
                raise RepositoryError(f"another process held {path} for {within_s:.0f} s; try again later")
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def mend_of(error: OSError) -> str:
    """What to do about an error of the disk, as the end of a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "; make room there, or name another folder"
    return ""


def sizes_of(folder: Path) -> dict[str, int]:
    """Bytes by path below `folder`, hidden ones left out."""
    found: dict[str, int] = {}
    for each in folder.rglob("*"):
        path = each.relative_to(folder).as_posix()
        if each.is_file() and not is_hidden(path):
            found[path] = each.stat().st_size
    return found


def write_file(path: Path, content: bytes) -> None:
    """Put a file in its place at once, on the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
        sync_folder(path.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def remove_folder(target: Path) -> None:
    """Remove a folder so that no reader takes half of it for a version."""
    if not target.is_dir():
        return
    gone = Path(tempfile.mkdtemp(prefix=f".gone-{target.name}-", dir=target.parent))
    target.rename(gone / "it")
    for each in target.parent.glob(".gone-*"):  # also those of processes that were killed here
        shutil.rmtree(each, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Have the names in `folder` on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folders(folder: Path) -> None:
    for each in [folder, *(each for each in folder.rglob("*") if each.is_dir())]:
        sync_folder(each)


def _copy(source: Path, target: Path, advance: Advance) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as read, target.open("wb") as write:
        while chunk := read.read(CHUNK):
            write.write(chunk)
            advance(len(chunk))
        write.flush()
        os.fsync(write.fileno())
