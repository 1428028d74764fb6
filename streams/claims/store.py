"""An object store at any URL that fsspec writes: `s3://`, `file://`, `memory://`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from schemas.messages import Claim
from streams import metrics
from streams.claims.errors import ClaimError, ObjectForbidden, ObjectMissing, ObjectTooLarge, StoreAway
from streams.claims.names import base_of, name_in, object_name
from streams.claims.ports import MAX_OBJECT_BYTES, ObjectStore

T = TypeVar("T")
TIMEOUT_S = 10.0
"""What one read or write may take, with its wait for a thread; callers that have less set less."""
THREADS = 8
_S3 = {"connect_timeout": 3, "read_timeout": 8, "retries": {"max_attempts": 2}}
_PATH = re.compile(r"/[^\s?#*]*")

_kept: list[Any] = []
"""File systems that go with the process: dropped on another thread, their clients are closed on the wrong
loop."""


class FsspecStore:
    """An ObjectStore at `url`. Blocking calls run in `threads` of its own; a call that hangs keeps its thread
    and no other. Opening it asks nobody yet.

    Raises:
        ClaimError: a URL that names no store, or one that fsspec cannot write.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = TIMEOUT_S,
        threads: int = THREADS,
        wall: Callable[[], float] = time.time,
        token: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        url = f"file://{url}" if _PATH.fullmatch(url) else url
        self.base = base_of(url)
        self._fs, self._root = _opened(url)
        self._is_file = self.base.startswith("file://")
        self._timeout_s, self._wall, self._token = timeout_s, wall, token
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="objects")
        self._slots = asyncio.Semaphore(threads)

    async def put(self, data: bytes, *, content_type: str | None, tenant: str | None) -> Claim:
        with _counted("write"):
            if len(data) > MAX_OBJECT_BYTES:
                raise ObjectTooLarge(f"an object has {len(data)} bytes; at most {MAX_OBJECT_BYTES} are kept")
            name = object_name(tenant, self._wall(), self._token())
            digest = await self._in_thread(self._write, name, data)
        return Claim(dataref=f"{self.base}/{name}", sha256=digest, size=len(data), content_type=content_type)

    async def get(self, claim: Claim, *, tenant: str | None, limit: int = MAX_OBJECT_BYTES) -> bytes:
        with _counted("read"):
            name = name_in(self.base, claim.dataref, tenant)
            if claim.size > min(limit, MAX_OBJECT_BYTES):
                raise ObjectTooLarge(f"an object of {claim.size} bytes; at most {limit} are read here")
            return await self._in_thread(self._read, name, claim)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _write(self, name: str, data: bytes) -> str:
        try:
            self._fs.pipe_file(f"{self._root}/{name}", data)
        except Exception as error:
            raise _told(error, name) from error
        return hashlib.sha256(data).hexdigest()

    def _read(self, name: str, claim: Claim) -> bytes:
        path = f"{self._root}/{name}"
        if self._is_file and not os.path.realpath(path).startswith(os.path.realpath(self._root) + os.sep):
            raise ObjectForbidden("the claim leads out of the store by a link")
        if self._is_file and not _may_be_read(path):
            raise ObjectMissing(f"{name} is a pipe or a device and no object")
        try:
            # One byte more tells a longer object. Of an empty one S3 gives no range at all.
            data = bytes(self._fs.cat_file(path, start=0, end=claim.size + 1)) if claim.size else b""
        except Exception as error:
            raise _told(error, name) from error
        if len(data) != claim.size or hashlib.sha256(data).hexdigest() != claim.sha256.lower():
            raise ObjectMissing(f"{name} is not what the claim says: its size or sha256 differ")
        return data

    async def _in_thread(self, work: Callable[..., T], *args: Any) -> T:
        loop = asyncio.get_running_loop()

        def free(_: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._slots.release)

        try:
            async with asyncio.timeout(self._timeout_s):
                await self._slots.acquire()
                try:
                    running = self._threads.submit(work, *args)
                except RuntimeError as error:  # it was closed
                    self._slots.release()
                    raise StoreAway("the object store is closed") from error
                # Freed when the thread is, not when nobody waits any more: hanging calls fill no queue.
                running.add_done_callback(free)
                return await asyncio.wrap_future(running)
        except TimeoutError as error:
            raise StoreAway(f"the object store gave no answer within {self._timeout_s:g} s") from error


def _may_be_read(path: str) -> bool:
    """Whether reading ends: that of a pipe never does, and eight of them took all threads of a store for
    ever. What is not there, or a folder, says so when it is read."""
    found = Path(path)
    return found.is_file() or found.is_dir() or not found.exists()


@contextlib.contextmanager
def _counted(operation: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    except ClaimError as error:
        metrics.OBJECTS.labels(operation, error.outcome).inc()
        raise
    metrics.OBJECTS.labels(operation, "ok").inc()
    metrics.OBJECT_S.labels(operation).observe(time.perf_counter() - began)


def open_store(url: str) -> ObjectStore:
    """The object store at `url`, a URL that fsspec writes or an absolute path.

    Raises:
        ClaimError: it names none.
    """
    return FsspecStore(url)


def _opened(url: str) -> tuple[Any, str]:
    import fsspec  # half a second, where nobody asked for a store
    from fsspec.core import url_to_fs

    scheme = url.partition("://")[0]
    options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
    if scheme in ("s3", "s3a"):
        options["config_kwargs"] = _S3
    if scheme == "file":
        options["auto_mkdir"] = True
    try:
        files, root = url_to_fs(url, **options)
    except (ImportError, ValueError) as error:
        known = ", ".join(sorted(fsspec.available_protocols())[:12])
        more = "; install edgeway[s3]" if scheme in ("s3", "s3a") else ""
        raise ClaimError(f"fsspec opens no {scheme}:// here{more}; it knows {known}, ...") from error
    if getattr(files, "async_impl", False):
        _kept.append(files)
    return files, root.rstrip("/")


def _told(error: Exception, name: str) -> ClaimError:
    """`error` of a client, without what it quotes of requests and keys."""
    if isinstance(error, FileNotFoundError):
        if "bucket does not exist" in str(error) or type(error.__cause__).__name__ == "NoSuchBucket":
            return StoreAway("there is no such bucket; make it, or look at the store's URL")
        return ObjectMissing(f"there is no object {name}; it was never there, or its time is over")
    if isinstance(error, NotADirectoryError):
        return ObjectMissing(f"{name} has no folder to lie in: what stands in its place is a file")
    if isinstance(error, IsADirectoryError):
        return ObjectMissing(f"{name} is a folder and no object")
    if isinstance(error, PermissionError):
        return StoreAway("the object store denies access; see its credentials and what they may do")
    return StoreAway(f"the object store failed ({type(error).__name__})")
