"""What the demo's confidences and its predictor are worth: `python -m benchmarks.confidence [--json FILE]`.

Banking77's test file (3,080 questions that nothing was fitted on): calibration, coverage and accuracy of both
intent models, CPU time of one question, and what the predictor saves. RouteLLM's outcomes on MMLU (was the
weak model right, was the strong one), where they are at hand: cost against quality of a predictor that has
seen no question of the domains it is judged on. Their folder is --mmlu, or `routing_mmlu` in
EDGEWAY_SHARED_DATA.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeway.predicting import judged
from examples.demo.capabilities import BATCHES, CAPABILITIES
from streams.router.predictor import TextPredictor, load_predictor
from streams.router.predictor_fit import fit_predictor
from workers.models.calibration import figures
from workers.models.cards import calibrator_of, read_card

DEMO = Path(__file__).resolve().parents[1] / "examples" / "demo"
THRESHOLD = 0.9
SENT_BELOW = 0.5
GROUPS = 5
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
Array = NDArray[Any]


class Answers(NamedTuple):
    """Of one model to all test questions: raw and calibrated confidence, and whether it was right."""

    raw: Array
    sure: Array
    right: Array


def questions() -> tuple[list[str], list[str]]:
    """Texts and intents of the test file."""
    with (DEMO / "data" / "banking77_test.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["category"] for row in rows]


def answers(side: str, texts: Sequence[str], intents: Sequence[str]) -> Answers:
    """As the demo's worker of `side` gives them."""
    found: list[Any] = []
    for begin in range(0, len(texts), 256):
        found += BATCHES[f"{side}/nlp/intent"]([{"text": text} for text in texts[begin : begin + 256]])
    raw = np.array([confidence for _, confidence in found])
    right = np.array([output["intent"] == intent for (output, _), intent in zip(found, intents, strict=True)])
    calibrator = calibrator_of(read_card(DEMO / "models" / f"intent-{side}" / "1"))
    return Answers(raw, calibrator.apply(raw), right)


def judge(found: Answers) -> dict[str, Any]:
    """Figures of the card's kind, before and after calibration, and the reliability of ten bins."""
    before, after = (figures(sure, found.right, THRESHOLD) for sure in (found.raw, found.sure))
    bins = np.minimum((found.sure * 10).astype(int), 9)
    table = [
        {
            "from": k / 10,
            "questions": int((bins == k).sum()),
            "confidence": float(found.sure[bins == k].mean()),
            "right": float(found.right[bins == k].mean()),
        }
        for k in range(10)
        if (bins == k).any()
    ]
    return {
        "accuracy": float(found.right.mean()),
        "raw": before._asdict(),
        "calibrated": after._asdict(),
        "bins": table,
    }


def cpu_ms(call: Callable[[str], object], texts: Sequence[str], rounds: int = 3) -> dict[str, float]:
    """CPU milliseconds of this process for one text, the least of `rounds` for each: other work on the
    machine must not count."""
    took = np.full(len(texts), np.inf)
    for _ in range(rounds):
        for place, text in enumerate(texts):
            begin = time.process_time()
            call(text)
            took[place] = min(took[place], (time.process_time() - begin) * 1000)
    return {name: float(np.percentile(took, share)) for name, share in (("p50", 50), ("p99", 99))}


