"""Rebuilds both intent models, their cards and the predictor: `python -m examples.demo.train` from the
repository root.

Input: `data/banking77_train.csv` alone. It is cut into folds; networks like the final ones, trained without a
fold, answer its questions. From these held-out answers come the temperatures, the calibrations in the cards
and the predictor; the models that are kept are then trained on everything. The test file is read only at the
end, to write the measured figures to the cards. Needs numpy, scipy, onnx and onnxruntime; takes ten minutes
on two cores.
"""

import csv
import hashlib
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort

from streams.router.predictor import save_predictor
from streams.router.predictor_fit import fit_predictor
from workers.models.calibration import figures
from workers.models.cards import calibrator_of, read_card, register, write_card

from . import graph
from .classifiers import folder_of
from .features import SPECS, FeatureSpec, features
from .single import single_time_ms
from .training import Ints, Net, Recipe, average, fit, idf_of, rows_of, softmax, temperature, weigh

HERE = Path(__file__).parent
DATA = HERE / "data"
THRESHOLD = 0.9
FOLDS = 5
RECIPE = Recipe()
CLOUD_SEEDS = (0, 1)
SOURCE = "PolyAI-LDN/task-specific-datasets, commit 57ec275, banking_data/train.csv"


@dataclass(frozen=True)
class Build:
    name: str
    side: str
    seeds: tuple[int, ...]
    about: str
    specs: tuple[FeatureSpec, ...] = SPECS


BUILDS = (
    Build(
        "intent-local",
        "local",
        (0,),
        "Two networks with one hidden layer of 192 each, logits averaged. Both read hashed words, word pairs"
        " and groups of three characters; the first also pairs with a word between and groups of four, the"
        " second also every two words in any order.",
    ),
    Build(
        "intent-cloud",
        "cloud",
        CLOUD_SEEDS,
        "Four networks such as the two of the local model, these among them; logits averaged.",
    ),
)


class Job(NamedTuple):
    """One network to train: on everything (`fold` None), or without a fold, whose rows it then answers."""

    spec: FeatureSpec
    seed: int
    fold: int | None


class Done(NamedTuple):
    net: Net
    idf: Any
    held: Ints
    scores: Any  # logits of the rows held out, float32 [held, labels]


def read(path: Path) -> tuple[list[str], list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["category"] for row in rows]


def training_rows() -> tuple[list[str], Ints, list[str]]:
    """Texts, places of their labels, labels."""
    texts, names = read(DATA / "banking77_train.csv")
    labels = sorted(set(names))
    place = {label: k for k, label in enumerate(labels)}
    return texts, np.array([place[name] for name in names], np.int64), labels


def work(job: Job) -> Done:
    """Runs in a process of its own."""
    texts, wanted, labels = training_rows()
    folds = np.random.default_rng(7).permutation(len(texts)) % FOLDS
    held = np.flatnonzero(folds == job.fold) if job.fold is not None else np.array([], np.int64)
    kept = np.setdiff1d(np.arange(len(texts)), held)
    rows = rows_of(texts, job.spec)
    idf = idf_of(rows[kept])
    net = fit(weigh(rows[kept], idf), wanted[kept], len(labels), RECIPE, job.seed)
    scores = net.logits(weigh(rows[held], idf)) if len(held) else np.zeros((0, len(labels)), np.float32)
    print(job.spec, "seed", job.seed, "fold", job.fold, "done", flush=True)
    return Done(net, idf, held, scores)


def train_all(processes: int) -> dict[Job, Done]:
    jobs = [Job(spec, seed, fold) for spec in SPECS for fold in (*range(FOLDS), None) for seed in CLOUD_SEEDS]
    with ProcessPoolExecutor(processes) as pool:
        return dict(zip(jobs, pool.map(work, jobs), strict=True))


def held_out(build: Build, done: dict[Job, Done], rows: int, labels: int) -> Any:
    """Averaged logits of every training question, by networks that had not seen it."""
    scores = np.zeros((rows, labels), np.float32)
    parts = [job for job in done if job.seed in build.seeds and job.fold is not None]
    for job in parts:
        scores[done[job].held] += done[job].scores / np.float32(len(parts) / FOLDS)
    return scores


