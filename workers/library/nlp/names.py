"""People, organisations and places: English by a tagger that `training.entities` trains, Chinese by LAC's
network.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from workers.errors import LoadError
from workers.library.nlp.chinese import Network, names_of, read_network
from workers.library.nlp.cues import Lexicon, english_features, english_units
from workers.library.nlp.sentences import sentences_of
from workers.library.nlp.tagger import Tagger, read_tagger
from workers.library.nlp.tokens import is_chinese

MODELS: Final = Path(__file__).parent / "models"
_MOST_UNITS: Final = 400
_STOPPED: Final = re.compile(r"\b(?:\w|Inc|Corp|Co|Ltd|Bros|Jr|Sr|[SN]\.[AV])\.$|[!)+]$", re.IGNORECASE)


class Name(NamedTuple):
    """A name at text[start:end]; `share` is the least probability of its words' tags."""

    kind: str
    start: int
    end: int
    share: float


class English(NamedTuple):
    tagger: Tagger
    lexicon: Lexicon


@cache
def english() -> English:
    """Read once a process.

    Raises:
        LoadError: a model file is not there.
    """
    folder = MODELS / "entities-en" / "1"
    with _told(folder):
        return English(read_tagger(folder / "tagger.npz"), read_lexicon(folder))


@cache
def chinese() -> Network:
    """Read once a process.

    Raises:
        LoadError: a model file is not there.
    """
    folder = MODELS / "entities-zh" / "1"
    with _told(folder):
        return read_network(folder)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise LoadError(f"{folder} cannot be read ({type(error).__name__}); install edgeway anew") from error


def read_lexicon(folder: Path) -> dict[str, tuple[str, str]]:
    """Of each word what it may be and the group of like words."""
    lines = gzip.decompress((folder / "lexicon.txt.gz").read_bytes()).decode("utf-8").split("\n")
    rows = [line.split(" ") for line in lines]
    return {word: (kinds.replace("-", ""), group) for word, kinds, group in rows}


def find_names(text: str) -> list[Name]:
    """Of the whole text, sentence by sentence, each in the language it is written in."""
    found: list[Name] = []
    for start, end in sentences_of(text):
        found += [
            name._replace(start=name.start + start, end=name.end + start)
            for name in names_in(text[start:end])
        ]
    return found


def names_in(sentence: str) -> list[Name]:
    """The names of one sentence, in order, without overlap. A sentence without end is read in pieces."""
    if is_chinese(sentence):
        return _chinese_names(sentence)
    reader = english()
    units = english_units(sentence)
    found: list[Name] = []
    for at in range(0, len(units), _MOST_UNITS):
        part = units[at : at + _MOST_UNITS]
        tags, shares = reader.tagger.tag(english_features(part, reader.lexicon))
        found += _joined([(unit.start, unit.end) for unit in part], tags, [float(share) for share in shares])
    return [name for name in (_trimmed(name, sentence) for name in found) if name.start < name.end]


def _trimmed(name: Name, text: str) -> Name:
    """Without marks at its ends; a full stop stays after `Inc` or a letter alone, as in `U.S.`."""
    start, end = name.start, name.end
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and not (text[end - 1].isalnum() or _STOPPED.search(text, start, end)):
        end -= 1
    return name._replace(start=start, end=end)


def _chinese_names(sentence: str) -> list[Name]:
    network = chinese()
    found = []
    for at in range(0, len(sentence), _MOST_UNITS):
        part = sentence[at : at + _MOST_UNITS]
        names = names_of(network.pieces(part), part)
        found += [Name(n.tag, n.start + at, n.end + at, n.share) for n in names]
    return found


def _joined(places: list[tuple[int, int]], tags: list[str], shares: list[float]) -> list[Name]:
    found: list[Name] = []
    inside = False
    for (start, end), tag, share in zip(places, tags, shares, strict=True):
        if tag.startswith("I-") and inside:
            last = found[-1]
            found[-1] = last._replace(end=end, share=min(last.share, share))
        elif tag != "O":
            found.append(Name(tag[2:], start, end, share))
        inside = tag != "O"
    return found
