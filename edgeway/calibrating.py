"""Recalibrating a card from samples: how many are needed, what changes, and the report of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from edgeway.errors import UsageError
from edgeway.feedback import Answerer, Sample
from workers.models.calibration import Fit, choose
from workers.models.cards import recalibrated, statement_of

NEEDED = 100
NEEDED_OF_EACH = 5
"""So many right and so many wrong answers: without both there is no rate to fit."""
THRESHOLD = 0.9


class Recalibration(NamedTuple):
    """The card as it would be written, and what a person wants to know of it."""

    card: dict[str, Any]
    fit: Fit
    threshold: float

    @property
    def changes(self) -> bool:
        """Whether another map than the present one did better."""
        return self.fit.map is not None


def answerer_of(card: dict[str, Any], path: str) -> Answerer:
    """Whose answers count for a card.

    Raises:
        UsageError: it does not say what it is.
    """
    keys = ("side", "capability", "name", "version")
    missing = [key for key in keys if not isinstance(card.get(key), str)]
    if missing:
        raise UsageError(f"card {path} has no {', '.join(missing)}: give the card.json of a model folder")
    return Answerer(*(card[key] for key in keys))


def recalibrate(
    card: dict[str, Any], samples: Sequence[Sample], threshold: float | None, *, fitted_on: str, now: int
) -> Recalibration:
    """A monotone map on top of the present ones, chosen by cross-validation on `samples`.

    `threshold` None is that of the card, or 0.9. `now` in ms.

    Raises:
        UsageError: too few samples.
    """
    check_enough(samples)
    stated = statement_of(card)
    at = threshold if threshold is not None else stated.threshold if stated is not None else THRESHOLD
    sure, outcomes = (np.array(column) for column in zip(*samples, strict=True))
    fit = choose(sure, outcomes, at)
    return Recalibration(recalibrated(card, fit, at, fitted_on=fitted_on, now=now), fit, at)


def check_enough(samples: Sequence[Sample]) -> None:
    """Raises UsageError where `samples` are too few to fit on; it says how many are needed."""
    right = sum(sample.outcome for sample in samples)
    wrong = len(samples) - right
    if len(samples) >= NEEDED and min(right, wrong) >= NEEDED_OF_EACH:
        return
    raise UsageError(
        f"{len(samples)} samples ({right:.4g} right, {wrong:.4g} wrong) are too few to calibrate by: "
        f"at least {NEEDED} are needed, with {NEEDED_OF_EACH} right and {NEEDED_OF_EACH} wrong among them; "
        "give more feedback, or a longer --since"
    )


def report(done: Recalibration, answerer: Answerer) -> dict[str, Any]:
    """What changed, for people and programs. Figures after are of samples that the fit had not seen."""
    before, after = (
        {name: round(value, 4) for name, value in found._asdict().items()}
        for found in (done.fit.before, done.fit.after)
    )
    return {
        "model": f"{answerer.model} {answerer.version}",
        "capability": f"{answerer.side}/{answerer.capability}",
        "samples": done.fit.samples,
        "method": done.fit.method,
        "threshold": done.threshold,
        "before": before,
        "after": after,
        "losses": {name: round(value, 5) for name, value in done.fit.losses.items()},
        "changes": done.changes,
    }
