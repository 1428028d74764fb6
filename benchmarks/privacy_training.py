"""Trains the classifier of names: `python -m benchmarks.privacy_training SHARED`.

SHARED holds pii/ (the synthetic documents of presidio-research, MIT), banking77/ (CC-BY-4.0; its questions
stand for texts without personal data) and routing_mmlu/ (questions of MMLU, MIT; half of the subjects, and
none of their words that may be a name). Added are sentences of our own with names from the shipped lists.
Writes streams/privacy/data/names.npz.
"""

from __future__ import annotations

import csv
import json
import random
import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.privacy_sentences import CLEAN, PERSONAL
from streams.privacy.classifier import CLASSES, Model
from streams.privacy.features import BUCKETS, Token, features_of, tokens_of
from streams.privacy.lexicon import CITY, COUNTRY, FIRST, LAST, RANK, marks, places

TARGET = Path(__file__).resolve().parents[1] / "streams" / "privacy" / "data" / "names.npz"
KINDS = {"PERSON": 1, "GPE": 2, "STREET_ADDRESS": 3, "ORGANIZATION": 4, "NRP": 5}
SKIP = -1
"""Words that other detectors answer for; they are not learned from."""
SLOTS = {"P": "PERSON", "F": "PERSON", "L": "PERSON", "G": "GPE", "O": "ORGANIZATION"}
DOCUMENTS = Path("pii") / "synth_dataset_v2.json"
THRESHOLD = 0.1
"""How much doubt makes a finding: with whole templates left out, leaks stay well below their bound."""
ACCENTS = {
    "a": "áàäåãâ",
    "e": "éèëêę",
    "i": "íìïî",
    "o": "óòöøõô",
    "u": "úùüûů",
    "s": "šß",
    "c": "çčć",
    "z": "žź",
    "n": "ñň",
}
_FORMS = """
{L} Inc|{L} Ltd|{L} GmbH|{L} & Sons|{L} Group|{L}, {L} and {L}|{L}-{L}|{L} Bank|{X}|{X} Systems|{X} Corp
{X} Technologies|{X} LLC|{X} Holdings|University of {G}|{G} FC|{X} Partners|{W} {X}|{W} {W}|{W} {L}|{X}|{X}
{L} Foundation|{G} Times|{W}{w}
"""
ORGANIZATIONS = tuple(re.split(r"[|\n]", _FORMS.strip()))


class Marked(NamedTuple):
    """A text with its marked spans: start, end and class. Where it is not `sure`, what is not marked and may
    be a name is not learned from.
    """

    text: str
    spans: tuple[tuple[int, int, int], ...] = ()
    sure: bool = True


class Rows(NamedTuple):
    """The words of many texts: the rows of their features end to end, where each word's start, its class."""

    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]


