"""People, organisations and places, by the taggers that `training.entities` trains."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from workers.errors import LoadError
from workers.library.nlp.cues import (
    Lexicon,
    chinese_features,
    chinese_units,
    english_features,
    english_units,
)
from workers.library.nlp.sentences import sentences_of
from workers.library.nlp.tagger import Tagger, read_tagger
from workers.library.nlp.tokens import is_chinese

MODELS: Final = Path(__file__).parent / "models"
_MOST_UNITS: Final = 400


class Name(NamedTuple):
    """A name at text[start:end]; `share` is the least probability of its words' tags."""

    kind: str
    start: int
    end: int
    share: float


class Reader(NamedTuple):
    language: Literal["en", "zh"] | str
    tagger: Tagger
    lexicon: Lexicon


@cache
def readers() -> dict[str, Reader]:
    """By language; read once a process.

    Raises:
        LoadError: a model file is not there.
    """
    found = {}
    for language in ("en", "zh"):
        folder = MODELS / f"entities-{language}" / "1"
        try:
            found[language] = Reader(language, read_tagger(folder / "tagger.npz"), read_lexicon(folder))
        except (OSError, KeyError, ValueError) as error:
            raise LoadError(
                f"{folder} cannot be read ({type(error).__name__}); install edgeway anew"
            ) from error
    return found


def read_lexicon(folder: Path) -> dict[str, str]:
    """Empty where the folder has none."""
    file = folder / "lexicon.txt.gz"
    if not file.exists():
        return {}
    lines = gzip.decompress(file.read_bytes()).decode("utf-8").split("\n")
    return dict(line.split(" ", 1) for line in lines)


def find_names(text: str) -> list[Name]:
    """Of the whole text, sentence by sentence, each in the language it is written in."""
    found: list[Name] = []
    known = readers()
    for start, end in sentences_of(text):
        sentence = text[start:end]
        reader = known["zh" if is_chinese(sentence) else "en"]
        found += [Name(n.kind, n.start + start, n.end + start, n.share) for n in spans_of(reader, sentence)]
    return found


def spans_of(reader: Reader, sentence: str) -> list[Name]:
    """The names of one sentence, in order, without overlap. A sentence without end is read in pieces."""
    chinese = reader.language == "zh"
    units = chinese_units(sentence) if chinese else english_units(sentence)
    found: list[Name] = []
    for at in range(0, len(units), _MOST_UNITS):
        part = units[at : at + _MOST_UNITS]
        whole = len(units) <= _MOST_UNITS
        # The dictionary reads the text of the piece alone, at places counted from its start.
        begin = 0 if whole else part[0].start
        piece = sentence if whole else sentence[begin : part[-1].end]
        moved = (
            part
            if whole
            else [unit._replace(start=unit.start - begin, end=unit.end - begin) for unit in part]
        )
        features = chinese_features(piece, moved) if chinese else english_features(part, reader.lexicon)
        tags, shares = reader.tagger.tag(features)
        found += _joined([(unit.start, unit.end) for unit in part], tags, [float(share) for share in shares])
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
