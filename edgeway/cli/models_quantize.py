"""`edgeway models quantize`: an INT8 version of a model, measured against the one it was made of."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeway.cli.arguments import Subparsers, command
from edgeway.cli.feedback import read_file
from edgeway.cli.models_places import activated, bytes_bar, opened, parted, told, version_of
from edgeway.cli.output import out, out_json, say
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from workers.models.chosen import Source
    from workers.models.evidence import Sample
    from workers.models.quantize import Report

CHECKED = 8
"""Samples whose answers are recorded as the new version's check."""


def add(verbs: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(
        verbs, "quantize", "add an INT8 version of an ONNX model, if it is good enough", "models"
    )
    parser.usage = "%(prog)s NAME[@VERSION] --data FILE --models URL [flags]"
    parser.add_argument("name", metavar="NAME[@VERSION]", help="default: the active version, or the newest")
    parser.add_argument(
        "--data",
        required=True,
        metavar="FILE",
        help='what both models are judged by, a line of JSON a sample: {"inputs": {...}, "label": ...}; '
        "without labels only whether they agree",
    )
    parser.add_argument(
        "--method",
        choices=("dynamic", "static"),
        default="dynamic",
        help="static fixes the ranges of activations from samples: for convolutions (default dynamic)",
    )
    parser.add_argument(
        "--calibrate-on",
        dest="calibrate",
        metavar="FILE",
        help="samples for static (default: 30 %% of --data, which then do not judge)",
    )
    parser.add_argument(
        "--max-loss",
        type=_share,
        default=0.01,
        metavar="X",
        help="accuracy that may be lost (without labels: agreement that may be missing), as a share; beyond "
        "it nothing is added (default 0.01)",
    )
    parser.add_argument("--as", dest="version", metavar="VERSION", help="its version (default: VERSION-int8)")
    parser.add_argument("--activate", action="store_true", help="have it served at once, where it is added")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 where it was added; 1 where it loses too much; 2 where model or samples cannot be used."""
    from workers.models import adding
    from workers.models.check import Asked
    from workers.models.quantize import Wanted, quantized

    source = opened(args)
    samples = _samples(args.data)
    wanted = Wanted(args.method, samples, _samples(args.calibrate) if args.calibrate else (), args.max_loss)
    with told(), tempfile.TemporaryDirectory(prefix="edgeway-quantize-") as place:
        name, version = parted(args.name)
        version = version_of(source, name, version)
        target = args.version or f"{version}-int8"
        _refuse_taken(source, name, target)
        say(f"quantizing {name} {version} ({args.method}), {len(samples)} samples")
        report = quantized(_pulled(source, name, version), Path(place), target, wanted)
        if report.allowed:
            asking = adding.Asking([Asked(s.inputs, s.params) for s in samples[:CHECKED]])
            with bytes_bar("adding", adding.size_of(Path(place))) as advance:
                adding.add(source.repository, Path(place), {}, asking, advance)
            if args.activate:
                activated(source, name, target)
    return _tell(args, report, f"{name} {target}")


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to 1")
    return share


def _samples(file: str) -> list[Sample]:
    from workers.models.evidence import samples_of

    with told():
        found = samples_of(read_file(file).splitlines(), file)
    if not found:
        raise UsageError(f"{file} holds no samples: give a line of JSON each")
    return found


def _refuse_taken(source: Source, name: str, version: str) -> None:
    if version in source.repository.versions(name):
        raise UsageError(
            f"{name} {version} is there already; give the new version another name: --as VERSION"
        )


def _pulled(source: Source, name: str, version: str) -> Path:
    size = source.repository.manifest(name, version).size
    with bytes_bar(f"pulling {name} {version}", size) as advance:
        return source.cache.pull(source.repository, name, version, advance)


def _tell(args: argparse.Namespace, report: Report, what: str) -> int:
    from workers.models.quantize import told as as_json

    about = as_json(report)
    added = {"model": what.partition(" ")[0], "version": what.partition(" ")[2], "added": report.allowed}
    active = bool(args.activate and report.allowed)
    if args.json:
        out_json({**added, "active": active, **about})
    else:
        _tell_text(about)
    if not report.allowed:
        lost = "accuracy" if about["after"]["accuracy"] is not None else "agreement"
        say(
            f"{what} is not added: it loses {report.loss:.2%} of {lost}, --max-loss allows "
            f"{report.max_loss:.2%}; try --method static, more samples, or a larger bound"
        )
        return Exit.FAILED
    say(f"{what} is {'active' if active else 'added'}")
    if not active:
        say(f"serve it: edgeway models activate {what}")
    return Exit.OK


def _tell_text(about: dict[str, Any]) -> None:
    before, after = about["before"], about["after"]
    out(f"  size             {before['bytes']} -> {after['bytes']} bytes")
    out(f"  one row          {before['single_ms']:.3f} -> {after['single_ms']:.3f} ms")
    out(f"  in batches       {before['rows_per_s']:.0f} -> {after['rows_per_s']:.0f} rows/s")
    if after["accuracy"] is not None:
        out(f"  accuracy         {before['accuracy']:.2%} -> {after['accuracy']:.2%}")
    out(f"  answered alike   {about['agreement']:.2%} of {about['samples']} samples")