class Names:
    """Random names from the shipped lists."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        known = marks()
        self._first = [word for word, mark in known.items() if mark & FIRST and len(word) > 2]
        self._last = [word for word, mark in known.items() if mark & LAST and len(word) > 2]
        self._city = [
            word for word, mark in known.items() if mark & CITY and len(word) > 3 and mark & RANK in (0, 3, 4)
        ]
        self._places = [place for place in sorted(places()) if place.isascii() and not place.endswith("ish")]
        self._words = [word for word, mark in known.items() if 0 < mark & RANK <= 3 and len(word) > 3]
        self._unheard = Unheard(self._first + self._last + self._city, rng)

    def of(self, slot: str) -> str:
        """A name for a slot of the sentences."""
        pick, chance = self._rng.choice, self._rng.random()
        if slot == "F":
            return self._named(self._first)
        if slot == "L":
            return self._named(self._last)
        if slot == "P":
            middle = f" {pick('ABCDEFGHJKLMNPRST')}." if chance < 0.15 else ""
            return f"{self._named(self._first)}{middle} {self._named(self._last)}"
        if slot == "G":
            if chance < 0.45:
                return pick(self._places).title()
            return self._named(self._city) + (f" {self._named(self._city)}" if chance > 0.9 else "")
        if slot == "X":
            return self._unheard.word().capitalize()
        if slot == "N":
            return str(self._rng.randint(18, 90))
        if slot in "Ww":
            return pick(self._words).capitalize()
        return re.sub(r"\{(\w)\}", lambda match: self.of(match[1]), pick(ORGANIZATIONS))

    def setting(self) -> str:
        """A key and its value, as they stand in inputs."""
        key = " ".join(self._rng.choice(self._words) for _ in range(self._rng.randint(1, 2)))
        number = self._rng.choice((f"{self._rng.randint(0, 2000)}", f"{self._rng.random() * 100:.2f}"))
        return f"{key}: {self._rng.choice((number, number, self._rng.choice(self._words)))}"

    def _named(self, known: Sequence[str]) -> str:
        # A third are names that no list has.
        word = self._unheard.word() if self._rng.random() < 0.33 else self._rng.choice(known)
        if self._rng.random() < 0.15:
            letter = self._rng.choice(word)
            word = word.replace(letter, self._rng.choice(ACCENTS.get(letter, letter)))
        return word.capitalize()


class Unheard:
    """Words that sound like names and are none: a chain of letters, two by two."""

    def __init__(self, known: Sequence[str], rng: random.Random) -> None:
        self._rng = rng
        self._next: dict[str, list[str]] = {}
        for word in rng.sample(known, 20_000):
            edged = f"^^{word}$"
            for at in range(len(edged) - 2):
                self._next.setdefault(edged[at : at + 2], []).append(edged[at + 2])

    def word(self) -> str:
        """One of 4 to 11 letters."""
        while True:
            made = "^^"
            while made[-1] != "$" and len(made) < 14:
                made += self._rng.choice(self._next.get(made[-2:], ["$"]))
            if 6 <= len(made) - 1 <= 13 and made.strip("^$").isalpha():
                return made.strip("^$")


def documents(path: Path) -> list[dict[str, Any]]:
    """The marked documents."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def questions(path: Path) -> list[str]:
    """The questions of a file of Banking77."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [row["text"] for row in csv.DictReader(lines)]


def marked(document: dict[str, Any]) -> Marked:
    """A document with the classes of its spans."""
    spans = (
        (span["start_position"], span["end_position"], KINDS.get(span["entity_type"], SKIP))
        for span in document["spans"]
    )
    return Marked(document["full_text"], tuple(sorted(spans)))


def refilled(document: Marked, names: Names, rng: random.Random) -> Marked:
    """The same sentence with other people, places and organisations."""
    text, spans, at = "", [], 0
    for start, end, kind in document.spans:
        if start < at:
            continue
        old = document.text[start:end]
        slot = {1: "P" if " " in old else rng.choice("FL"), 2: "G", 4: "O"}.get(kind)
        new = names.of(slot) if slot else old
        text += document.text[at:start] + new
        spans.append((len(text) - len(new), len(text), kind))
        at = end
    return Marked(text + document.text[at:], tuple(spans))


def made(sentence: str, names: Names) -> Marked:
    """One of our sentences with its slots filled."""
    text, spans = "", []
    for part in re.split(r"(\{\w\})", sentence):
        slot = part[1:-1] if re.fullmatch(r"\{\w\}", part) else ""
        new = names.of(slot) if slot else part
        if slot in SLOTS:
            spans.append((len(text), len(text) + len(new), KINDS[SLOTS[slot]]))
        text += new
    return Marked(text, tuple(spans))


def prompts(folder: Path, part: int) -> list[str]:
    """The questions of every second subject of MMLU; `part` 0 is trained on, 1 is for measuring."""
    found: list[str] = []
    for path in sorted(folder.glob("*.csv"))[part::2]:
        with path.open(encoding="utf-8", newline="") as lines:
            found += [row["prompt"] for row in csv.DictReader(lines)][:150]
    return found


def corpus(
    found: Iterable[dict[str, Any]], clean: Sequence[str], general: Sequence[str] = (), seed: int = 7
) -> list[Marked]:
    """What is trained on: the documents as they are and refilled, our sentences, questions without names."""
    rng = random.Random(seed)
    names = Names(rng)
    texts: list[Marked] = []
    for document in found:
        one = marked(document)
        texts += [one, *(refilled(one, names, rng) for _ in range(2))]
    texts += [made(sentence, names) for sentence in PERSONAL for _ in range(24)]
    texts += [Marked(sentence, ()) for sentence in CLEAN for _ in range(8)]
    texts += [Marked(text, ()) for text in clean]
    texts += [Marked(names.setting()) for _ in range(1500)]
    texts += [Marked(text, (), sure=False) for text in general]
    lower = [Marked(one.text.lower(), one.spans) for one in texts if one.sure and rng.random() < 0.15]
    upper = [Marked(one.text.upper(), one.spans) for one in texts if one.sure and rng.random() < 0.03]
    return texts + [one for one in lower + upper if all(end <= len(one.text) for _, end, _ in one.spans)]


def rows_of(texts: Sequence[Marked]) -> Rows:
    """Their features."""
    known = marks()
    rows: list[int] = []
    starts: list[int] = []
    labels: list[int] = []
    for one in texts:
        tokens = tokens_of(one.text, known)
        for index, features in features_of(tokens):
            token = tokens[index]
            label = _label(one, token)
            if label != SKIP:
                starts.append(len(rows))
                labels.append(label)
                rows += features
    return Rows(np.array(rows), np.array(starts), np.array(labels))


def _label(text: Marked, token: Token) -> int:
    label = next((kind for start, end, kind in text.spans if start < token.end and token.start < end), 0)
    names = FIRST | LAST | CITY | COUNTRY
    if not text.sure and token.shape[0] != "l" and (token.mark & names or not token.mark & RANK):
        return SKIP
    if label == 0 and not text.spans and places() & {token.word, token.word.rstrip("s")}:
        return SKIP
    return label


def train(
    data: Rows, epochs: int = 6, rate: float = 0.15, decay: float = 2e-6, seed: int = 7
) -> npt.NDArray[Any]:
    """Weights by AdaGrad on the cross entropy; a part of each word's features is dropped, so that none is
    relied on alone."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((BUCKETS, len(CLASSES)), np.float32)
    square = np.full_like(weights, 1e-3)
    ends = np.append(data.starts[1:], len(data.rows))
    for _ in range(epochs):
        order = rng.permutation(len(data.starts))
        for batch in np.array_split(order, max(1, len(order) // 2048)):
            sizes = ends[batch] - data.starts[batch]
            owner = np.repeat(np.arange(len(batch)), sizes)
            offset = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            rows = data.rows[data.starts[batch][owner] + offset]
            kept = rng.random(len(rows)) > 0.25
            rows, owner = rows[kept], owner[kept]
            scores = np.stack(
                [np.bincount(owner, weights[rows, k], len(batch)) for k in range(len(CLASSES))], 1
            )
            scores = np.exp(scores - scores.max(1, keepdims=True))
            scores /= scores.sum(1, keepdims=True)
            scores[np.arange(len(batch)), data.labels[batch]] -= 1
            for k in range(len(CLASSES)):
                gradient = np.bincount(rows, scores[owner, k], BUCKETS) + decay * len(batch) * weights[:, k]
                square[:, k] += gradient**2
                weights[:, k] -= rate * gradient / np.sqrt(square[:, k])
    return weights


def packed(weights: npt.NDArray[Any], threshold: float = THRESHOLD) -> Model:
    """The weights in eight bits each. What was dropped in training is there in use: hence the 0.75."""
    scale = float(np.abs(weights).max()) / 127
    return Model(np.round(weights / scale).astype(np.int8), scale * 0.75, threshold)


def fit(
    found: Sequence[dict[str, Any]], clean: Sequence[str], general: Sequence[str], seed: int = 7
) -> Model:
    """A model from documents, clean questions, and questions of general knowledge, which may name people."""
    return packed(train(rows_of(corpus(found, clean, general, seed))))


def main() -> None:
    """Train on everything and write the model."""
    started = time.process_time()
    shared = Path(sys.argv[1])
    general = prompts(shared / "routing_mmlu", 0)
    model = fit(documents(shared / DOCUMENTS), questions(shared / "banking77" / "train.csv"), general)
    np.savez_compressed(TARGET, weights=model.weights, scale=model.scale, threshold=model.threshold)
    print(f"{TARGET.stat().st_size >> 10} KiB, {time.process_time() - started:.0f} s of processor time")


if __name__ == "__main__":
    main()
