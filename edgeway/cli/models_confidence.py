"""`edgeway models calibrate|predictor`: what a model's confidence is worth."""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeway import logs
from edgeway.cli.arguments import Subparsers, back, command, duration, read_settings
from edgeway.cli.feedback import read_file
from edgeway.cli.output import bar, out, out_json, say, say_bad
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from edgeway.feedback import Answerer, Sample
    from streams.settings import Settings

_WEEK_MS = 7 * 86_400_000
_FEEDBACK = "feedback"


def add(verbs: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    _add_calibrate(verbs)
    train = command(verbs, "predictor", "train a predictor of whether the local answer is accepted", "models")
    train.usage = "%(prog)s --from FILE --out FILE [flags]"
    train.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="FILE",
        help='a line of JSON a request: {"text": ..., "accepted": true|false} or with "confidence", and as '
        'wanted with "label"',
    )
    train.add_argument("--out", dest="target", required=True, metavar="FILE", help="where it is written")
    train.add_argument("--field", default="text", metavar="NAME", help="the input that holds the text")
    train.add_argument(
        "--threshold", type=float, default=0.9, metavar="X", help="a confidence from here on is accepted"
    )
    train.set_defaults(run=run_predictor)


def _add_calibrate(verbs: Subparsers[argparse.ArgumentParser]) -> None:
    parser = command(verbs, "calibrate", "fit a model's confidence to what became of its answers", "models")
    parser.usage = "%(prog)s CARD --from feedback|FILE [flags]"
    parser.add_argument("card", metavar="CARD", help="a card.json, or a model folder")
    parser.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="WHAT",
        help=f"`{_FEEDBACK}` (the topic, joined with results), or a file with a line of JSON an answer: "
        '{"confidence": X, "right": true|false or "score": Y}',
    )
    parser.add_argument(
        "--since",
        type=duration,
        default=_WEEK_MS,
        metavar="TIME",
        help="read feedback and results of so long ago until now (default 7d)",
    )
    parser.add_argument("--capability", metavar="NAME", help="refuse the card where it is another's")
    parser.add_argument(
        "--threshold", type=float, metavar="X", help="that of the rules (default: the card's)"
    )
    parser.add_argument("--dry-run", action="store_true", help="report only, leave the card as it is")
    parser.set_defaults(run=run_calibrate)


def run_calibrate(args: argparse.Namespace) -> int:
    """0 where the card was written or needs no change, 2 where samples are too few."""
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    from edgeway.calibrating import answerer_of, recalibrate, report
    from workers.errors import LoadError
    from workers.models.cards import card_path, read_card, write_card

    if args.threshold is not None and not 0 < args.threshold <= 1:
        raise UsageError("--threshold must lie above 0 and at most at 1")
    _refuse_repository(args, card_path(args.card))
    try:
        card = read_card(args.card)
        answerer = answerer_of(card, str(card_path(args.card)))
        _check_capability(args.capability, answerer)
        now = int(time.time() * 1000)
        samples, seen = _samples(args, settings, answerer, card, now)
        done = recalibrate(card, samples, args.threshold, fitted_on=args.source, now=now)
        wrote = done.changes and not args.dry_run
        if wrote:
            write_card(args.card, done.card)
    except LoadError as error:
        raise UsageError(str(error)) from error
    told = report(done, answerer) | {"read": seen, "written": wrote}
    if args.json:
        out_json(told)
    else:
        _tell(told, str(card_path(args.card)))
    return Exit.OK


def _refuse_repository(args: argparse.Namespace, card: Path) -> None:
    from workers.models.manifest import MANIFEST

    if (card.parent / MANIFEST).is_file() and not args.dry_run:
        raise UsageError(
            f"{card} is of a version in a repository, whose files never change: copy the folder, calibrate "
            "the copy, and add it as a new version (edgeway models add)"
        )


def run_predictor(args: argparse.Namespace) -> int:
    """0, or 2 where the file cannot be used."""
    from edgeway.predicting import Example, examples_of, train
    from edgeway.request_lines import BadLine

    examples: list[Example] = []
    bad = 0
    for found in examples_of(read_file(args.source), args.field, args.threshold):
        if isinstance(found, BadLine):
            bad += 1
            say_bad(found)
        else:
            examples.append(found)
    told = train(examples, args.target, args.field) | {"bad": bad, "written": args.target}
    if args.json:
        out_json(told)
    else:
        out(
            f"{args.target}: {told['bytes']} bytes, from {told['examples']} requests, "
            f"{told['accepted']:.1%} of them accepted"
        )
        out(
            f"held out: area under the curve {told['auc']:.3f}; below 0.5 are {told['sent']:.1%}, "
            f"of which {told['precision']:.1%} were refused, {told['recall']:.1%} of all refused"
        )
    return Exit.USAGE if bad else Exit.OK


def _samples(
    args: argparse.Namespace, settings: Settings, answerer: Answerer, card: dict[str, Any], now: int
) -> tuple[list[Sample], dict[str, int]]:
    """The samples, and what was read."""
    if args.source != _FEEDBACK:
        return _samples_of_file(args.source, answerer)
    from edgeway.feedback_topic import gather

    since = int((card.get("calibration") or {}).get("since_ms") or 0)
    with bar("reading") as progress:
        joined = asyncio.run(gather(settings, answerer, back(now, args.since), since, progress.advance))
    return joined.samples, {
        "feedback": len(joined.said),
        "unreadable": joined.unreadable,
        "without_result": joined.unanswered,
        "of_other_models": joined.others,
        "before_the_calibration": joined.older,
    }


def _samples_of_file(file: str, answerer: Answerer) -> tuple[list[Sample], dict[str, int]]:
    from edgeway.feedback import sample_of
    from edgeway.request_lines import BadLine

    samples, seen = [], {"lines": 0, "unreadable": 0, "of_other_models": 0}
    for number, line in enumerate(read_file(file).splitlines(), 1):
        if not line.strip():
            continue
        seen["lines"] += 1
        try:
            sample = sample_of(line, answerer)
        except ValueError as error:
            seen["unreadable"] += 1
            say_bad(BadLine(number, str(error)))
            continue
        if sample is None:
            seen["of_other_models"] += 1
        else:
            samples.append(sample)
    return samples, seen


def _check_capability(wanted: str | None, answerer: Answerer) -> None:
    if wanted not in (None, answerer.capability, f"{answerer.side}/{answerer.capability}"):
        raise UsageError(f"the card is of {answerer.side}/{answerer.capability}, not of {wanted}")


def _tell(told: dict[str, Any], path: str) -> None:
    before, after = told["before"], told["after"]
    out(f"{told['model']} ({told['capability']}), {told['samples']} answers")
    out(f"  expected calibration error  {before['ece']:.4f} -> {after['ece']:.4f}  (after: held out)")
    out(
        f"  accepted at {told['threshold']:g}             {before['coverage']:.1%} -> {after['coverage']:.1%}"
    )
    out(f"  right of these              {before['accuracy']:.1%} -> {after['accuracy']:.1%}")
    say(f"read: {', '.join(f'{count} {name}' for name, count in told['read'].items())}")
    if not told["changes"]:
        say("no map did better on answers it had not seen: the card stays as it is")
    elif told["written"]:
        say(f"{told['method']}: written to {path}; what was there is kept as `previous`")
    else:
        say(f"{told['method']} would be written to {path}")
