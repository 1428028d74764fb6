"""Kills a change of a repository at every point: `python -m tests.helpers.kill_points CHANGE FOLDER`.

A change is `add`, `activate` or `pull`.

A point is a step that touches the file system, or a piece of a file that was copied. For each one a child
process begins the change and is killed there; what is left is then looked at, and the change made again.
Written is a line of JSON: how many points there were, and what was wrong after which of them.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers.models import placed
from workers.models import local_store, pull
from workers.models.opening import open_store
from workers.models.pull import Cache, verify_folder
from workers.models.repository import Repository

STEPS = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.link",
    "os.utime",
    "os.chmod",
    "os.truncate",
)
MOST = 500


class Repeated:
    """A change, over and over in a folder of its own."""

    def __init__(self, folder: Path, change: str) -> None:
        self.repository = Repository(open_store(str(folder / "repo")))
        self.cache = Cache(folder / "cache", self.repository.store.url)
        self.folder = folder
        self._change = change
        for version in ("1", "2"):
            placed(self.repository, folder, version)
        self.repository.activate("m", "1")
        self.cache.pull(self.repository, "m", "1")
        placed(self.repository, folder, "5")
        (folder / "repo" / "m" / "5").rename(folder / "source")

    def make(self, advance: Callable[[int], None]) -> None:
        """The change itself; it may have been made already."""
        if self._change == "activate":
            self.repository.activate("m", "2")
        elif self._change == "pull":
            self.cache.pull(self.repository, "m", "2", advance)
        elif "5" not in self.repository.versions("m"):
            files = {
                path: self.folder / "source" / path for path in ("card.json", "model.onnx", "manifest.json")
            }
            self.repository.place("m", "5", files, advance)

    def undo(self) -> None:
        """As it was before the change."""
        self.repository.store.remove("m/5")
        local_store.remove_folder(self.cache.pull(self.repository, "m", "2"))
        self.repository.activate("m", "1")

    def wrong(self, done: bool) -> list[str]:
        """What is not as it must be; `done` says that the change was made to its end."""
        found = []
        versions = self.repository.versions("m")
        if not {"1", "2"} <= set(versions) <= {"1", "2", "5"}:
            found.append(f"versions {versions}")
        for version in versions:
            self.repository.verify("m", version)
        active = self.repository.active("m")
        if active is None or active.version not in versions:
            found.append(f"active {active}")
        cached = self.cache.versions("m")
        if "1" not in cached:
            found.append(f"cached {cached}")
        for version in cached:
            verify_folder(self.cache.there("m", version))
        (listed,) = self.repository.models()
        if listed.problem:
            found.append(listed.problem)
        if done:
            made = {
                "add": "5" in versions,
                "activate": active is not None and active.version == "2",
                "pull": "2" in cached,
            }
            if not made[self._change]:
                found.append("not done")
        return found


def killed_at(point: int, change: Callable[[Callable[[int], None]], None]) -> bool:
    """Whether `change` was killed before its end, at its step number `point`."""
    child = os.fork()
    if child == 0:
        steps = 0

        def step(*_: Any) -> None:
            nonlocal steps
            steps += 1
            if steps == point:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(lambda event, _: step() if event in STEPS else None)
        code = 1
        try:
            change(step)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, "the change failed"
    return False


def main(change: str, folder: Path) -> dict[str, Any]:
    local_store.CHUNK = pull.CHUNK = 1500
    repeated = Repeated(folder, change)
    wrong: dict[int, Any] = {}
    for point in range(1, MOST):
        ended = not killed_at(point, repeated.make)
        if found := repeated.wrong(done=ended):
            wrong[point] = found
        repeated.make(lambda _: None)
        if found := repeated.wrong(done=True):
            wrong[point] = ["after it was repeated", *found]
        if ended:
            return {"points": point - 1, "wrong": wrong}
        repeated.undo()
    return {"points": MOST, "wrong": {0: "it never ended"}}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], Path(sys.argv[2]))) + "\n")
