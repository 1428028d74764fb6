"""Training a predictor from recorded outcomes, and how well it does on what it has not seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from edgeway.errors import UsageError
from edgeway.request_lines import BadLine
from streams.router.predictor import load_predictor, save_predictor
from streams.router.predictor_fit import fit_predictor

NEEDED = 50
"""So many requests of each kind, accepted and refused."""
FOLDS = 3


class Example(NamedTuple):
    """A request's text, whether the local answer was accepted (0 or 1), and a label where one is known."""

    text: str
    accepted: float
    label: str | None = None


def examples_of(raw: bytes, field: str, threshold: float) -> Iterator[Example | BadLine]:
    """The examples in lines of JSON: `field` at top level or in `inputs`, and `accepted` or `confidence`."""
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield _example(msgspec.json.decode(line), field, threshold)
        except (msgspec.DecodeError, RecursionError):
            yield BadLine(number, "it is no JSON")
        except ValueError as error:
            yield BadLine(number, str(error))


def train(examples: Sequence[Example], target: str, field: str) -> dict[str, Any]:
    """Train on all, write to `target`, and report figures of held-out folds.

    Raises:
        UsageError: too few examples, such that no predictor comes of them, or `target` cannot be written.
    """
    accepted = np.array([example.accepted for example in examples])
    kinds = int(accepted.sum()), int(len(accepted) - accepted.sum())
    if min(kinds) < NEEDED:
        raise UsageError(
            f"{kinds[0]} accepted and {kinds[1]} refused requests are too few: {NEEDED} of each are needed"
        )
    texts = [example.text for example in examples]
    labels = [example.label or "" for example in examples] if any(e.label for e in examples) else None
    try:
        held = held_out(texts, accepted, labels)
        fitted = fit_predictor(texts, list(accepted), labels, field=field)
    except ValueError as error:
        raise UsageError(f"no predictor comes of these requests: {error}") from error
    try:
        save_predictor(target, fitted)
        load_predictor(target)
    except (OSError, ValueError) as error:
        raise UsageError(f"{target} cannot be written: {error}") from error
    told = {
        "examples": len(examples),
        "accepted": float(accepted.mean()),
        "bytes": Path(target).stat().st_size,
    }
    return told | judged(held, accepted)


def held_out(texts: Sequence[str], accepted: Any, labels: Sequence[str] | None, folds: int = FOLDS) -> Any:
    """What predictors that had not seen a text expect of it; every `folds`-th text is held out together."""
    place = np.arange(len(texts)) % folds
    found = np.zeros(len(texts))
    for fold in range(folds):
        rest = np.flatnonzero(place != fold).tolist()
        fitted = fit_predictor(
            [texts[k] for k in rest],
            [float(accepted[k]) for k in rest],
            None if labels is None else [labels[k] for k in rest],
        )
        for k in np.flatnonzero(place == fold).tolist():
            expected = fitted.expected({"text": texts[k]})
            found[k] = 1.0 if expected is None else expected
    return found


def judged(expected: Any, accepted: Any, below: float = 0.5) -> dict[str, float]:
    """`auc`; `sent`: the share expected below `below`; `precision`: the share of these that were refused;
    `recall`: their share in all that were refused."""
    refused, sent = accepted < 0.5, expected < below
    _, place, count = np.unique(expected, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    yes, no = int((~refused).sum()), int(refused.sum())
    auc = (ranks[~refused].sum() - yes * (yes + 1) / 2) / (yes * no) if yes and no else math.nan
    return {
        "auc": float(auc),
        "sent": float(sent.mean()),
        "precision": float(refused[sent].mean()) if sent.any() else 0.0,
        "recall": float(sent[refused].mean()) if no else 0.0,
    }


def _example(said: Any, field: str, threshold: float) -> Example:
    if not isinstance(said, dict):
        raise ValueError("it is no JSON object")
    inputs = said.get("inputs")
    text = said.get(field, inputs.get(field) if isinstance(inputs, dict) else None)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"it has no text under {field}")
    accepted, confidence = said.get("accepted"), said.get("confidence")
    if isinstance(accepted, bool):
        outcome = float(accepted)
    elif isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1:
        outcome = float(confidence >= threshold)
    else:
        raise ValueError("give `accepted` (true or false), or `confidence` from 0 to 1")
    label = said.get("label")
    return Example(text, outcome, None if label is None else str(label))
