"""Slots of their own accord: a killed process's successor on the same machine takes its place in the group at
once.

Kafka waits for a dead dynamic member until its session ends (6 s), and all others wait with it. A static
member's successor is let in immediately, but it must know its id, and no other process may use it. A file
lock gives both: the lowest free number, free again the moment its holder dies.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgeway import forks

log = logging.getLogger(__name__)

MOST = 256


@dataclass(slots=True)
class Slot:
    """A held slot: its name in the group, and the lock that goes with the process or by `release`."""

    name: str
    path: Path
    descriptor: int

    def fileno(self) -> int:
        """The lock's descriptor, negative once it is released."""
        return self.descriptor

    def release(self) -> None:
        """Give the slot up. Harmless when repeated."""
        if self.descriptor < 0:
            return
        # Removed while it is held: whoever opened it before finds that it is no longer the file of that name.
        self.path.unlink(missing_ok=True)
        os.close(self.descriptor)
        self.descriptor = -1


def hold(what: Iterable[object], folder: Path | None = None) -> Slot | None:
    """The lowest free slot among processes on this machine that do `what`; None where no lock can be had.

    The name holds a token of the folder, so that two containers that believe to be the same host do not meet.
    """
    try:
        home = _home(folder)
        token = _token(home)
        kind = hashlib.sha256(repr(tuple(what)).encode()).hexdigest()[:12]
        for number in range(MOST):
            path = home / f"{kind}-{number}"
            descriptor = _locked(path)
            if descriptor is not None:
                slot = Slot(f"auto-{token}-{kind}-{number}", path, descriptor)
                forks.keep(slot.fileno)
                return slot
    except OSError as error:
        log.info(
            "no slot of its own accord (%s); a restart after a kill takes a session timeout longer", error
        )
    return None


def _home(folder: Path | None) -> Path:
    home = folder or Path(tempfile.gettempdir()) / f"edgeway-slots-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise PermissionError(f"{home} belongs to another user")
    return home


def _token(home: Path) -> str:
    path = home / "token"
    if not path.exists():
        fresh = home / f"token-{uuid.uuid4().hex}"
        fresh.write_text(uuid.uuid4().hex[:12], encoding="ascii")
        try:
            # A link is made whole or not at all: nobody reads half a token, and the first one counts.
            os.link(fresh, path)
        except FileExistsError:
            log.debug("another process made the token")
        finally:
            fresh.unlink()
    return path.read_text(encoding="ascii")


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of the file of this name; None where another process has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
        os.close(descriptor)
