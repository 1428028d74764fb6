"""How well, and how fast, payloads are examined: `python -m benchmarks.privacy SHARED [--json FILE]`.

SHARED holds pii/, banking77/ and routing_mmlu/ (see benchmarks/privacy_training.py). Leave-templates-out: the
templates of the documents are dealt into folds at random, and each fold's documents are examined by a
classifier trained without any document of their templates. `other sources`: trained without any of the
documents.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.privacy_training import DOCUMENTS, documents, fit, prompts, questions
from schemas.messages import Examination
from streams.privacy.detectors import BUILT_IN, load
from streams.privacy.detectors.names import Names
from streams.privacy.examiner import Examiner
from streams.privacy.finding import Detector, Finding
from streams.privacy.texts import MAX_CHARS

FOLDS = 5
SHORT = 200
"""Characters of a short text."""


class Score(NamedTuple):
    """What was found in one document: of its marked spans, those that a finding touches."""

    document: dict[str, Any]
    found: tuple[Finding, ...]

    def touched(self) -> list[tuple[str, bool]]:
        """Each marked span's type, and whether a finding lies in it, around it, or shares a word with it."""
        return [(span["entity_type"], self._touches(span["entity_value"])) for span in self.document["spans"]]

    def _touches(self, value: str) -> bool:
        words = set(value.split())
        return any(f.text in value or value in f.text or words & set(f.text.split()) for f in self.found)


def examiner(names: Detector | None = None) -> Examiner:
    """All built-in detectors, with another detector of names where one is given."""
    return Examiner([names if names and name == "names" else load(name) for name in BUILT_IN], Examination())


def scores(by: Examiner, found: Iterable[dict[str, Any]]) -> list[Score]:
    """What an examiner finds in documents."""
    return [Score(document, tuple(by.findings(document["full_text"]))) for document in found]


def left_out(
    found: Sequence[dict[str, Any]], clean: Sequence[str], general: Sequence[str], folds: int
) -> list[Score]:
    """Every document as a classifier sees it that never saw one of its template."""
    templates = sorted({document["template_id"] for document in found})
    random.Random(3).shuffle(templates)
    held: list[Score] = []
    for fold in range(folds):
        out = set(templates[fold::folds])
        model = fit([document for document in found if document["template_id"] not in out], clean, general)
        held += scores(examiner(Names(model)), [d for d in found if d["template_id"] in out])
    return held


def leaks(held: Sequence[Score], counts: Callable[[str], bool] = lambda kind: True) -> dict[str, Any]:
    """The share of documents with a marked span of a type that counts in which nothing was found."""
    sensitive = [one for one in held if any(counts(kind) for kind, _ in one.touched())]
    missed = [one for one in sensitive if not one.found]
    return {"sensitive": len(sensitive), "nothing_found": len(missed), "share": len(missed) / len(sensitive)}


def summary(held: Sequence[Score]) -> dict[str, Any]:
    """Leaks, recall by type of entity, and false alarms on documents without a mark."""
    hit: Counter[str] = Counter()
    all_of: Counter[str] = Counter()
    for kind, touched in (pair for one in held for pair in one.touched()):
        all_of[kind] += 1
        hit[kind] += touched
    clean = [one for one in held if not one.document["spans"]]
    return {
        "leaks": leaks(held),
        "leaks_without_dates": leaks(held, lambda kind: kind != "DATE_TIME"),
        "recall": {
            kind: {"spans": count, "recall": hit[kind] / count} for kind, count in all_of.most_common()
        },
        "clean": {"documents": len(clean), "flagged": sum(bool(one.found) for one in clean)},
        "missed_templates": dict(
            Counter(s.document["template_id"] for s in held if s.document["spans"] and not s.found)
        ),
    }


def flagged(by: Examiner, texts: Sequence[str]) -> float:
    """The share of texts that would be kept local."""
    return sum(by.examine(text).level == "high" for text in texts) / len(texts)


def cost(by: Examiner, texts: Sequence[str], rounds: int = 3) -> dict[str, float]:
    """Processor milliseconds of `examine`, the best of some rounds for each text: the machine has other work
    too."""
    best = [1e9] * len(texts)
    for _ in range(rounds):
        for index, text in enumerate(texts):
            started = time.thread_time_ns()
            by.examine(text, {"text": ""}, {})
            best[index] = min(best[index], (time.thread_time_ns() - started) / 1e6)
    best.sort()
    return {f"p{q}": best[min(len(best) - 1, int(len(best) * q / 100))] for q in (50, 95, 99)} | {
        "most": best[-1]
    }


