"""`edgeway models`: repositories of models, and what a model's confidence is worth."""

from __future__ import annotations

import argparse

from edgeway.cli import models_add, models_confidence, models_quantize, models_repository, models_show
from edgeway.cli.arguments import Subparsers

_VERBS = (models_add, models_repository, models_show, models_quantize, models_confidence)


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "models", help="keep models in a repository, calibrate them, train predictors", allow_abbrev=False
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _VERBS:
        module.add(verbs)
    for verb in verbs.choices.values():
        verb.add_argument("--json", action="store_true", help="the report as JSON")
