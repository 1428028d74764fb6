"""The data folder: one owner at a time, a cluster id kept, each node's folder formatted."""

import base64
import fcntl
import json
import logging
import os
import shutil
import time
import uuid
from pathlib import Path

from edgeway.embedded.errors import UnusableSetting
from edgeway.embedded.properties import meta_properties

LOCK_WAIT = 3.0
TEMPORARY = "edgeway-kafka-"
"""What the name of a temporary data folder begins with."""
SWEEP_AGE = 60.0

_log = logging.getLogger(__name__)


def kafka_uuid() -> str:
    """A random id as Kafka writes them: 16 bytes in unpadded URL-safe base64, never beginning with '-'."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode("ascii")
        if not text.startswith("-"):
            return text


def sweep(parent: Path, now: float) -> list[Path]:
    """Remove the temporary data folders below `parent` that killed processes of this user left.

    Left is one whose lock nobody holds; those removed are returned. A lock younger than SWEEP_AGE (seconds)
    may be one not taken yet.
    """
    removed = []
    for path in sorted(parent.glob(f"{TEMPORARY}*")):
        try:
            if path.is_symlink() or not path.is_dir() or path.stat().st_uid != os.getuid():
                continue
            lock = os.open(path / ".lock", os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, or none of ours
            continue
        try:
            if now - os.fstat(lock).st_mtime < SWEEP_AGE:
                continue
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
            removed.append(path)
        except BlockingIOError:
            continue
        except OSError as error:
            _log.warning("the left data folder %s could not be removed: %s", path, error)
        finally:
            os.close(lock)
    return removed


class DataFolder:
    """A locked data folder. The lock is also inherited by the brokers, so it lasts as long as any of them."""

    def __init__(self, path: Path, brokers: int) -> None:
        """Lock, check and describe `path`, which is created where missing.

        Raises:
            UnusableSetting: in use by another process, made for another number of brokers, not ours,
                or not writable.
        """
        self.path = path
        self.brokers = brokers
        try:
            path.mkdir(parents=True, exist_ok=True)
            self.lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as exc:
            why = "it is no folder" if path.is_file() else exc.strerror or str(exc)
            raise UnusableSetting(
                f"cannot use the data folder {path}: {why}; choose a folder that can be written"
            ) from exc
        try:
            self._take_lock()
            self.cluster_id = self._cluster_id()
        except OSError as exc:
            os.close(self.lock)
            raise UnusableSetting(f"cannot use the data folder {path}: {exc}") from exc
        except BaseException:
            os.close(self.lock)
            raise

    def close(self) -> None:
        """Give the folder free. Not before the brokers have ended."""
        os.close(self.lock)

    def node(self, number: int) -> Path:
        return self.path / f"kafka-{number}"

    def log(self, number: int) -> Path:
        return self.path / f"kafka-{number}.log"

    def write(self, name: str, text: str) -> Path:
        """Write a file of the folder in one step and give its path."""
        target = self.path / name
        part = target.with_name(f".{target.name}.part")
        part.write_text(text, encoding="utf-8")
        part.replace(target)
        return target

    def format(self, number: int, bootstrap: bytes) -> None:
        """Make a node's folder as Kafka's StorageTool would; a formatted one is left alone.

        `bootstrap` is the tool's ``bootstrap.checkpoint`` (feature levels; the same for every cluster).
        ``meta.properties`` comes last and marks the folder as formatted.
        """
        folder = self.node(number)
        if (folder / "meta.properties").exists():
            return
        folder.mkdir(exist_ok=True)
        (folder / "bootstrap.checkpoint").write_bytes(bootstrap)
        self.write(f"kafka-{number}/meta.properties", meta_properties(self.cluster_id, kafka_uuid(), number))

    def _take_lock(self) -> None:
        # Waits a little: the brokers of an owner killed just now may still be ending.
        deadline = time.monotonic() + LOCK_WAIT
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                if time.monotonic() >= deadline:
                    raise UnusableSetting(
                        f"the data folder {self.path} is in use by another Edgeway process: stop it "
                        "(or connect to its broker), or choose another folder"
                    ) from exc
                time.sleep(0.1)
            else:
                return

    def _cluster_id(self) -> str:
        file = self.path / "cluster.json"
        if not file.exists():
            strangers = [item.name for item in self.path.iterdir() if not item.name.startswith(".")]
            if strangers:
                raise UnusableSetting(
                    f"the folder {self.path} is not empty and holds no embedded Kafka "
                    f"(found {sorted(strangers)[0]!r}): choose an empty or a new folder"
                )
            cluster = {"cluster_id": kafka_uuid(), "brokers": self.brokers}
            self.write("cluster.json", json.dumps(cluster, indent=2) + "\n")
            return str(cluster["cluster_id"])
        try:
            cluster = json.loads(file.read_text(encoding="utf-8"))
            found, cluster_id = int(cluster["brokers"]), str(cluster["cluster_id"])
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise UnusableSetting(
                f"cannot read {file}: {exc!r}; remove the data folder to begin anew"
            ) from exc
        if found != self.brokers:
            raise UnusableSetting(
                f"the data folder {self.path} was made for {found} broker(s), not {self.brokers}: "
                f"start {found}, or choose another folder"
            )
        return cluster_id
