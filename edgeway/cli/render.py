"""`edgeway render [FILE]`: results as reports for people, in Markdown or HTML."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import quote

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, read_settings
from edgeway.cli.inputs import opened
from edgeway.cli.output import out, say
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from edgeway.report import Kind
    from schemas.messages import Result

_ENDS = {"markdown": ".md", "html": ".html"}


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(subparsers, "render", "write results as reports, in Markdown or HTML")
    parser.usage = "%(prog)s [FILE] [flags]"
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="-",
        help="results a line in JSON, as `send --wait --json` and `results --json` print them (default: -)",
    )
    parser.add_argument(
        "--format", choices=("markdown", "html"), help="default: by the end of --output, else markdown"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="a file, or a folder (for HTML: a name without an ending) for a report of each result; "
        "without it standard output",
    )
    parser.add_argument("--id", help="only this request")
    parser.add_argument("--title", help="the heading in place of the task's name")
    parser.add_argument(
        "--links", action="store_true", help="link outputs stored apart to /requests/ID/output of a gateway"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 where all lines were results; 2 where some were none, 5 where --id is not among them."""
    logs.configure(read_settings(args), quiet_client=True)
    from edgeway.report import render

    kind: Kind = args.format or ("html" if str(args.output).endswith((".html", ".htm")) else "markdown")
    into = _folder(args.output, kind)
    reports: list[str] = []
    bad = written = 0
    with opened(args.file, "FILE") as stream:
        for number, result in _results(stream):
            if isinstance(result, str):
                bad += 1
                say(f"line {number} is left out, the others go on: {result}")
            elif args.id in (None, result.id):
                report = render(result, kind, title=args.title, links=args.links)
                written += 1
                if into is not None:
                    _write(into / f"{written:04d}-{quote(result.id, safe='')[:100]}{_ENDS[kind]}", report)
                else:
                    reports.append(report)
                    _one_page(kind, reports)
    if reports:
        _put(args.output, "\n---\n\n".join(reports))
    if not written:
        what = "no result" if args.id is None else f"no result of {args.id}"
        say(f"{what} in {'standard input' if args.file == '-' else args.file}; nothing was written")
        return Exit.USAGE if bad else Exit.UNANSWERED
    return Exit.USAGE if bad else Exit.OK


def _folder(output: Path | None, kind: Kind) -> Path | None:
    """`output` where it is a folder, or is to be one: HTML without an ending in its name."""
    if output is None or not (output.is_dir() or (kind == "html" and not output.suffix)):
        return None
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise UsageError(f"{output}: cannot be made: {exc.strerror or exc}; name another with -o") from exc
    return output


def _results(stream: IO[bytes]) -> Iterator[tuple[int, Result | str]]:
    """Each line with its number; of one that is no result, why."""
    from schemas.codec import decode
    from schemas.errors import SchemaError
    from schemas.messages import Result

    for number, line in enumerate(stream, 1):
        if line.strip():
            try:
                yield number, decode(line.strip(), Result, "json")
            except SchemaError as error:
                yield number, str(error)


def _one_page(kind: str, reports: list[str]) -> None:
    if kind == "html" and len(reports) > 1:
        raise UsageError(
            "an HTML page shows one result, and there are several: choose with --id, or give -o FOLDER"
        )


def _put(path: Path | None, text: str) -> None:
    if path is None:
        out(text.rstrip("\n"))
    else:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise UsageError(f"{path}: cannot be written: {exc.strerror or exc}; name another with -o") from exc
