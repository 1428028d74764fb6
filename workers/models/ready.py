"""A version made ready in a thread: built, loaded, warmed up, and asked what was recorded of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from streams import metrics
from workers.backends import Backend, RemoteBackend, Waits
from workers.errors import Away, CheckFailed, LoadError, WorkerError
from workers.models.check import Check, decode_check, run
from workers.models.manifest import CHECK
from workers.models.offering import backend_of

T = TypeVar("T")

REMOTE_S = 630.0
"""What loading takes at most that waits for a service elsewhere (`ready_s`), and a little."""


class Started(NamedTuple):
    """A backend that is loaded, and checked unless the service that it asks is `away`."""

    backend: Backend
    away: Away | None = None


def started(folder: Path, *, checked: bool = True) -> Started:
    """The backend of a version's folder, loaded and, unless its service is away, checked. Blocks; the
    folder's files are believed.

    A model that hangs is given up after its check's deadline; the thread that it hangs in is left behind.

    Raises:
        LoadError: it cannot be loaded.
        CheckFailed: it does not answer as recorded, or not in time.
    """
    check = check_of(folder)
    backend = backend_of(folder)
    what = f"{backend.card.model} {backend.card.version}"
    # A service elsewhere is given up by its own backend, and that it was silent is no fault of the version.
    limit_s = check.deadline_s + (REMOTE_S if isinstance(backend, RemoteBackend) else 0.0)

    def work() -> Started:
        load(backend)
        try:
            if isinstance(backend, Waits) and backend.waits_for:
                return Started(backend, Away(backend.waits_for))
            if checked:
                run(backend, check)
        except Away as error:
            return Started(backend, error)
        except BaseException:
            backend.close()
            raise
        return Started(backend)

    try:
        return within(limit_s, work, abandon=lambda late: late.backend.close())
    except TimeoutError as error:
        raise CheckFailed(
            f"{what} was not loaded and checked within {limit_s:g} s: refused; it may hang"
        ) from error
    except CheckFailed as error:
        raise CheckFailed(f"{what} does not answer as when it was added: {error}") from error


def made_ready(folder: Path, *, checked: bool = True) -> Backend:
    """As `started`, of a backend whose service is there.

    Raises:
        Away: it is not.
    """
    backend, away = started(folder, checked=checked)
    if away is not None:
        backend.close()
        raise away
    return backend


def tried(folder: Path) -> None:
    """Try a version's folder as its owner, before others are to serve it.

    What asks elsewhere, and has no check, is built and no more: its service, and the keys to it, need not be
    where its owner is.

    Raises:
        As `made_ready`.
    """
    if check_of(folder).rows or not isinstance(backend_of(folder), RemoteBackend):
        made_ready(folder).close()


def check_of(folder: Path) -> Check:
    """The check of a version's folder; an empty one where it has none.

    Raises:
        Damaged: it cannot be used.
        LoadError: it cannot be read.
    """
    path = folder / CHECK
    try:
        return decode_check(path.read_bytes(), str(path))
    except FileNotFoundError:
        return Check()
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror or error}") from error


def load(backend: Backend) -> None:
    """Load a backend, in this thread alone.

    Raises:
        LoadError: it cannot be made ready.
    """
    began = time.monotonic()
    try:
        with asyncio.Runner() as runner:
            runner.get_loop().set_default_executor(_Here())
            runner.run(backend.load())
    except WorkerError:
        raise
    except Exception as error:
        raise LoadError(f"{backend.card.capability} cannot be loaded: {error}") from error
    card = backend.card
    metrics.MODEL_LOAD_S.labels(card.capability, card.side).observe(time.monotonic() - began)


def within(limit_s: float, work: Callable[[], T], abandon: Callable[[T], object]) -> T:
    """What `work` gives or raises, in a thread that nobody waits for at the end of the process.

    What comes too late goes to `abandon`.

    Raises:
        TimeoutError: it took longer than `limit_s`.
    """
    done: concurrent.futures.Future[T] = concurrent.futures.Future()
    turn = threading.Lock()
    gone = False

    def body() -> None:
        try:
            found = work()
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            done.set_exception(error)
            return
        with turn:
            if not gone:
                done.set_result(found)
                return
        abandon(found)

    threading.Thread(target=body, name="model check", daemon=True).start()
    try:
        return done.result(limit_s)
    except concurrent.futures.TimeoutError:
        with turn:
            gone = True
            if done.done():
                return done.result()
        raise TimeoutError from None


class _Here(concurrent.futures.ThreadPoolExecutor):
    """Runs what it is given at once and in the thread that gives it: the threads of a pool are waited for at
    the end of the process, and one that hangs would hold it up.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> concurrent.futures.Future[Any]:
        found: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            found.set_result(work(*args, **more))
        except Exception as error:  # noqa: BLE001 - raised where the future is awaited
            found.set_exception(error)
        return found
