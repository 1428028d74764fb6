"""The planner of one version of the rules, with the user's decomposers and the predictors that they name."""

from __future__ import annotations

import logging

from edgeway.errors import UsageError
from schemas.rules import Rules
from streams.privacy.examiner import UnknownDetector
from streams.router import DecomposerError, Planner, PredictorError, load_decomposers
from streams.router.predictor import Predictor, load_predictor

log = logging.getLogger(__name__)


def planner_of(rules: Rules) -> Planner:
    """The planner of `rules`.

    Raises:
        UsageError: a decomposer, predictor or detector that does not load.
    """
    try:
        decomposers = load_decomposers(rules.decomposers)
        for task in sorted(decomposers.keys() - rules.tasks.keys()):
            log.warning("the decomposer of the task %s is never asked: the rules have no such task", task)
        return Planner(rules, decomposers=decomposers, predictors=_predictors(rules))
    except (DecomposerError, PredictorError, UnknownDetector) as error:
        raise UsageError(f"rules: {error}") from error


def _predictors(rules: Rules) -> dict[str, Predictor]:
    named = {name: task.predictor for name, task in rules.tasks.items() if task.predictor is not None}
    loaded = {path: load_predictor(path) for path in sorted(set(named.values()))}
    return {name: loaded[path] for name, path in named.items()}
