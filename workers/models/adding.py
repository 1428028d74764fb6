"""Adding a version: its card completed, its check recorded by running it, its manifest written."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from workers.backends import Backend
from workers.errors import LoadError, RepositoryError
from workers.models.cards import read_card
from workers.models.check import DEADLINE_S, Asked, Check, Tolerance, encode_check, record
from workers.models.local_store import sizes_of
from workers.models.manifest import ACTIVE, CARD, CHECK, MANIFEST, File, Manifest, check_path, encode
from workers.models.offering import REMOTE, backend_of, card_of, options_of
from workers.models.pull import hashed
from workers.models.ready import load, within
from workers.models.repository import Repository, nothing, wall_ms
from workers.models.samples import generated
from workers.models.stores import Advance
from workers.models.versions import check_name, next_number

RECORD_S = 600.0
"""Loading a model and recording its check may take so long."""


class Added(NamedTuple):
    """What was added; `took_ms` is what the model took to load and answer its check."""

    manifest: Manifest
    check: Check
    card: dict[str, Any]
    took_ms: float


class Asking(NamedTuple):
    """What the check asks: `rows`, None to make some up; and how near answers must be."""

    rows: Sequence[Asked] | None = None
    tolerance: Tolerance = Tolerance()


def add(
    repository: Repository,
    source: Path,
    fields: Mapping[str, Any],
    asking: Asking | None = None,
    advance: Advance = nothing,
) -> Added:
    """Copy a model folder, or a model's file, into a new version of `repository`. Blocks.

    `fields` are set in the card over what the folder's own says (`name`, `version`, `capability`, ...).
    Without a name it is the folder's or file's, without a version the next whole number.

    Raises:
        RepositoryError: the version is there already, or cannot be written.
        LoadError: the card or the model cannot be used; the text says why.
    """
    files = _files_of(source)
    card = _completed(repository, source, files, fields)
    with _staged(files, card) as folder:
        document = read_card(folder)
        card_of(document, str(source))
        began = time.monotonic()
        check = _recorded(folder, document, asking or Asking())
        took_ms = (time.monotonic() - began) * 1000.0
        (folder / CHECK).write_bytes(encode_check(check))
        manifest = _manifest(folder, card["name"], card["version"])
        (folder / MANIFEST).write_bytes(encode(manifest))
        placed = {path: folder / path for path in (*manifest.files, MANIFEST)}
        repository.place(card["name"], card["version"], placed, advance)
    return Added(manifest, check, card, took_ms)


def size_of(source: Path) -> int:
    """Bytes that an `add` of `source` copies, nearly."""
    return sum(path.stat().st_size for path in _files_of(source).values())


def _files_of(source: Path) -> dict[str, Path]:
    try:
        if source.is_file():
            return {check_path(source.name): source}
        sizes = sizes_of(source)
    except OSError as error:
        raise RepositoryError(f"{source} cannot be read: {error.strerror or error}") from error
    left_out = {MANIFEST, CHECK, ACTIVE}
    files = {check_path(path): source / path for path in sorted(sizes) if path not in left_out}
    if not files:
        raise RepositoryError(f"{source} is no file, and no folder with files: give a model or its folder")
    return files


def _completed(
    repository: Repository, source: Path, files: Mapping[str, Path], fields: Mapping[str, Any]
) -> dict[str, Any]:
    card = {**(read_card(files[CARD]) if CARD in files else {}), **fields}
    if source.is_file() and source.suffix == ".onnx":
        card.setdefault("model_type", "onnx")
        card["options"] = {"path": source.name, **(card.get("options") or {})}
    name = check_name(str(card.get("name") or (source.stem if source.is_file() else source.resolve().name)))
    given = card.get("version")
    there = repository.versions(name)
    version = check_name(str(given), "version") if given else next_number(there)
    if version in there:
        raise RepositoryError(
            f"{name} {version} is there already, and a version is never overwritten: give it another number "
            f"(--as VERSION), for example {next_number(there)}"
        )
    return {**card, "name": name, "version": version}


@contextmanager
def _staged(files: Mapping[str, Path], card: Mapping[str, Any]) -> Iterator[Path]:
    """A folder as the version's will be, for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="edgeway-add-") as name:
        folder = Path(name)
        try:
            for path, source in files.items():
                if path != CARD:
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    _link(source.resolve(), folder / path)
            text = json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
            (folder / CARD).write_text(text, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise RepositoryError(f"{folder}: {getattr(error, 'strerror', None) or error}") from error
        yield folder


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def _recorded(folder: Path, document: Mapping[str, Any], asking: Asking) -> Check:
    card = card_of(document, str(folder / CARD))

    def work() -> Check:
        rows = asking.rows
        if rows is None:
            # What asks elsewhere is not asked unless its owner says what: it may cost.
            made_up = card.model_type == "onnx"
            rows = generated(card, options_of(document, folder)) if made_up else []
        began = time.monotonic()
        backend: Backend = backend_of(folder)
        if card.model_type in REMOTE and not rows:
            return Check()  # its service, and the keys to it, need not be where its owner is
        load(backend)
        try:
            check = record(backend, rows, asking.tolerance, RECORD_S)
        finally:
            backend.close()
        took_s = time.monotonic() - began
        return Check(
            rows=check.rows,
            answers=check.answers,
            tolerance=check.tolerance,
            # Of a machine that is ten times as slow.
            deadline_s=round(max(DEADLINE_S, 10 * took_s), 1),
        )

    try:
        return within(RECORD_S, work, abandon=lambda _: None)
    except TimeoutError as error:
        raise LoadError(f"{document['name']} did not load and answer within {RECORD_S:.0f} s") from error


def _manifest(folder: Path, name: str, version: str) -> Manifest:
    files = {path: File(hashed(folder / path).hexdigest(), size) for path, size in sizes_of(folder).items()}
    return Manifest(name=name, version=version, files=dict(sorted(files.items())), created_ms=wall_ms())
