"""Trains the entity taggers of `nlp/entities`: `python -m training.entities [en] [zh]`.

Conditional random fields, fitted by python-crfsuite (L-BFGS, deterministic) on the corpora of
`training/data/entities` (its README names them) and simulated business news; measured on test parts of
UNER that are not trained on. Needs the dependency group `models`. A quarter of an hour on one core.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np

from training.entity_words import Row, Span, lexicon, made_up, renamed
from workers.library.nlp.cues import chinese_features, chinese_units, english_features, english_units
from workers.library.nlp.names import MODELS, Reader, read_lexicon, spans_of
from workers.library.nlp.tagger import read_tagger, write_tagger
from workers.models.cards import write_card

DATA: Final = Path(__file__).parent / "data" / "entities"
KINDS: Final = ("person", "organization", "place")
TESTS: Final = {"en": ("en_ewt_test", "en_pud"), "zh": ("zh_test",)}
_ROLES_TEXT = """
lender borrower bank company executive employee tenant landlord lessee lessor seller buyer purchaser
licensee licensor consultant guarantor holder party parties customer agent trustee employer manager
contractor grantee optionee director client subtenant sublandlord
"""
_ROLES: Final = frozenset(_ROLES_TEXT.split())
_SOURCES: Final = {
    "en": "WikiGold, Broad Twitter Corpus, WNUT-17 (CC-BY-4.0), SEC filings (CC-BY-3.0),"
    " UNER English-EWT dev (CC-BY-SA-4.0), simulated business news; names of Faker (MIT), GeoNames (CC-BY)",
    "zh": "UNER Chinese-GSDSimp train (CC-BY-SA-4.0), simulated business news; jieba's dictionary (MIT)",
}
_SETTINGS: Final = {
    "c1": 0.05,
    "c2": 0.1,
    "max_iterations": 120,
    "feature.possible_transitions": True,
}


def read(name: str) -> list[Row]:
    """Sentences with (start, end, kind) of each entity."""
    rows: list[Row] = []
    with gzip.open(DATA / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
        for line in file:
            text, _, marks = line.rstrip("\n").partition("\t")
            parts = [mark.split(",") for mark in marks.split(";") if mark]
            rows.append((text, [(int(start), int(end), kind) for start, end, kind in parts]))
    return rows


def rows_of(language: str, words: dict[str, str]) -> list[Row]:
    """What is trained on."""
    if language == "zh":
        real = read("zh_train")
        return real + renamed(real, 1, words, "zh") + made_up("zh", 1500, 3, words)
    clean = read("en_wikigold") + read("en_ewt_dev")
    more = read("en_wnut") + read("en_btc") + [_without_roles(*row) for row in read("en_sec_train")]
    again = renamed(clean, 1, words, "en") + renamed(clean, 2, words, "en")
    return clean + more + again + made_up("en", 2000, 3, words)


def _without_roles(text: str, spans: list[Span]) -> Row:
    """The contracts mark `Lender` and the like as people, who are none here."""
    kept = [s for s in spans if s[2] != "person" or not _ROLES & set(text[s[0] : s[1]].lower().split())]
    return text, kept


def features_of(language: str, text: str, words: dict[str, str]) -> tuple[list[Any], list[list[str]]]:
    if language == "zh":
        units = chinese_units(text)
        return units, chinese_features(text, units)
    units = english_units(text)
    return units, english_features(units, words)


def tags_of(units: Iterable[Any], spans: list[Span]) -> list[str]:
    """B-KIND, I-KIND or O of each unit."""
    tags = []
    for unit in units:
        tag = "O"
        for start, end, kind in spans:
            if unit.start < end and unit.end > start:
                tag = f"{'B' if unit.start <= start else 'I'}-{kind}"
        tags.append(tag)
    return tags


def fit(language: str, words: dict[str, str], file: Path) -> None:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=_SETTINGS, verbose=False)
    for text, spans in rows_of(language, words):
        units, features = features_of(language, text, words)
        if units:
            trainer.append(features, tags_of(units, spans))
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/model")
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        info, tags = tagger.info(), tuple(sorted(tagger.labels()))
        tagger.close()
    place = {tag: k for k, tag in enumerate(tags)}
    weights: dict[int, Any] = {}
    for (name, tag), weight in info.state_features.items():
        key = zlib.crc32(name.encode())
        weights.setdefault(key, np.zeros(len(tags), np.float32))[place[tag]] += weight
    moves = np.zeros((len(tags), len(tags)), np.float32)
    for (before, after), weight in info.transitions.items():
        moves[place[before], place[after]] = weight
    for before in tags:
        for after in tags:
            if after[0] == "I" and before[2:] != after[2:]:
                moves[place[before], place[after]] = -100
    write_tagger(file, tags, weights, moves)


def score(reader: Reader, rows: list[Row]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each kind and of all: an entity counts with both ends and kind right."""
    right, said, there = Counter[str](), Counter[str](), Counter[str]()
    for text, spans in rows:
        found = {(name.start, name.end, name.kind) for name in spans_of(reader, text)}
        said.update(kind for *_, kind in found)
        there.update(kind for *_, kind in spans)
        right.update(kind for *_, kind in found & set(spans))
    for counts in (right, said, there):
        counts["all"] = sum(counts.values())
    return {kind: _figures(right[kind], said[kind], there[kind]) for kind in (*KINDS, "all")}


def _figures(right: int, said: int, there: int) -> dict[str, float]:
    return {
        "precision": round(right / max(1, said), 3),
        "recall": round(right / max(1, there), 3),
        "f1": round(2 * right / max(1, said + there), 3),
        "entities": there,
    }


def build(language: str) -> None:
    folder = MODELS / f"entities-{language}" / "1"
    folder.mkdir(parents=True, exist_ok=True)
    if language == "en":
        lines = [f"{word} {kinds}" for word, kinds in lexicon().items()]
        with gzip.GzipFile(folder / "lexicon.txt.gz", "wb", 9, mtime=0) as file:
            file.write("\n".join(lines).encode())
    words = read_lexicon(folder)
    fit(language, words if language == "en" else {}, folder / "tagger.npz")
    reader = Reader(language, read_tagger(folder / "tagger.npz"), words)
    files = sorted(path for path in folder.iterdir() if path.name != "card.json")
    figures = [{"data": name, **score(reader, read(name))} for name in TESTS[language]]
    card = {
        "name": f"entities-{language}",
        "version": "1",
        "capability": "nlp/entities",
        "side": "local",
        "model_type": "function",
        "licence": "CC-BY-SA-4.0 (the weights; as part of what they were trained on)",
        "source": _SOURCES[language],
        "trained_by": "training/entities.py",
        "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        "size_bytes": sum(path.stat().st_size for path in files),
        "figures": figures,
        "quality": quality(figures),
    }
    write_card(folder, card)
    sys.stdout.write(json.dumps(card, indent=1, ensure_ascii=False) + "\n")


def quality(figures: list[dict[str, Any]]) -> str:
    names = {
        "en_ewt_test": "UNER English-EWT test",
        "en_pud": "UNER English-PUD",
        "zh_test": "UNER Chinese-GSDSimp test",
    }
    told = [
        f"{names[row['data']]}: F1 {row['all']['f1']} (person {row['person']['f1']}, organization"
        f" {row['organization']['f1']}, place {row['place']['f1']}; precision {row['all']['precision']},"
        f" recall {row['all']['recall']})"
        for row in figures
    ]
    return "; ".join(told)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ("en", "zh"):
        build(chosen)
