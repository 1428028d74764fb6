"""`edgeway models show|export-card`: what a card says, of a file or of a version in a repository."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from edgeway.cli.arguments import Subparsers, command, read_settings
from edgeway.cli.models_places import opened, parted, told, version_of
from edgeway.cli.output import out, out_json
from edgeway.errors import Exit, UsageError


def add(verbs: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    show = command(verbs, "show", "show what models are, and what their confidence is worth", "models")
    show.usage = "%(prog)s CARD... [flags]"
    show.add_argument(
        "cards",
        nargs="+",
        metavar="CARD",
        help="a card.json, a model folder, or NAME or NAME@VERSION of the repository",
    )
    show.set_defaults(run=run_show)
    export = command(verbs, "export-card", "write a version's card as its workers announce it", "models")
    export.usage = "%(prog)s NAME[@VERSION] --models URL [flags]"
    export.add_argument("model", metavar="NAME", help="NAME (the active version), or NAME@VERSION")
    export.set_defaults(run=run_export)


def run_show(args: argparse.Namespace) -> int:
    """0, or 2 where one is no card."""
    from workers.errors import LoadError
    from workers.models.cards import calibrator_of, card_path, read_card, statement_of

    for place in args.cards:
        try:
            card, more = _stored(args, place) if _is_stored(args, place) else (read_card(place), {})
            maps, stated = calibrator_of(card), statement_of(card)
        except LoadError as error:
            raise UsageError(str(error)) from error
        about = {
            "card": more.pop("place", None) or str(card_path(place)),
            "model": f"{card.get('name')} {card.get('version')}",
            "capability": f"{card.get('side')}/{card.get('capability')}",
            "licence": card.get("licence") or card.get("license"),
            "source": card.get("source"),
            "quality": card.get("quality"),
            "calibration": None if stated is None else _plain(stated),
            "maps": [one.method for one in maps.maps],
            "previous": bool((card.get("calibration") or {}).get("previous")),
            **more,
        }
        out_json(about) if args.json else _tell_card(about)
    return Exit.OK


def run_export(args: argparse.Namespace) -> int:
    """0, or 2 where there is no such version."""
    source = opened(args)
    from workers.models.offering import card_of

    name, version = parted(args.model)
    with told():
        version = version_of(source, name, version)
        out_json(_plain(card_of(source.repository.card(name, version), f"{name} {version}")))
    return Exit.OK


def _is_stored(args: argparse.Namespace, text: str) -> bool:
    """Whether `text` names a model of the repository rather than a file or folder."""
    if read_settings(args).models is None or "/" in text:
        return False
    if "@" in text or not Path(text).exists():
        return True
    with told():
        return text in opened(args).repository.names()


def _stored(args: argparse.Namespace, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The card of NAME or NAME@VERSION, and what else there is to say of it."""
    source = opened(args)
    name, version = parted(text)
    with told():
        version = version_of(source, name, version)
        card = source.repository.card(name, version)
        manifest = source.repository.manifest(name, version)
        active = source.repository.active(name)
    files = {path: {"sha256": file.sha256, "bytes": file.bytes} for path, file in manifest.files.items()}
    return card, {
        "place": f"{source.repository.store.url}/{name}/{version}",
        "active": active is not None and active.version == version,
        "added_ms": manifest.created_ms,
        "model_type": card.get("model_type"),
        "files": files,
    }


def _plain(stated: Any) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(stated)
    return found


def _tell_card(about: dict[str, Any]) -> None:
    out(f"{about['model']} ({about['capability']})")
    for key in ("licence", "source", "quality"):
        if about.get(key):
            out(f"  {key}: {about[key]}")
    for path, file in about.get("files", {}).items():
        out(f"  {file['sha256'][:12]}  {file['bytes']:>12}  {path}")
    stated = about["calibration"]
    if stated is None:
        out("  confidence not calibrated")
        return
    maps = " then ".join(about["maps"]) or "no map"
    out(f"  {maps}, {stated['samples']} answers held out, ECE {stated['ece']:.4f}")
    taken, right = stated["coverage"], stated["accuracy"]
    out(f"  at {stated['threshold']:g}: {taken:.1%} accepted, {right:.1%} of them right")
