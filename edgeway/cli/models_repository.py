"""`edgeway models list|activate|rollback|prune|verify`: what a repository holds and which of it is served."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from edgeway.cli.arguments import Subparsers, command
from edgeway.cli.models_places import activated, bytes_bar, newest, opened, parted, told, version_of
from edgeway.cli.output import out, out_json, say
from edgeway.errors import Exit

if TYPE_CHECKING:
    from workers.models.chosen import Source
    from workers.models.manifest import Active
    from workers.models.repository import Listed


def add(verbs: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    listing = command(
        verbs, "list", "list the models of a repository, and which versions are active", "models"
    )
    listing.set_defaults(run=run_list)
    activate = command(verbs, "activate", "check a version and have workers serve it", "models")
    activate.usage = "%(prog)s NAME [VERSION] --models URL [flags]"
    activate.add_argument("name", metavar="NAME")
    activate.add_argument("version", metavar="VERSION", nargs="?", help="default: the newest")
    activate.add_argument(
        "--unchecked",
        action="store_true",
        help="without its check, here and in the workers; active.json says so",
    )
    activate.set_defaults(run=run_activate)
    rollback = command(verbs, "rollback", "have workers serve the version that was active before", "models")
    rollback.usage = "%(prog)s NAME --models URL [flags]"
    rollback.add_argument("name", metavar="NAME")
    rollback.set_defaults(run=run_rollback)
    prune = command(verbs, "prune", "remove old versions, never the active one", "models")
    prune.usage = "%(prog)s [NAME...] --models URL [flags]"
    prune.add_argument("names", metavar="NAME", nargs="*", help="default: every model")
    prune.add_argument(
        "--keep", type=int, default=3, metavar="N", help="the active version and N - 1 before (default 3)"
    )
    prune.add_argument("--dry-run", action="store_true", help="say what would be removed")
    prune.set_defaults(run=run_prune)
    verify = command(verbs, "verify", "compare files with their hashes", "models")
    verify.usage = "%(prog)s [NAME[@VERSION]...] --models URL [flags]"
    verify.add_argument("names", metavar="NAME", nargs="*", help="default: every version of every model")
    verify.set_defaults(run=run_verify)


def run_list(args: argparse.Namespace) -> int:
    """0; 1 where something cannot be read."""
    source = opened(args)
    with told():
        models = source.repository.models()
    for listed in models:
        about = _about(listed)
        out_json(about) if args.json else _tell(about)
    if not models:
        url = source.repository.store.url
        say(f"{url} holds no models; add one: edgeway models add FOLDER --models {url}")
    return Exit.FAILED if any(listed.problem for listed in models) else Exit.OK


def run_activate(args: argparse.Namespace) -> int:
    """0; 1 where the version is not what was added, or does not answer as recorded."""
    source = opened(args)
    with told():
        known = newest(source, args.name)
        version = args.version or known
        repository = source.repository
        size = repository.manifest(args.name, version).size
        if not args.unchecked:
            _check(source, args.name, version, size)
        before = _active(source, args.name)
        now = activated(source, args.name, version, unchecked=args.unchecked)
    return _tell_change(args, now, before)


def run_rollback(args: argparse.Namespace) -> int:
    """0, or 2 where there is nothing to go back to."""
    source = opened(args)
    with told():
        before = source.repository.active(args.name)
        now = source.repository.rollback(args.name)
    return _tell_change(args, now, before)


def run_prune(args: argparse.Namespace) -> int:
    """0."""
    source = opened(args)
    with told():
        for name in args.names or source.repository.names():
            for gone in source.repository.prune(name, args.keep, dry_run=args.dry_run):
                if args.json:
                    out_json({**gone._asdict(), "removed": not args.dry_run})
                else:
                    done = "would be removed" if args.dry_run else "removed"
                    out(f"{gone.name} {gone.version}: {done}, {gone.bytes} bytes")
    return Exit.OK


def run_verify(args: argparse.Namespace) -> int:
    """0; 1 where a version is not what was added."""
    source = opened(args)
    bad = 0
    with told():
        for name, version in _versions(source, args.names):
            problem = _problem(source, name, version)
            bad += problem is not None
            if args.json:
                out_json({"model": name, "version": version, "ok": problem is None, "problem": problem})
            else:
                out(f"{name} {version}: {problem or 'as it was added'}")
    return Exit.FAILED if bad else Exit.OK


def _versions(source: Source, names: list[str]) -> list[tuple[str, str]]:
    found = []
    for text in names or source.repository.names():
        name, version = parted(text)
        if version is None:
            version_of(source, name, None)  # says which models there are, where this is none
        found += [(name, v) for v in ([version] if version else source.repository.versions(name))]
    return found


def _problem(source: Source, name: str, version: str) -> str | None:
    from workers.errors import Damaged
    from workers.models.stores import Missing

    try:
        with bytes_bar(f"{name} {version}", source.repository.manifest(name, version).size) as advance:
            source.repository.verify(name, version, advance)
    except (Damaged, Missing) as error:
        return str(error)
    return None


def _check(source: Source, name: str, version: str, size: int) -> None:
    from workers.models.ready import tried

    if version in source.cache.versions(name):
        # It was pulled when it was sound; others are to pull it now.
        source.repository.verify(name, version)
    with bytes_bar(f"pulling {name} {version}", size) as advance:
        folder = source.cache.pull(source.repository, name, version, advance)
    tried(folder)
    source.cache.prune(name, {version})


def _active(source: Source, name: str) -> Active | None:
    from workers.errors import Damaged

    try:
        return source.repository.active(name)
    except Damaged as error:
        say(f"{error}: it is written anew")
        return None


def _tell_change(args: argparse.Namespace, now: Active, before: Active | None) -> int:
    import msgspec

    old = None if before is None else before.version
    if args.json:
        told: dict[str, Any] = msgspec.to_builtins(now)
        out_json({"model": args.name, **told, "replaced": old})
        return Exit.OK
    place = "" if old is None else f", in place of {old}"
    out(f"{args.name} {now.version} is active{place if old != now.version else ' again'}")
    if now.unchecked:
        say("its check was left out, and active.json says so")
    say("workers that serve it take it up within seconds (--models-poll-s); others when they start")
    return Exit.OK


def _about(listed: Listed) -> dict[str, Any]:
    card, active = listed.card, listed.active
    return {
        "model": listed.name,
        "capability": f"{card.get('side')}/{card.get('capability')}" if card else None,
        "active": None if active is None else active.version,
        "since_ms": None if active is None else active.since_ms,
        "unchecked": active is not None and active.unchecked,
        "previous": [] if active is None else list(active.previous),
        "versions": listed.versions,
        "problem": listed.problem or None,
    }


def _tell(about: dict[str, Any]) -> None:
    marks = {about["active"]: "*"}
    versions = " ".join(f"{v}{marks.get(v, '')}" for v in about["versions"]) or "no complete version"
    state = f"active {about['active']}" if about["active"] else "not active"
    more = " (unchecked)" if about["unchecked"] else ""
    out(f"{about['model']}  {about['capability'] or '?'}  {state}{more}  versions: {versions}")
    if about["problem"]:
        say(f"{about['model']}: {about['problem']}")
