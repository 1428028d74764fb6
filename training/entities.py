"""Trains the English entity tagger of `nlp/entities`: `python -m training.entities`.

A conditional random field, fitted by python-crfsuite (L-BFGS, deterministic) on what is in
`training/data/entities` (its README says what). `python -m training.entities --measure FOLDER` measures the
taggers of both languages on corpora of the same line format that lie elsewhere. Needs the dependency group
`models`; some minutes on one core. The Chinese tagger is written by `training.entities_chinese`.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import random
import re
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np

from training.entity_words import DATA, Row, Span, lexicon, made_up, read, renamed
from workers.library.nlp.cues import Lexicon, english_features, english_units
from workers.library.nlp.names import MODELS, names_in, read_lexicon
from workers.library.nlp.tagger import write_tagger
from workers.models.cards import read_card, write_card

KINDS: Final = ("person", "organization", "place")
ROOT: Final = Path(__file__).parents[1]
OWN: Final = ROOT / "tests" / "data" / "nlp"
_BANK: Final = ROOT / "examples" / "demo" / "data" / "banking77_train.csv"
_SETTINGS: Final = {
    "c1": 0.03,
    "c2": 0.05,
    "max_iterations": 100,
    "feature.possible_transitions": True,
}
_LEAST_WEIGHT: Final = 0.08
_UNKNOWN: Final = 0.15


def real_rows() -> tuple[list[Row], list[Row]]:
    """Sentences that others wrote: with marks, and questions to a bank, in which there are no names."""
    marked = [row for path in sorted(DATA.glob("en_questions_*.txt.gz")) for row in read(path)]
    with _BANK.open(encoding="utf-8", newline="") as file:
        asked: list[Row] = [(row["text"], []) for row in csv.DictReader(file)]
    return marked + read(DATA / "en_documents.txt.gz"), asked


def rows_of(real: list[Row], asked: list[Row]) -> list[Row]:
    """What is trained on: those, again with other names, simulated ones, and some in other letters."""
    simulated = made_up(8000, 3)
    lower = _styled(simulated, 9, str.lower) + _styled(real, 25, str.lower)
    titled = _styled(real, 20, _titled) + _styled(asked, 25, _titled)
    loud = _styled(real, 50, str.upper) + _styled(asked, 60, str.upper)
    return real + renamed(real, 1, 0.7) + simulated + lower + titled + loud + asked[::8]


def _styled(rows: list[Row], step: int, style: Callable[[str], str]) -> list[Row]:
    """Each `step`th row as `style` writes it, where that moves no character."""
    return [(style(text), spans) for text, spans in rows[::step] if len(style(text)) == len(text)]


def _titled(text: str) -> str:
    return re.sub(r"(?<![\w'’])\w", lambda match: match[0].upper(), text)


def features_of(text: str, words: Lexicon) -> tuple[list[Any], list[list[str]]]:
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


def fit(rows: list[Row], words: Lexicon, file: Path) -> None:
    """Of some sentences the lexicon does not know the names, so that what stands around them is learnt."""
    import pycrfsuite

    rng = random.Random(5)
    nameless = {word: ("n" if "n" in kinds else "", group) for word, (kinds, group) in words.items()}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=_SETTINGS, verbose=False)
    for text, spans in rows:
        units, features = features_of(text, nameless if rng.random() < _UNKNOWN else words)
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
        if abs(weight) >= _LEAST_WEIGHT:
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


def score(rows: list[Row]) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each kind and of all: an entity counts with both ends and kind right."""
    right, said, there = Counter[str](), Counter[str](), Counter[str]()
    for text, spans in rows:
        found = {(name.start, name.end, name.kind) for name in names_in(text)}
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


def own_rows(language: str) -> list[Row]:
    """The sentences of this project that are kept apart for measuring."""
    rows = []
    for line in (OWN / f"entities_{language}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        rows.append((row["text"], [(start, end, kind) for start, end, kind in row["names"]]))
    return rows


def write_words(folder: Path, texts: Iterable[str]) -> None:
    lines = [f"{word} {kinds or '-'} {group}" for word, (kinds, group) in lexicon(texts).items()]
    with gzip.GzipFile(folder / "lexicon.txt.gz", "wb", 9, mtime=0) as file:
        file.write("\n".join(lines).encode())


def build() -> None:
    folder = MODELS / "entities-en" / "1"
    folder.mkdir(parents=True, exist_ok=True)
    real, asked = real_rows()
    write_words(folder, (text for text, _ in real + asked))
    fit(rows_of(real, asked), read_lexicon(folder), folder / "tagger.npz")
    tell(
        "en",
        {
            "licence": "Apache-2.0",
            "source": "trained on questions of MMLU (MIT) as spaCy's en_core_web_sm (MIT, Explosion) marks"
            " them, synthetic documents of presidio-research (MIT), questions of Banking77 (CC-BY-4.0),"
            " sentences of this project; names of Faker (MIT) and GeoNames (CC-BY-4.0), groups of words by"
            " wordllama (MIT)",
            "trained_by": "training/entities.py",
        },
    )


def tell(language: str, more: dict[str, Any]) -> None:
    """Writes the card, with what the held-out sentences give; figures on public corpora stay as they are."""
    folder = MODELS / f"entities-{language}" / "1"
    files = sorted(path for path in folder.iterdir() if path.name != "card.json")
    told = read_card(folder) if (folder / "card.json").exists() else {}
    figures = [{"data": f"entities_{language}", **score(own_rows(language))}]
    figures += told.get("figures", [])[1:]
    card = {
        "name": f"entities-{language}",
        "version": "1",
        "capability": "nlp/entities",
        "side": "local",
        "model_type": "function",
        **more,
        "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        "size_bytes": sum(path.stat().st_size for path in files),
        "figures": figures,
        "quality": quality(figures),
    }
    write_card(folder, card)
    sys.stdout.write(json.dumps(card, indent=1, ensure_ascii=False) + "\n")


_TOLD: Final = {
    "entities_en": "own English sentences",
    "entities_zh": "own Chinese sentences",
    "en_ewt_test": "UNER English-EWT test",
    "en_pud": "UNER English-PUD",
    "zh_test": "UNER Chinese-GSDSimp test",
}


def quality(figures: list[dict[str, Any]]) -> str:
    """One line; the corpora are public ones that are not in the repository and were not trained on."""
    return "; ".join(
        f"{_TOLD[row['data']]} F1 {row['all']['f1']}"
        f" ({row['person']['f1']} / {row['organization']['f1']} / {row['place']['f1']})"
        for row in figures
    )


def measure(folder: Path) -> None:
    """Files NAME.txt.gz of `folder`; those that the cards tell of are written into them."""
    for path in sorted(folder.glob("*.txt.gz")):
        name = path.name.removesuffix(".txt.gz")
        row = {"data": name, **score(read(path))}
        sys.stdout.write(json.dumps(row) + "\n")
        if name in _TOLD:
            place = MODELS / f"entities-{name[:2]}" / "1"
            card = read_card(place)
            figures = [old for old in card["figures"] if old["data"] != name] + [row]
            write_card(place, {**card, "figures": figures, "quality": quality(figures)})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]))
    else:
        build()
