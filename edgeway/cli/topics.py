"""`edgeway topics apply|check`: the topics of a cluster."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
from typing import TYPE_CHECKING

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, read_settings
from edgeway.cli.output import out, out_json, say
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from edgeway.topics_admin import Report


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("topics", help="make or check the topics", allow_abbrev=False)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    apply = command(verbs, "apply", "make the topics that are missing and check the others", "topics")
    apply.add_argument("--fix", action="store_true", help="set the configuration that differs")
    apply.add_argument(
        "--grow", action="store_true", help="add partitions that are missing; stop the roles first"
    )
    check = command(verbs, "check", "say how the topics differ from what they should be", "topics")
    check.set_defaults(fix=False, grow=False)
    for verb, name in ((apply, "apply"), (check, "check")):
        verb.add_argument("--json", action="store_true", help="the report as JSON")
        verb.set_defaults(run=run, verb=name)


def run(args: argparse.Namespace) -> int:
    """0 where the roles can work with the topics, 4 where not."""
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    from edgeway.rules_of import require_merges, rules_of
    from edgeway.topics_admin import apply_topics, check_topics
    from schemas.topics import topics_for

    rules = rules_of(settings)
    try:
        require_merges(rules)
    except UsageError as wrong:
        # Another strategy may be installed where the roles run.
        say(f"warning: {wrong}")
    specs = topics_for(rules, settings.partitions)
    if args.verb == "apply":
        report = asyncio.run(apply_topics(settings, specs, fix=args.fix, grow=args.grow))
    else:
        report = asyncio.run(check_topics(settings, specs))
    if args.json:
        out_json(dataclasses.asdict(report) | {"good": report.good})
    else:
        _show(report, len(specs))
    return Exit.OK if report.good else Exit.TOPICS


def _show(report: Report, wanted: int) -> None:
    for name in report.created:
        out(f"made     {name}")
    for change in report.changed:
        out(f"changed  {change}")
    for problem in report.problems:
        out(f"{problem.severity:8} {problem}")
    if report.auto_create:
        say(
            "warning: the broker makes topics by itself (auto.create.topics.enable): a misspelt name makes\n"
            "a topic with the wrong settings. Set it to false."
        )
    say(f"{wanted} topics: {'all as they must be' if report.good else 'not as they must be'}")
