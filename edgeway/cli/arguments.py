"""Flags from the table of settings, and settings from the flags."""

from __future__ import annotations

import argparse
import os
import re
from datetime import datetime
from pathlib import Path

from edgeway.cli.output import say
from edgeway.errors import EXIT_TEXT
from streams.settings import Settings, duration_ms, find_config, flag_of, resolve, strange_variables
from streams.settings.model import DEFAULTS, GROUPS, TABLE

_PREFIX = "setting_"
_LATEST_MS = 253_402_300_799_999
_TITLES = {
    "kafka": "Kafka",
    "rules": "rules",
    "topics": "topics",
    "stores": "stores",
    "objects": "large payloads",
    "role": "role",
    "trace": "traces",
    "worker": "worker",
    "http": "capabilities over HTTP",
    "gateway": "gateway",
    "models": "models",
    "data": "data",
    "delivery": "delivery",
    "joins": "open requests",
    "log": "logs",
}
EPILOG = "exit codes:\n" + "".join(f"  {int(code):3}  {text}\n" for code, text in EXIT_TEXT.items())
Subparsers = argparse._SubParsersAction  # argparse has no public name for it


def command(
    subparsers: Subparsers[argparse.ArgumentParser], name: str, summary: str, settings: str | None = None
) -> argparse.ArgumentParser:
    """A parser for the command `name`, with the flags of the settings it takes."""
    parser = subparsers.add_parser(
        name,
        help=summary,
        description=summary[:1].upper() + summary[1:] + ".",
        epilog=EPILOG,
        usage="%(prog)s [flags]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    # `--since -5m` is a wrong time, not a flag: only so the error is about the time.
    parser._negative_number_matcher = re.compile(r"-\d.*")
    add_settings(parser, settings or name)
    return parser


def add_settings(parser: argparse.ArgumentParser, name: str) -> None:
    """The flags of a command's settings, and `--config`. Values stay text: `resolve` reads them."""
    parser.set_defaults(settings_of=name)
    parser.add_argument("--config", metavar="FILE", help="TOML settings; else EDGEWAY_CONFIG, ./edgeway.toml")
    for group in GROUPS[name]:
        section = parser.add_argument_group(f"settings: {_TITLES[group]}")
        for field, about in TABLE.items():
            if about.group == group and about.flag:
                section.add_argument(
                    flag_of(field),
                    dest=_PREFIX + field,
                    metavar=about.kind.metavar,
                    help=about.help.replace("%", "%%") + _default(field),
                )


def read_settings(args: argparse.Namespace) -> Settings:
    """The settings of a command line, with what the environment and the file say.

    Raises:
        SettingsError: some are wrong.
    """
    flags = {key.removeprefix(_PREFIX): value for key, value in vars(args).items() if key.startswith(_PREFIX)}
    settings = resolve(flags, os.environ, find_config(args.config, os.environ, Path.cwd()))
    for line in strange_variables(os.environ):
        say(f"warning: {line}")
    return settings


def positive(text: str) -> float:
    """A number above 0, for argparse."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return value


def duration(text: str) -> int:
    """A duration in ms, for argparse."""
    try:
        return duration_ms(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text[:20]}... is too long") from None


def moment(text: str) -> int:
    """A time in ms since the epoch, for argparse: ISO 8601 (local without a zone) or ms themselves."""
    try:
        found = int(text) if text.isdecimal() else _iso_ms(text)
        if not 0 <= found <= _LATEST_MS:
            raise ValueError("before 1970 or after the year 9999")
    except (ValueError, OverflowError) as exc:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; give for example 2026-01-31T12:00") from exc
    return found


def back(now: int, ms: int) -> int:
    """The time `ms` before `now`, both in ms; Kafka knows no time before 1970."""
    return max(0, now - ms)


def _iso_ms(text: str) -> int:
    return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)


def _default(field: str) -> str:
    value = DEFAULTS[field]
    if value is None or value == ():
        return ""
    return f" (default {('yes' if value else 'no') if isinstance(value, bool) else value})"