def session_of(model: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def card(build: Build, labels: list[str], model: bytes, cooled: float) -> dict[str, Any]:
    dim = sum(spec.dim for spec in build.specs)
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
        "use": "x = features(texts, specs_of(card)) of workers/library/nlp/hashed.py;"
        " session.run(['probabilities'], {'features': x}); confidence is the largest probability, mapped by"
        " calibration.maps.",
        "features": {"blocks": [spec.to_card() for spec in build.specs], "hash": "zlib.crc32"},
        "input": {"features": {"type": "float32", "shape": ["batch", dim]}},
        "output": {"probabilities": {"type": "float32", "shape": ["batch", len(labels)]}},
        "temperature_in_graph": round(cooled, 2),
        "labels": labels,
    }


def measure(build: Build, session: ort.InferenceSession, path: Path) -> dict[str, Any]:
    """Accuracy, calibration and coverage of the finished model and card on one data file."""
    texts, wanted = read(path)
    written = read_card(folder_of(build.name) / "1")
    # In parts: the features of the whole file would take 400 MB.
    parts = [texts[k : k + 256] for k in range(0, len(texts), 256)]
    rows = np.vstack([session.run(None, {"features": features(part, build.specs)})[0] for part in parts])
    sure = calibrator_of(written).apply(rows.max(axis=1))
    right = np.array([written["labels"][k] for k in rows.argmax(axis=1)]) == np.array(wanted)
    found = figures(sure, right, THRESHOLD)
    return {
        "data": path.name,
        "questions": len(texts),
        "accuracy": round(float(right.mean()), 4),
        "ece": round(found.ece, 4),
        "threshold": THRESHOLD,
        "coverage_at_threshold": round(found.coverage, 4),
        "accuracy_at_threshold": round(found.accuracy, 4),
    }


def make(build: Build, done: dict[Job, Done], wanted: Ints, labels: list[str]) -> tuple[Any, Any]:
    """Writes one model and its card; the calibrated held-out confidences, and whether each was right."""
    scores = held_out(build, done, len(wanted), len(labels))
    cooled = temperature(scores, wanted)
    finals = [[done[Job(spec, seed, None)] for seed in build.seeds] for spec in build.specs]
    blocks = [graph.Block(some[0].idf, average([one.net for one in some])) for some in finals]
    model = graph.build(build.name, blocks, cooled, len(labels)).SerializeToString(deterministic=True)
    folder = folder_of(build.name) / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    write_card(folder, card(build, labels, model, cooled))
    shares = softmax(scores / np.float32(cooled))
    sure, right = shares.max(axis=1), shares.argmax(axis=1) == wanted
    origin = (
        f"answers to the {len(wanted)} training questions, each by networks of the other {FOLDS - 1} folds"
    )
    register(folder, sure, right, threshold=THRESHOLD, fitted_on=origin)
    session, written = session_of(model), read_card(folder)
    paths = [DATA / name for name in ("banking77_test_500.csv", "banking77_test.csv")]
    written["figures"] = [measure(build, session, path) for path in paths]
    written["single_time_ms"] = single_time_ms(session, build.specs, read(paths[0])[0])
    write_card(folder, written)
    print(build.name, len(model), "bytes", written["figures"], written["single_time_ms"], flush=True)
    return calibrator_of(written).apply(sure), right


def main() -> None:
    texts, wanted, labels = training_rows()
    done = train_all(min(2, os.cpu_count() or 1))
    sure, _ = make(BUILDS[0], done, wanted, labels)
    make(BUILDS[1], done, wanted, labels)
    accepted = (sure >= THRESHOLD).astype(float)
    named = [labels[k] for k in wanted]
    predictor = fit_predictor(texts, list(accepted), named)
    save_predictor(HERE / "predictor-intent.npz", predictor)


if __name__ == "__main__":
    main()