def times(predictor: TextPredictor, texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """CPU ms of one question, features included, one thread."""
    local, cloud = (CAPABILITIES[f"{side}/nlp/intent"] for side in ("local", "cloud"))
    return {
        "local": cpu_ms(lambda text: local({"text": text}, {}), texts),
        "cloud": cpu_ms(lambda text: cloud({"text": text}, {}), texts),
        "predictor": cpu_ms(lambda text: predictor.expected({"text": text}), texts),
    }


def saved(
    predictor: TextPredictor, texts: Sequence[str], local: Answers, cloud: Answers, took: Any, hops_ms: float
) -> dict[str, Any]:
    """What sending straight to the cloud saves, and what it costs, against confidence first."""
    expected = np.array([predictor.expected({"text": text}) or 0.0 for text in texts])
    accepted, sent = local.sure >= THRESHOLD, expected < SENT_BELOW
    found = judged(expected, accepted.astype(float), SENT_BELOW)
    first = np.where(accepted, local.right, cloud.right)
    with_it = np.where(accepted & ~sent, local.right, cloud.right)
    return found | {
        "questions": len(texts),
        "sent_questions": int(sent.sum()),
        "local_runs_saved": int((sent & ~accepted).sum()),
        "refused_before": int((~accepted).sum()),
        "refused_after": int((~accepted & ~sent).sum()),
        "cloud_calls_before": int((~accepted).sum()),
        "cloud_calls_extra": int((sent & accepted).sum()),
        "accuracy_without": float(first.mean()),
        "accuracy_with": float(with_it.mean()),
        "ms_saved_where_refused": took["local"]["p50"] + hops_ms,
        "ms_lost_where_accepted": took["cloud"]["p50"] - took["local"]["p50"],
        "hops_ms": hops_ms,
    }


def outcomes(folder: Path) -> tuple[list[str], list[str], Array, Array]:
    """Prompts, their domains, and whether the weak and the strong model were right."""
    texts, domains, weak, strong = [], [], [], []
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        for prompt, weakly, strongly in rows[1:]:
            texts.append(prompt)
            domains.append(path.stem.removeprefix("mmlu_"))
            weak.append(weakly == "True")
            strong.append(strongly == "True")
    return texts, domains, np.array(weak), np.array(strong)


def unseen_domains(texts: Sequence[str], domains: Sequence[str], weak: Array) -> Array:
    """The expected chance that the weak model is right, each by a predictor of other domains."""
    names = sorted(set(domains))
    group = np.array([names.index(domain) % GROUPS for domain in domains])
    found = np.zeros(len(texts))
    for held in range(GROUPS):
        rest = np.flatnonzero(group != held).tolist()
        fitted = fit_predictor([texts[k] for k in rest], [float(weak[k]) for k in rest], decay=1e-3)
        for k in np.flatnonzero(group == held).tolist():
            found[k] = fitted.expected({"text": texts[k]}) or 0.0
    return found


def curve(expected: Array, weak: Array, strong: Array) -> dict[str, Any]:
    """Quality where the share of questions least expected to succeed goes to the strong model.

    `recovered` is the mean share of the gap between the models that is closed, over all shares of strong
    calls (RouteLLM's APGR): 0.5 at random. `perfect` spends strong calls only where they help.
    """
    help_first = np.lexsort((np.random.default_rng(0).random(len(weak)), (weak * 1 - strong * 1)))
    rows = []
    for share in SHARES:
        row = {"strong_calls": share, "random": float(weak.mean() * (1 - share) + strong.mean() * share)}
        for name, order in (("predictor", np.argsort(expected, kind="stable")), ("perfect", help_first)):
            chosen = np.zeros(len(weak), bool)
            chosen[order[: round(share * len(weak))]] = True
            row[name] = float(np.where(chosen, strong, weak).mean())
        rows.append(row)
    gap = strong.mean() - weak.mean()
    recovered = {
        name: float(np.trapezoid([(row[name] - weak.mean()) / gap for row in rows], SHARES))
        for name in ("predictor", "random", "perfect")
    }
    return {"rows": rows, "recovered": recovered, **judged(expected, weak.astype(float))}


def mmlu(folder: Path) -> dict[str, Any] | None:
    """The table of cost against quality; None where the data are not here."""
    if not folder.is_dir():
        return None
    texts, domains, weak, strong = outcomes(folder)
    expected = unseen_domains(texts, domains, weak)
    about = {
        "questions": len(texts),
        "domains": len(set(domains)),
        "weak": weak.mean(),
        "strong": strong.mean(),
    }
    return {key: float(value) for key, value in about.items()} | curve(expected, weak, strong)


def measure(folder: Path, hops_ms: float) -> dict[str, Any]:
    """Everything."""
    texts, intents = questions()
    predictor = load_predictor(DEMO / "predictor-intent.npz")
    local, cloud = (answers(side, texts, intents) for side in ("local", "cloud"))
    took = times(predictor, texts[::6])
    hybrid = np.where(local.sure >= THRESHOLD, local.right, cloud.right)
    return {
        "local": judge(local),
        "cloud": judge(cloud),
        "hybrid_accuracy": float(hybrid.mean()),
        "cpu_ms": took,
        "predictor": saved(predictor, texts, local, cloud, took, hops_ms),
        "mmlu": mmlu(folder),
    }


def show(found: dict[str, Any]) -> None:
    """The tables, as docs/confidence.md has them."""
    print("| model | accuracy | ECE raw | ECE | accepted at 0.9 | right of these | CPU p50 / p99 ms |")
    print("|---|---|---|---|---|---|---|")
    for side in ("local", "cloud"):
        one, took = found[side], found["cpu_ms"][side]
        after = one["calibrated"]
        print(
            f"| {side} | {one['accuracy']:.2%} | {one['raw']['ece']:.4f} | {after['ece']:.4f} | "
            f"{after['coverage']:.2%} | {after['accuracy']:.2%} | {took['p50']:.2f} / {took['p99']:.2f} |"
        )
    print(f"\nhybrid accuracy {found['hybrid_accuracy']:.2%}\n")
    print("| confidence of the local model | questions | mean confidence | right |\n|---|---|---|---|")
    for row in found["local"]["bins"]:
        span = f"{row['from']:.1f} to {row['from'] + 0.1:.1f}"
        print(f"| {span} | {row['questions']} | {row['confidence']:.3f} | {row['right']:.3f} |")
    print()
    for name, value in found["predictor"].items():
        print(f"predictor {name}: {value:.4g}")
    took = found["cpu_ms"]["predictor"]
    print(f"predictor CPU p50 / p99 us: {took['p50'] * 1000:.0f} / {took['p99'] * 1000:.0f}\n")
    if found["mmlu"] is None:
        print("MMLU outcomes are not here: give --mmlu or EDGEWAY_SHARED_DATA")
        return
    print("| strong calls | random | predictor | perfect |\n|---|---|---|---|")
    for row in found["mmlu"]["rows"]:
        qualities = " | ".join(f"{row[name]:.2%}" for name in ("random", "predictor", "perfect"))
        print(f"| {row['strong_calls']:.0%} | {qualities} |")
    print("\ngap recovered:", {name: round(value, 3) for name, value in found["mmlu"]["recovered"].items()})
    print(f"area under the curve {found['mmlu']['auc']:.3f}")


def main() -> None:
    """Measure, print, and write where asked to."""
    shared = Path(os.environ.get("EDGEWAY_SHARED_DATA", DEMO.parents[2] / "shared" / "data"))
    parser = argparse.ArgumentParser(description="What confidences and the predictor are worth.")
    parser.add_argument("--mmlu", type=Path, default=shared / "routing_mmlu", metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument(
        "--hops-ms",
        type=float,
        default=2.5,
        metavar="MS",
        help="a refused partial's way to the aggregator and the next subtask's way on: two of the four hops "
        "of the 5 ms of docs/performance.md (default 2.5)",
    )
    args = parser.parse_args()
    found = measure(args.mmlu, args.hops_ms)
    show(found)
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
