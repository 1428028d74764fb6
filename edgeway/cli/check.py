"""`edgeway check FILE`: whether a rules file can be used."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, read_settings
from edgeway.cli.output import out, out_json, say
from edgeway.errors import Exit

if TYPE_CHECKING:
    from edgeway.checking import Checked


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(subparsers, "check", "check a rules file, and that apps offer what it uses")
    parser.usage = "%(prog)s FILE [flags]"
    parser.add_argument("file", metavar="FILE", type=Path, help="the rules file")
    parser.add_argument(
        "--app",
        action="append",
        default=[],
        metavar="APP",
        help="a Python module or file that offers capabilities, in place of the `apps` of the rules",
    )
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 where the roles would start with the file, 2 where not."""
    logs.configure(read_settings(args), quiet_client=True)
    from edgeway.checking import check, summary
    from edgeway.rules_of import read_rules

    checked = check(read_rules(args.file), args.file, args.app)
    good = checked.rules is not None and not checked.problems
    said: dict[str, Any] = {} if checked.rules is None else summary(checked.rules)
    if args.json:
        problems = [problem._asdict() for problem in checked.problems]
        out_json({"file": str(args.file), "ok": good, "problems": problems, **said})
    else:
        _show(args.file, checked, said)
    return Exit.OK if good else Exit.USAGE


def _show(file: Path, checked: Checked, said: dict[str, Any]) -> None:
    for problem in checked.problems:
        out(f"{file}:{problem.line}: {problem.path}: {problem.reason}")
    if checked.problems:
        say(f"{file} is refused")
        return
    out(f"{file}: rules {said['version']}")
    out(f"tasks      {len(said['tasks'])}: {', '.join(said['tasks'])}")
    out(f"steps      {said['steps']}")
    for side, names in said["capabilities"].items():
        out(f"{side:9}  {len(names)}: {', '.join(names)}")
    out(f"detectors  {', '.join(said['detectors']) or 'none: the declared level alone counts'}")
    out(f"budget     {_budget(said['budget'])}")


def _budget(budget: dict[str, Any] | None) -> str:
    if budget is None:
        return "none"
    limits = {"a day": budget["per_day"], "a tenant and day": budget["per_tenant"]}
    given = [f"{limit:g} {budget['currency']} {what}" for what, limit in limits.items() if limit is not None]
    return ", ".join(given) or "counted, without a ceiling"
