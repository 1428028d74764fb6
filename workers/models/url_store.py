"""A repository at a URL that fsspec reads: object storage such as `s3://bucket/prefix`, `memory://name`.

There are no locks and no renames there: a version counts once its manifest is written, which comes last and
only where there is none (a conditional write on S3). Of two that add the same version at the same moment one
is refused; were their files different, the hashes tell, and nobody serves the mixture.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from workers.errors import RepositoryError
from workers.models.manifest import MANIFEST, is_hidden
from workers.models.stores import MOST_JSON, Advance, Missing

RANGE = 8 << 20
"""Bytes of one range read."""
_S3 = {"connect_timeout": 5, "read_timeout": 30, "retries": {"max_attempts": 3}}
_NETWORK_NAME = re.compile(r"//[^/@]*@")


_kept: list[Any] = []
"""File systems that go with the process: there are one or two a repository."""


class UrlStore:
    """A `Store` at `url`. Opening it asks nobody yet.

    Raises:
        RepositoryError: fsspec is not installed, or reads no such URLs.
    """

    def __init__(self, url: str) -> None:
        self.url = _NETWORK_NAME.sub("//", url.rstrip("/"))
        scheme = url.partition("://")[0]
        options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
        if scheme in ("s3", "s3a"):
            options["config_kwargs"] = _S3
        try:
            import fsspec
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise RepositoryError(f"{self.url} needs fsspec: install edgeway[s3]") from error
        try:
            self._fs, root = url_to_fs(url, **options)
        except (ImportError, ValueError) as error:
            known = ", ".join(sorted(fsspec.available_protocols())[:12])
            raise RepositoryError(f"{self.url}: {error}; fsspec knows {known}, ...") from error
        self._root = root.rstrip("/")
        if getattr(self._fs, "async_impl", False):
            # Dropped in a thread with a loop of its own, its client is closed on that and fails.
            _kept.append(self._fs)

    def read(self, path: str) -> bytes:
        with self._told(path):
            content = bytes(self._fs.cat_file(self._at(path), start=0, end=MOST_JSON + 1))
        if len(content) > MOST_JSON:
            raise RepositoryError(f"{self.url}/{path} has more than {MOST_JSON} bytes")
        return content

    def chunks(self, path: str, start: int) -> Iterator[bytes]:
        with self._told(path):
            size = int(self._fs.info(self._at(path))["size"])
        while start < size:
            with self._told(path):
                chunk = bytes(self._fs.cat_file(self._at(path), start=start, end=min(start + RANGE, size)))
            if not chunk:
                raise RepositoryError(f"{self.url}/{path} ended at {start} of {size} bytes")
            start += len(chunk)
            yield chunk

    def folders(self, under: str) -> list[str]:
        found = []
        with self._told(under):
            try:
                found = self._fs.ls(self._at(under), detail=True)
            except FileNotFoundError as error:
                if _is_of_bucket(error):
                    raise
        names = (each["name"].rstrip("/").rpartition("/")[2] for each in found if each["type"] == "directory")
        return sorted(name for name in names if name and not name.startswith("."))

    def sizes(self, under: str) -> dict[str, int]:
        folder = self._at(under)
        with self._told(under):
            found = self._fs.find(folder, detail=True)
        paths = {name[len(folder) :].strip("/"): info["size"] for name, info in found.items()}
        return {path: int(size) for path, size in paths.items() if path and not is_hidden(path)}

    def write(self, path: str, content: bytes) -> None:
        with self._told(path):
            self._fs.pipe_file(self._at(path), content)

    def place(self, under: str, files: Mapping[str, Path], advance: Advance) -> None:
        manifest = f"{under}/{MANIFEST}"
        with self._told(under):
            if self._fs.exists(self._at(manifest)):
                raise RepositoryError(f"{self.url}/{under} is there already; a version is never overwritten")
        for path, source in files.items():
            if path != MANIFEST:
                with self._told(f"{under}/{path}"):
                    self._fs.put_file(str(source), self._at(f"{under}/{path}"))
                advance(source.stat().st_size)
        # Of an add that was killed: without a manifest nobody has read them.
        for path in set(self.sizes(under)) - set(files):
            with self._told(f"{under}/{path}"):
                self._fs.rm_file(self._at(f"{under}/{path}"))
        content = files[MANIFEST].read_bytes()
        with self._told(manifest):
            try:
                self._fs.pipe_file(self._at(manifest), content, mode="create")
            except FileExistsError as error:
                raise RepositoryError(
                    f"{self.url}/{under} was added by somebody else meanwhile; had it other files than "
                    "yours, `edgeway models verify` says so: remove it and add it again"
                ) from error

    def remove(self, under: str) -> None:
        with self._told(under):
            folder = self._at(under)
            if self._fs.exists(f"{folder}/{MANIFEST}"):
                self._fs.rm_file(f"{folder}/{MANIFEST}")
            if self._fs.exists(folder):
                self._fs.rm(folder, recursive=True)

    def locked(self, name: str) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}".rstrip("/")

    @contextlib.contextmanager
    def _told(self, path: str) -> Iterator[None]:
        try:
            yield
        except RepositoryError:
            raise
        except FileNotFoundError as error:
            if _is_of_bucket(error):
                raise RepositoryError(
                    f"{self.url}: there is no such bucket; make it, or look at the URL"
                ) from error
            raise Missing(f"{self.url}/{path} is not there") from error
        except PermissionError as error:
            raise RepositoryError(
                f"{self.url}/{path}: access denied ({error}); see the credentials in the environment"
            ) from error
        except Exception as error:  # each client has kinds of its own
            raise RepositoryError(f"{self.url}/{path}: {type(error).__name__}: {error}") from error


def _is_of_bucket(error: FileNotFoundError) -> bool:
    """Whether the bucket itself is not there: nothing in it is missing then, the URL is wrong."""
    return "bucket does not exist" in str(error) or type(error.__cause__).__name__ == "NoSuchBucket"
