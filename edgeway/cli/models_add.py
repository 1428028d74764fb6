"""`edgeway models add`: a new version in a repository, with the check that it must pass from then on."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeway.cli.arguments import Subparsers, command, positive
from edgeway.cli.feedback import read_file
from edgeway.cli.models_places import activated, bytes_bar, opened, told
from edgeway.cli.output import out, out_json, say
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from workers.models.adding import Asking
    from workers.models.check import Asked


def add(verbs: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(verbs, "add", "copy a model into a repository, as a new version", "models")
    parser.usage = "%(prog)s SOURCE --models URL [flags]"
    parser.add_argument("source", metavar="SOURCE", help="a model folder with a card.json, or a model's file")
    parser.add_argument("--name", metavar="NAME", help="the model (default: the card's, or that of SOURCE)")
    parser.add_argument(
        "--as", dest="version", metavar="VERSION", help="its version (default: the card's, or one more)"
    )
    parser.add_argument("--capability", metavar="SIDE/NAME", help="what it serves, as local/vision/damage")
    parser.add_argument(
        "--set",
        dest="fields",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a field of the card, JSON or text: --set max_batch=64 --set 'options={\"softmax\": true}'",
    )
    parser.add_argument(
        "--check",
        metavar="FILE",
        help='inputs whose answers are recorded, a line of JSON each: {"inputs": {...}, "params": {...}}; '
        "without it some are made up for an ONNX model of numbers",
    )
    parser.add_argument(
        "--tolerance",
        type=positive,
        metavar="X",
        help="how far numbers may be from recorded ones: X + X * |recorded| (default 0.0001 + 0.001 * ...)",
    )
    parser.add_argument("--activate", action="store_true", help="have it served at once")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0, or 2 where the model, its card or its inputs cannot be used."""
    source = opened(args)
    from workers.models import adding

    fields = fields_of(args)
    place = Path(args.source)
    with told():
        with bytes_bar("copying", adding.size_of(place)) as advance:
            done = adding.add(source.repository, place, fields, _asking(args), advance)
        manifest = done.manifest
        active = None
        if args.activate:
            # What was recorded a moment ago need not be asked again.
            active = activated(source, manifest.name, manifest.version)
    about = {
        "model": manifest.name,
        "version": manifest.version,
        "capability": f"{done.card['side']}/{done.card['capability']}",
        "files": len(manifest.files),
        "bytes": manifest.size,
        "checked_rows": len(done.check.rows),
        "took_ms": round(done.took_ms, 1),
        "active": active is not None,
    }
    if args.json:
        out_json(about)
        return Exit.OK
    out(
        f"{manifest.name} {manifest.version} ({about['capability']}): {about['files']} files, "
        f"{manifest.size} bytes; its check has {about['checked_rows']} rows"
    )
    if not done.check.rows:
        local = done.card["model_type"] == "onnx"
        checked = "only loading is checked" if local else "nobody asks it before the workers do"
        say(f"nothing was recorded, so that {checked}; give inputs with --check FILE")
    if active is None:
        say(f"serve it: edgeway models activate {manifest.name} {manifest.version}")
    return Exit.OK


def fields_of(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of the card that the flags set.

    Raises:
        UsageError: one is no KEY=VALUE, or a capability without its side.
    """
    fields: dict[str, Any] = {}
    for text in args.fields:
        key, mark, value = text.partition("=")
        if not mark or not key:
            raise UsageError(f"--set {text[:80]!r} is no KEY=VALUE")
        fields[key] = _value(value)
    if args.capability is not None:
        side, _, name = args.capability.partition("/")
        if side not in ("local", "cloud") or not name:
            raise UsageError(f"--capability {args.capability!r} is no local/NAME or cloud/NAME")
        fields |= {"side": side, "capability": name}
    given = {"name": args.name, "version": args.version}
    return fields | {key: value for key, value in given.items() if value is not None}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _asking(args: argparse.Namespace) -> Asking:
    from workers.models.adding import Asking
    from workers.models.check import Tolerance

    rows = None if args.check is None else _rows(args.check)
    near = Tolerance() if args.tolerance is None else Tolerance(abs=args.tolerance, rel=args.tolerance)
    return Asking(rows, near)


def _rows(file: str) -> list[Asked]:
    import msgspec

    from workers.models.check import Asked

    found = []
    for number, line in enumerate(read_file(file).splitlines(), 1):
        if line.strip():
            try:
                found.append(msgspec.json.decode(line, type=Asked))
            except (msgspec.DecodeError, RecursionError) as error:
                raise UsageError(f"{file}, line {number}: {error}") from error
    if not found:
        raise UsageError(f"{file} holds no inputs: give a line of JSON a row")
    return found
