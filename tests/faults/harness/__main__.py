"""`python -m tests.faults.harness SCENARIO [--requests N] [--rate R] [--json FILE]`: one scenario by hand."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import sys
import tempfile
from pathlib import Path

from tests.faults.harness.runs import folder_of
from tests.faults.harness.scenarios import SCENARIOS


def main() -> int:
    """0 where all bounds held."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.harness", description=__doc__)
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument(
        "--short", action="store_true", help="the size of `make test` instead of the full one"
    )
    parser.add_argument("--requests", type=int)
    parser.add_argument("--rate", type=float, help="requests a second")
    parser.add_argument("--deadline-ms", type=int, dest="deadline_ms")
    parser.add_argument("--seconds", type=float, help="long-open: how long the one request stays open")
    parser.add_argument("--seed", type=int, help="of what is random")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the report, also to this file")
    parser.add_argument("--folder", type=Path, help="for the roles' logs, kept; without it a temporary one")
    args = parser.parse_args()
    logging.getLogger("aiokafka").setLevel("CRITICAL")
    entry = SCENARIOS[args.scenario]
    names = [field.name for field in dataclasses.fields(entry.full)]
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    size = dataclasses.replace(entry.short if args.short else entry.full, **given)
    with tempfile.TemporaryDirectory(prefix="edgeway-faults-", ignore_cleanup_errors=True) as temporary:
        folder = folder_of(args.folder or Path(temporary), args.scenario)
        report = asyncio.run(entry.run(folder, size))
    text = json.dumps(report.as_dict(), indent=2)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    for line in report.wrong:
        sys.stderr.write(f"wrong: {line}\n")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
