"""A model repository: what is in it, which version is active, and what may be changed.

<root>/<name>/<version>/card.json, model files, check.json, manifest.json
<root>/<name>/active.json
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workers.errors import Damaged, RepositoryError
from workers.models.manifest import (
    ACTIVE,
    CARD,
    KEPT,
    MANIFEST,
    Active,
    Manifest,
    activated,
    check_files,
    decode_active,
    decode_manifest,
    digest_of,
    encode,
    rolled_back,
)
from workers.models.stores import Advance, Missing, Store
from workers.models.versions import check_name, in_order, is_name

LOOK_AGAIN_S = (0.05, 0.1, 0.2)
"""Pauses before a version that was just added is looked at again."""


class Listed(NamedTuple):
    """A model: its versions, the oldest first, and which is active; `card` is of that, or else the newest.

    `problem` says what cannot be read.
    """

    name: str
    versions: list[str]
    active: Active | None
    card: dict[str, Any]
    problem: str = ""


class Pruned(NamedTuple):
    """A version that was removed, or would be, and its bytes."""

    name: str
    version: str
    bytes: int


def wall_ms() -> int:
    """Milliseconds since the epoch."""
    return int(time.time() * 1000)


def nothing(_count: int) -> None:
    """Progress that nobody looks at."""


class Repository:
    """The models in `store`. All methods raise RepositoryError where it does not answer as it should."""

    def __init__(self, store: Store, now: Callable[[], int] = wall_ms) -> None:
        self.store = store
        self._now = now

    def names(self) -> list[str]:
        """The models."""
        return [name for name in self.store.folders("") if is_name(name)]

    def versions(self, name: str) -> list[str]:
        """Complete versions of a model, the oldest first: those that have a manifest."""
        found = (v for v in self.store.folders(check_name(name)) if is_name(v))
        return in_order(v for v in found if self._there(f"{name}/{v}/{MANIFEST}"))

    def active(self, name: str) -> Active | None:
        """Which version is active, None where none is.

        Raises:
            Damaged: `active.json` cannot be used.
        """
        path = f"{check_name(name)}/{ACTIVE}"
        try:
            return decode_active(self.store.read(path), f"{self.store.url}/{path}")
        except Missing:
            return None

    def manifest(self, name: str, version: str) -> Manifest:
        """The manifest of a version.

        Raises:
            Missing: there is no such version, or it was never completed.
            Damaged: it is of another model or version, or cannot be used.
        """
        return self.raw_manifest(name, version)[0]

    def raw_manifest(self, name: str, version: str) -> tuple[Manifest, bytes]:
        """The manifest, and the bytes of its file."""
        path = f"{check_name(name)}/{check_name(version, 'version')}/{MANIFEST}"
        where = f"{self.store.url}/{path}"
        try:
            raw = self.store.read(path)
        except Missing as error:
            known = ", ".join(self.versions(name)) or "none"
            raise Missing(f"{where} is not there: {name} has no version {version}, but {known}") from error
        found = decode_manifest(raw, where)
        if (found.name, found.version) != (name, version):
            raise Damaged(f"{where} is of {found.name} {found.version}: somebody renamed a folder")
        return found, raw

    def card(self, name: str, version: str) -> dict[str, Any]:
        """The card of a version, as its manifest has it.

        Raises:
            Missing: there is no such version.
            Damaged: its card is not that of the manifest, or no JSON object.
        """
        manifest = self.manifest(name, version)
        path = f"{name}/{version}/{CARD}"
        try:
            raw = self.store.read(path)
        except Missing as error:
            raise Damaged(f"{self.store.url}/{path} is missing, which the manifest lists") from error
        if digest_of(raw) != manifest.files[CARD].sha256:
            raise Damaged(f"{self.store.url}/{path} is not the card of the manifest: somebody changed it")
        try:
            card = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise Damaged(f"{self.store.url}/{path} is no JSON") from error
        if not isinstance(card, dict):
            raise Damaged(f"{self.store.url}/{path} is no JSON object")
        return card

    def models(self) -> list[Listed]:
        """All of them; what cannot be read of one is told in its place."""
        return [self._listed(name) for name in self.names()]

    def verify(self, name: str, version: str, advance: Advance = nothing) -> Manifest:
        """Read every file of a version, and compare.

        Raises:
            Damaged: names the first file that is not as in the manifest.
        """
        manifest = self.manifest(name, version)
        where = f"{self.store.url}/{name}/{version}"
        sizes = self.store.sizes(f"{name}/{version}")
        sizes.pop(MANIFEST, None)
        check_files(manifest, sizes, where)
        for path, file in manifest.files.items():
            digest = hashlib.sha256()
            for chunk in self.store.chunks(f"{name}/{version}/{path}", 0):
                digest.update(chunk)
                advance(len(chunk))
            if digest.hexdigest() != file.sha256:
                raise Damaged(f"{where}: {path} is not what was added: its SHA-256 differs")
        return manifest

    def place(
        self, name: str, version: str, files: Mapping[str, Path], advance: Advance = nothing
    ) -> Manifest:
        """Put a complete version there; `files` hold its manifest too.

        Raises:
            RepositoryError: that version is there.
        """
        under = f"{check_name(name)}/{check_name(version, 'version')}"
        with self.store.locked(name):
            self.store.place(under, files, advance)
        for pause_s in LOOK_AGAIN_S:
            try:
                return self._complete(name, version)
            except Damaged:
                # Somebody adds the same version and lost: where writes are not atomic (`memory://`) a file
                # that he writes once more is short for a moment.
                time.sleep(pause_s)
        return self._complete(name, version)

    def _complete(self, name: str, version: str) -> Manifest:
        """The manifest of a version whose files are all there.

        Raises:
            Damaged: names one that is not, or not whole.
        """
        under = f"{name}/{version}"
        sizes = self.store.sizes(under)
        sizes.pop(MANIFEST, None)
        manifest = self.manifest(name, version)
        check_files(manifest, sizes, f"{self.store.url}/{under}")
        return manifest

    def activate(self, name: str, version: str, *, unchecked: bool = False) -> Active:
        """Have `version` served; the workers take it up within seconds.

        Raises:
            Missing: there is no such version.
        """
        self.manifest(name, version)
        with self.store.locked(name):
            found = activated(self._active_or_none(name), version, self._now(), unchecked=unchecked)
            self.store.write(f"{name}/{ACTIVE}", encode(found))
        return found

    def rollback(self, name: str) -> Active:
        """Have the version before served again.

        Raises:
            RepositoryError: there is none, or it is gone.
        """
        check_name(name)
        with self.store.locked(name):
            found = rolled_back(self.active(name), name, self._now())
            self.manifest(name, found.version)
            self.store.write(f"{name}/{ACTIVE}", encode(found))
        return found

    def prune(self, name: str, keep: int = KEPT, *, dry_run: bool = False) -> list[Pruned]:
        """Remove all but `keep` versions: the active one, those that were active before it, then older ones.
        Gives what was removed.

        Versions newer than the active one stay beside these: they wait to be activated. Where nothing is
        active the newest are kept.
        """
        if keep < 1:
            raise RepositoryError("at least one version is kept; give --keep 1 or more")
        with self.store.locked(check_name(name)):
            versions = self.versions(name)
            gone = to_prune(versions, self.active(name), keep)
            found = [Pruned(name, v, sum(self.store.sizes(f"{name}/{v}").values())) for v in gone]
            if not dry_run:
                for each in found:
                    self.store.remove(f"{name}/{each.version}")
        return found

    def _active_or_none(self, name: str) -> Active | None:
        try:
            return self.active(name)
        except Damaged:
            return None

    def _there(self, path: str) -> bool:
        try:
            self.store.read(path)
        except Missing:
            return False
        return True

    def _listed(self, name: str) -> Listed:
        versions = self.versions(name)
        active, problems = None, []
        try:
            active = self.active(name)
        except Damaged as error:
            problems.append(str(error))
        if active is not None and active.version not in versions:
            problems.append(f"{active.version} is active and not there")
        shown = active.version if active is not None and active.version in versions else None
        card: dict[str, Any] = {}
        if shown is not None or versions:
            try:
                card = self.card(name, shown or versions[-1])
            except RepositoryError as error:
                problems.append(str(error))
        return Listed(name, versions, active, card, "; ".join(problems))


def to_prune(versions: list[str], active: Active | None, keep: int) -> list[str]:
    """The versions to remove, the oldest first, by the rule of `Repository.prune`."""
    order = in_order(versions)
    if active is None or active.version not in order:
        return order[:-keep]
    at = order.index(active.version)
    before = [v for v in active.previous if v in order]
    older = [v for v in reversed(order[:at]) if v not in before]
    kept = {active.version, *(before + older)[: keep - 1]}
    waiting = set(order[at:]) - set(before)
    return [v for v in order if v not in kept | waiting]
