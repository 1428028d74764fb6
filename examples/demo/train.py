"""Rebuilds both intent models and their cards: `python -m examples.demo.train` from the repository root.

Input: `data/banking77_train.csv`. One fifth of it, drawn with a fixed seed, is held out to fit the
temperature; the model that is kept is then trained on all of it. The test file is read only at the
end, to write the measured figures to the cards. Needs numpy, onnx and onnxruntime; takes one
to two minutes on two cores.
"""

import csv
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from . import graph
from .features import CLOUD, LOCAL, FeatureSpec, features
from .training import Ints, Recipe, Rows, ece, fit, logits, temperature

HERE = Path(__file__).parent
THRESHOLD = 0.9
SOURCE = "PolyAI-LDN/task-specific-datasets, commit 57ec275, banking_data/train.csv"


@dataclass(frozen=True)
class Build:
    name: str
    side: str
    spec: FeatureSpec
    recipe: Recipe
    about: str


BUILDS = (
    Build(
        "intent-local",
        "local",
        LOCAL,
        Recipe(hidden=0, epochs=24, rate=0.02),
        "Linear softmax over hashed single words; kept small on purpose: no word order, no parts of words.",
    ),
    Build(
        "intent-cloud",
        "cloud",
        CLOUD,
        Recipe(hidden=256, epochs=20, rate=0.002, seeds=(0, 1)),
        "Two networks with one hidden layer of 256 each, logits averaged, over hashed words, word pairs and"
        " character trigrams.",
    ),
)


def read(path: Path) -> tuple[list[str], list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["category"] for row in rows]


def measure(
    session: ort.InferenceSession, spec: FeatureSpec, labels: list[str], path: Path
) -> dict[str, Any]:
    """Accuracy, calibration and coverage of the finished ONNX file on one data file."""
    texts, wanted = read(path)
    probabilities = session.run(None, {"features": features(texts, spec)})[0]
    top = probabilities.max(axis=1)
    right = np.array([labels[k] for k in probabilities.argmax(axis=1)]) == np.array(wanted)
    sure = top >= THRESHOLD
    return {
        "data": path.name,
        "questions": len(texts),
        "accuracy": round(float(right.mean()), 4),
        "ece": round(ece(top, right), 4),
        "threshold": THRESHOLD,
        "coverage_at_threshold": round(float(sure.mean()), 4),
        "accuracy_at_threshold": round(float(right[sure].mean()), 4),
    }


def single_time_ms(session: ort.InferenceSession, spec: FeatureSpec, texts: list[str]) -> dict[str, float]:
    """Milliseconds for one question, features included, batch 1, one thread."""
    took = []
    for text in texts:
        begin = time.perf_counter()
        session.run(None, {"features": features([text], spec)})
        took.append((time.perf_counter() - begin) * 1000)
    return {"p50": round(float(np.percentile(took, 50)), 3), "p99": round(float(np.percentile(took, 99)), 3)}


def card(build: Build, labels: list[str], model: bytes, cooled: float) -> dict[str, Any]:
    return {
        "name": build.name,
        "version": "1",
        "side": build.side,
        "capability": "nlp/intent",
        "model_type": "classifier",
        "about": build.about,
        "license": "Apache-2.0",
        "trained_on": {
            "source": SOURCE,
            "license": "CC-BY-4.0",
            "questions": 10003,
            "script": "examples/demo/train.py",
        },
        "sha256": hashlib.sha256(model).hexdigest(),
        "size_bytes": len(model),
        "use": "x = features(texts, FeatureSpec.from_card(card['features'])) of examples/demo/features.py;"
        " session.run(['probabilities'], {'features': x}); confidence is the largest probability.",
        "features": {
            "dim": build.spec.dim,
            "words": build.spec.words,
            "chars": build.spec.chars,
            "hash": "zlib.crc32",
        },
        "input": {"features": {"type": "float32", "shape": ["batch", build.spec.dim]}},
        "output": {"probabilities": {"type": "float32", "shape": ["batch", len(labels)]}},
        "calibration": {
            "method": "temperature, inside the graph",
            "temperature": round(cooled, 2),
            "held_out": 2000,
        },
        "labels": labels,
    }


def make(build: Build, texts: list[str], wanted: Ints, labels: list[str]) -> None:
    """Trains one model twice (held out for the temperature, then whole), writes model and card."""
    data = Rows.of(texts, build.spec)
    order = np.random.default_rng(7).permutation(len(texts))
    held, kept = order[:2000], order[2000:]
    idf = data.idf(kept)
    cooled = temperature(logits(data, held, idf, fit(data, kept, wanted, idf, build.recipe)), wanted[held])
    every = np.arange(len(texts))
    idf = data.idf(every)
    weights = fit(data, every, wanted, idf, build.recipe)
    model = graph.build(build.name, idf, weights, cooled, len(labels)).SerializeToString(deterministic=True)
    folder = HERE / "models" / build.name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    written = card(build, labels, model, cooled)
    paths = [HERE / "data" / name for name in ("banking77_test_500.csv", "banking77_test.csv")]
    written["figures"] = [measure(session, build.spec, labels, path) for path in paths]
    written["single_time_ms"] = single_time_ms(session, build.spec, read(paths[0])[0])
    (folder / "card.json").write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    print(build.name, len(model), "bytes", written["figures"], written["single_time_ms"], flush=True)


def main() -> None:
    texts, names = read(HERE / "data" / "banking77_train.csv")
    labels = sorted(set(names))
    place = {label: k for k, label in enumerate(labels)}
    wanted = np.array([place[name] for name in names], np.int64)
    for build in BUILDS:
        make(build, texts, wanted, labels)


if __name__ == "__main__":
    main()
