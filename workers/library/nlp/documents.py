"""The documents of a knowledge base, and the passages they are cut into."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from workers.errors import LoadError
from workers.library.nlp.sentences import sentences_of

SUFFIXES: Final = (".md", ".txt", ".rst")
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_PASSAGES: Final = 200_000
LONG: Final = 700
"""Characters a passage has at most, unless one sentence is longer."""
_HEADING = re.compile(r"^(?P<marks>#{1,6})[^\S\n]+(?P<title>.+?)[^\S\n]*#*[^\S\n]*$", re.MULTILINE)
_BLOCKS = re.compile(r"(?:[^\n]*\S[^\n]*(?:\n|$))+")
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)


class Document(msgspec.Struct, frozen=True):
    """`id` names it in answers: its path below the folder, or what the JSON line says."""

    id: Annotated[str, Meta(min_length=1, max_length=500)]
    text: str
    title: str = ""


class Passage(NamedTuple):
    """documents[document].text[start:end], under the headings `title`."""

    document: int
    start: int
    end: int
    title: str


def read_documents(path: Path) -> list[Document]:
    """Of a folder all .md, .txt and .rst files, by name; of a .jsonl file `{"id", "text", "title"}` a line.

    Raises:
        LoadError: nothing there, no text, too much, or a line that is no document.
    """
    if path.is_dir():
        files = [p for p in sorted(path.rglob("*")) if p.suffix in SUFFIXES and p.is_file()]
        files = [p for p in files if not any(part.startswith(".") for part in p.relative_to(path).parts)]
        _small(path, files)
        found = [Document(p.relative_to(path).as_posix(), _text(p)) for p in files]
    elif path.suffix == ".jsonl" and path.is_file():
        _small(path, [path])
        found = list(_lines(path))
    else:
        raise LoadError(
            f"knowledge base {path}: no folder and no .jsonl file; give a folder of {', '.join(SUFFIXES)}"
        )
    if not any(document.text.strip() for document in found):
        raise LoadError(f"knowledge base {path}: there is no text in it")
    return found


def digest_of(documents: Sequence[Document]) -> str:
    """Changes with every name and character."""
    return hashlib.sha256(msgspec.msgpack.encode(documents)).hexdigest()


def passages_of(documents: Sequence[Document]) -> list[Passage]:
    """In order; together they hold all that is no heading and no space.

    Raises:
        LoadError: more than MOST_PASSAGES.
    """
    found = [passage for place, document in enumerate(documents) for passage in _passages(place, document)]
    if len(found) > MOST_PASSAGES:
        raise LoadError(f"the knowledge base has {len(found)} passages; at most {MOST_PASSAGES} are indexed")
    return found


def _small(path: Path, files: Sequence[Path]) -> None:
    size = sum(file.stat().st_size for file in files)
    if size > MOST_BYTES:
        raise LoadError(f"knowledge base {path}: {size} bytes of text; at most {MOST_BYTES} are indexed")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is no UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise LoadError(f"knowledge base: {path} cannot be read: {why}") from error


def _lines(path: Path) -> Iterator[Document]:
    seen: set[str] = set()
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            document = msgspec.json.decode(line, type=Document)
        except (msgspec.DecodeError, RecursionError) as error:
            raise LoadError(f'{path}:{number}: no {{"id": text, "text": text}}: {error}') from error
        if document.id in seen:
            raise LoadError(f"{path}:{number}: the id of another line; give each its own")
        seen.add(document.id)
        yield document


def _passages(place: int, document: Document) -> Iterator[Passage]:
    text = document.text
    fences = [match.span() for match in _FENCE.finditer(text)]
    inside = [m for m in _HEADING.finditer(text) if not any(a <= m.start() < b for a, b in fences)]
    levels: dict[int, str] = {0: document.title} if document.title else {}
    edges = [(0, "", 0), *((m.end(), m["title"], len(m["marks"])) for m in inside)]
    stops = [*(m.start() for m in inside), len(text)]
    for (start, title, level), stop in zip(edges, stops, strict=True):
        if level:
            levels = {k: name for k, name in levels.items() if k < level} | {level: title}
        path = " > ".join(levels.values())
        for begin, end in _pieces(text, start, stop):
            yield Passage(place, begin, end, path)


def _pieces(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Paragraphs, short ones together, long ones cut between sentences."""
    open_at: tuple[int, int] | None = None
    for begin, end in _parts(text, start, stop):
        if open_at is None:
            open_at = begin, end
        elif end - open_at[0] <= LONG:
            open_at = open_at[0], end
        else:
            yield open_at
            open_at = begin, end
    if open_at is not None:
        yield open_at


def _parts(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    for match in _BLOCKS.finditer(text, start, stop):
        if match.end() - match.start() <= LONG:
            yield match.start(), match.end()
        else:
            for span in sentences_of(match[0]):
                yield from _cut(text, match.start() + span.start, match.start() + span.end)


def _cut(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """A sentence; what has no end for long (tables, logs, scripts whose marks are unknown) in parts, between
    words where there are any: the time of an answer grows with its passages."""
    while stop - start > LONG:
        space = max((text.rfind(mark, start + 1, start + LONG) for mark in " \t\n，,"), default=-1)
        after = space + 1 if space > 0 else start + LONG
        end = after
        while text[end - 1].isspace():
            end -= 1
        yield start, end
        start = after
        while text[start].isspace():
            start += 1
    yield start, stop
