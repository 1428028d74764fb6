"""`edgeway dead-letters list|show|replay`: records that were set aside, why, and their requests once more."""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from edgeway import logs
from edgeway.cli.arguments import Subparsers, back, command, duration, read_settings
from edgeway.cli.output import bar, out, out_json, say
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeway.dead_lettering import Replayed
    from edgeway.dead_letters import Letter, Place
    from streams.settings import Settings

_DAY_MS = 86_400_000
_PAYLOAD = 65_536
_PLACE = re.compile(r"(\d{1,6})/(\d{1,18})", re.ASCII)


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command and its three verbs."""
    top = subparsers.add_parser("dead-letters", help="records that were set aside: list, show, replay")
    verbs = top.add_subparsers(title="what to do", metavar="VERB", required=True)
    found = command(verbs, "list", "list records that were set aside, and why", "dead-letters")
    _filters(found, "1d")
    found.set_defaults(run=run_list)
    one = command(verbs, "show", "show one of them: where it came from, its headers", "dead-letters")
    one.usage = "%(prog)s PLACE [flags]"
    one.add_argument("place", metavar="PLACE", help="PARTITION/OFFSET, as `list` shows it")
    one.add_argument("--payload", action="store_true", help="print what is in it too; it may be sensitive")
    one.add_argument("--json", action="store_true", help="as JSON")
    one.set_defaults(run=run_show)
    again = command(verbs, "replay", "send requests that were set aside once more", "dead-letters")
    again.usage = "%(prog)s [PLACE ...] [flags]"
    again.add_argument("places", metavar="PLACE", nargs="*", help="PARTITION/OFFSET, as `list` shows it")
    _filters(again, "1d")
    again.add_argument("--all", action="store_true", help="all that --since, --topic and --error leave")
    again.add_argument(
        "--new-ids", action="store_true", help="under new ids: one that was answered is not answered again"
    )
    again.add_argument("--dry-run", action="store_true", help="only say which")
    again.set_defaults(run=run_replay)


def _filters(parser: argparse.ArgumentParser, since: str) -> None:
    parser.add_argument(
        "--since", type=duration, metavar="TIME", default=_DAY_MS, help=f"begin so long ago (default {since})"
    )
    parser.add_argument("--error", metavar="CODE", help="only these, such as handler_error")
    parser.add_argument("--topic", metavar="TOPIC", help="only records of this topic")
    parser.add_argument("--json", action="store_true", help="JSON lines")


def run_list(args: argparse.Namespace) -> int:
    """0, also where there are none."""
    some = asyncio.run(_chosen(_begun(args), args))
    for letter in some:
        if args.json:
            out_json(letter.told())
        else:
            out(_line(letter))
    kinds = Counter(letter.error or "unknown" for letter in some)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    say(f"{len(some)} dead letters" + (f": {told}" if told else ""))
    return Exit.OK


def run_show(args: argparse.Namespace) -> int:
    """5 where there is none at that place."""
    settings = _begun(args)
    place = _place(args.place)
    letter = asyncio.run(_found(settings, [place])).get(place)
    if letter is None:
        say(f"no dead letter at {place}; `edgeway dead-letters list` shows those of the last day")
        return Exit.UNANSWERED
    told = letter.told()
    if args.json:
        out_json(told | ({"payload": _payload(letter)} if args.payload else {}))
        return Exit.OK
    given = told.pop("headers")
    for name, value in told.items():
        out(f"{name:13} {_plain('-' if value is None else _time(value) if name.endswith('_ms') else value)}")
    for name, value in given.items():
        out(f"header        {_plain(name)}: {_plain(value)}")
    if args.payload:
        out("")
        out(_plain(_payload(letter)))
    return Exit.OK


def run_replay(args: argparse.Namespace) -> int:
    """0 where all were sent again, 1 where some were refused, 5 where a place holds none."""
    settings = _begun(args)
    if bool(args.places) == args.all:
        raise UsageError("name the PLACEs to replay, or give --all with --since, --topic or --error")
    places = [_place(text) for text in args.places]
    if args.all:
        some: Sequence[Letter] = asyncio.run(_chosen(settings, args))
    else:
        known = asyncio.run(_found(settings, places))
        some = [known[place] for place in dict.fromkeys(places) if place in known]
        for place in places:
            if place not in known:
                say(f"no dead letter at {place}")
    missing = len(set(places)) - len(some) if places else 0
    if args.dry_run:
        return _rehearsed(settings, args, some, missing)
    return _replayed(settings, args, some, missing)


def _rehearsed(settings: Settings, args: argparse.Namespace, some: Sequence[Letter], missing: int) -> int:
    from edgeway.dead_lettering import rehearse

    done = asyncio.run(rehearse(settings, some, new_ids=args.new_ids)) if some else []
    for one in done:
        if args.json:
            out_json(one.letter.told() | {"refused": one.refused})
        else:
            out(_line(one.letter) if one.refused is None else _outcome(one))
    refused = sum(one.refused is not None for one in done)
    say(f"{len(done) - refused} would be replayed, {refused} refused")
    return Exit.FAILED if refused else Exit.UNANSWERED if missing else Exit.OK


def _replayed(settings: Settings, args: argparse.Namespace, some: Sequence[Letter], missing: int) -> int:
    from edgeway.dead_lettering import replay

    done = asyncio.run(replay(settings, some, new_ids=args.new_ids)) if some else []
    for one in done:
        if args.json:
            out_json(_report(one))
        else:
            out(_outcome(one))
    refused = sum(one.refused is not None for one in done)
    say(f"{len(done) - refused} sent again, {refused} refused")
    if done and not args.new_ids and any(one.id is None and one.refused is None for one in done):
        say("ids are kept: one that was answered, with an error too, has its answer; --new-ids asks anew")
    return Exit.FAILED if refused else Exit.UNANSWERED if missing else Exit.OK


def _begun(args: argparse.Namespace) -> Settings:
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    return settings


async def _chosen(settings: Settings, args: argparse.Namespace) -> list[Letter]:
    from edgeway.dead_lettering import letters

    since = back(int(time.time() * 1000), args.since)
    with bar("reading") as progress:
        return [
            letter
            async for letter in letters(settings, since, progress.advance)
            if args.error in (None, letter.error) and args.topic in (None, letter.topic)
        ]


async def _found(settings: Settings, places: Sequence[Place]) -> dict[Place, Letter]:
    from edgeway.dead_lettering import at

    return await at(settings, places)


def _place(text: str) -> Place:
    from edgeway.dead_letters import Place

    match = _PLACE.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no place; give PARTITION/OFFSET, as `dead-letters list` shows it")
    return Place(int(match[1]), int(match[2]))


def _line(letter: Letter) -> str:
    origin = "" if letter.origin is None else f"/{letter.origin}"
    key = "-" if letter.key is None else letter.told()["key"][:80]
    what = f"{letter.error or 'unknown'}: {letter.message or '-'}"
    return _plain(f"{letter.place}  {_time(letter.at)}  {letter.topic or '?'}{origin}  {key}  {what}")


def _report(one: Replayed) -> dict[str, Any]:
    place = None if one.place is None else f"requests/{one.place}"
    return {"place": str(one.letter.place), "to": place, "id": one.id, "refused": one.refused}


def _outcome(one: Replayed) -> str:
    if one.refused is not None:
        return _plain(f"{one.letter.place}  refused: {one.refused}")
    return _plain(f"{one.letter.place}  sent again as requests/{one.place}, id {one.id or 'kept'}")


def _payload(letter: Letter) -> str:
    """JSON of what can be decoded, else the bytes as Python writes them."""
    import msgspec

    raw = letter.value
    decode = msgspec.json.decode if raw[:1] in (b"{", b"[") else msgspec.msgpack.decode
    try:
        text = msgspec.json.encode(decode(raw)).decode()
    except (msgspec.MsgspecError, UnicodeError, TypeError, ValueError, RecursionError):
        text = repr(raw[:_PAYLOAD])
    return text if len(text) <= _PAYLOAD else f"{text[:_PAYLOAD]}... ({len(raw)} bytes)"


def _plain(value: Any) -> str:
    """One line without control characters: a key may hold those that move a terminal's cursor."""
    return "".join(char if char.isprintable() else "\ufffd" for char in str(value))


def _time(ms: int) -> str:
    if not 0 <= ms < 253_402_300_800_000:
        return str(ms)
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