_LOAD = """
import resource, time, sys
from pathlib import Path
kib = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1024
import schemas.messages, numpy, prometheus_client
before, started = kib(), time.process_time()
from streams.privacy.examiner import examiner_of
one = examiner_of(schemas.messages.Examination(detectors={detectors}))
one.examine("My name is Ann Smith, call 212-555-0187")
print(time.process_time() - started, (kib() - before) / 1024)
"""


def loading(detectors: str) -> dict[str, float]:
    """Processor seconds and MiB that a process pays for an examiner, in a process of its own."""
    out = subprocess.run(
        [sys.executable, "-c", _LOAD.format(detectors=detectors)], check=True, capture_output=True
    )
    seconds, mib = map(float, out.stdout.split())
    return {"seconds": seconds, "mib": mib}


def measured(shared: Path, folds: int) -> dict[str, Any]:
    """All figures."""
    found = documents(shared / DOCUMENTS)
    train, test = (questions(shared / "banking77" / f"{name}.csv") for name in ("train", "test"))
    general, other = prompts(shared / "routing_mmlu", 0), prompts(shared / "routing_mmlu", 1)
    shipped = examiner()
    alien = examiner(Names(fit([], train, general)))
    long = " ".join(other).replace("%", "").replace("&", "")[: MAX_CHARS - 100]
    texts = [text for text in test if len(text) <= SHORT]
    texts += [text for document in found if len(text := document["full_text"]) <= SHORT]
    started = time.thread_time()
    whole = shipped.findings(long)
    seconds = time.thread_time() - started
    return {
        "left_out": summary(left_out(found, train, general, folds)),
        "other_sources": summary(scores(alien, found)),
        "shipped": summary(scores(shipped, found)),
        "banking77_test": {"questions": len(test), "kept_local": flagged(shipped, test)},
        "mmlu_other_half": {"questions": len(other), "kept_local": flagged(shipped, other)},
        "cost_ms": {"texts": len(texts), **cost(shipped, texts)},
        "longest": {"chars": len(long), "seconds": seconds, "findings": len(whole)},
        "loading": {"none": loading("()"), "all": loading("None"), "formats": loading("('formats',)")},
    }


def table(figures: dict[str, Any]) -> str:
    """The figures for people."""
    lines = ["| | leaks, all types | leaks, without dates | clean documents flagged |", "|---|---|---|---|"]
    for name in ("left_out", "other_sources", "shipped"):
        part = figures[name]
        a, b, c = part["leaks"], part["leaks_without_dates"], part["clean"]
        of_all = f"{a['nothing_found']} of {a['sensitive']} ({a['share']:.2%})"
        of_most = f"{b['nothing_found']} of {b['sensitive']} ({b['share']:.2%})"
        lines.append(f"| {name} | {of_all} | {of_most} | {c['flagged']} of {c['documents']} |")
    lines += ["", "| entity | spans | recall, left out | recall, other sources |", "|---|---|---|---|"]
    for kind, one in figures["left_out"]["recall"].items():
        other = figures["other_sources"]["recall"][kind]["recall"]
        lines.append(f"| {kind} | {one['spans']} | {one['recall']:.1%} | {other:.1%} |")
    for name in ("banking77_test", "mmlu_other_half"):
        lines.append(
            f"\n{name}: {figures[name]['kept_local']:.1%} of {figures[name]['questions']} kept local"
        )
    spent = figures["cost_ms"]
    spread = ", ".join(f"p{q} {spent[f'p{q}']:.2f}" for q in (50, 95, 99))
    lines.append(f"\ncost of texts up to {SHORT} characters: {spread} ms")
    lines.append(
        f"\nlongest: {figures['longest']['chars']} characters in {figures['longest']['seconds']:.2f} s"
    )
    for name, one in figures["loading"].items():
        lines.append(f"\nloading {name}: {one['seconds']:.2f} s, {one['mib']:.0f} MiB")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shared", type=Path)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    figures = measured(args.shared, args.folds)
    print(table(figures))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
