"""The command line: each command is a module with `add(subparsers)` and `run(args) -> int`.

Heavy imports stand inside `run`, so that `edgeway --help` is quick.
"""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence

from edgeway.cli import (
    aggregator,
    audit,
    backtest,
    broker,
    budget,
    capabilities,
    check,
    dead_letters,
    demo,
    explain,
    feedback,
    gateway,
    models,
    render,
    results,
    router,
    send,
    token,
    topics,
    up,
    worker,
)
from edgeway.cli.arguments import EPILOG
from edgeway.cli.output import drop_stdout, prepare_streams, say
from edgeway.errors import EdgewayError, Exit, OutputLost, UsageError
from streams.settings import SettingsError

_COMMANDS = (
    up,
    demo,
    send,
    results,
    render,
    explain,
    backtest,
    router,
    aggregator,
    worker,
    gateway,
    token,
    topics,
    check,
    audit,
    dead_letters,
    budget,
    broker,
    feedback,
    models,
    capabilities,
)

_WRITERS = frozenset(
    (
        "send",
        "results",
        "render",
        "dead-letters",
        "explain",
        "backtest",
        "audit",
        "topics",
        "check",
        "broker",
        "feedback",
        "models",
        "budget",
        "capabilities",
        "token",
    )
)


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="edgeway",
        description="Hybrid inference over Kafka: at the edge, in the cloud, or both.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"Settings: flags, then EDGEWAY_* variables, then a TOML file (docs/settings.md).\n\n{EPILOG}",
        allow_abbrev=False,
    )
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.add(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Wrong flags end in SystemExit(2), as argparse does it."""
    prepare_streams()
    args = parser().parse_args(argv)
    try:
        if sys.stdout is None and args.settings_of in _WRITERS:
            # Before anything is sent whose answer could then not be told.
            raise UsageError("standard output is closed; send it to a file, or to /dev/null")
        return int(args.run(args))
    except SettingsError as exc:
        for line in exc.problems:
            say(f"edgeway: {line}")
        return Exit.USAGE
    except EdgewayError as exc:
        if isinstance(exc, OutputLost):
            drop_stdout()
        say(f"edgeway: {exc}")
        return exc.exit_code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has gone.
        drop_stdout()
        return Exit.OK
    except OSError as exc:
        if exc.errno != errno.EADDRINUSE:
            raise
        say(f"edgeway: a port is taken by another process: {exc}; give another one, or stop that process")
        return Exit.USAGE
