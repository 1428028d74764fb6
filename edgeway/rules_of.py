"""The rules that the settings name."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgeway.errors import UsageError
from schemas.errors import RulesError
from schemas.rules import Rules, parse_rules
from streams.settings import Settings


def rules_of(settings: Settings) -> Rules:
    """The rules of `settings.rules`, or the built-in templates alone.

    Raises:
        UsageError: the file cannot be read, or is refused; the text says where and why.
    """
    if settings.rules is None:
        return parse_rules(b"{}")
    try:
        return _with_apps(parse_rules(settings.rules.read_bytes()), settings.rules.parent)
    except OSError as exc:
        raise UsageError(
            f"{settings.rules}: cannot be read: {exc}; name a readable file with --rules"
        ) from exc
    except RulesError as exc:
        raise UsageError(f"{settings.rules}: {exc}") from exc


def require_merges(rules: Rules) -> None:
    """Imports the installed merge strategies.

    Raises:
        UsageError: a task asks for one that is not there, or for parameters that it does not have.
    """
    from streams.merge.check import wrong_merges
    from streams.merge.registry import installed

    if wrong := wrong_merges(rules, installed()):
        raise UsageError("rules: " + "\n  ".join(wrong))


def _with_apps(rules: Rules, folder: Path) -> Rules:
    """Apps that are files stand beside the rules file."""
    apps = tuple(str(folder / app) if app.endswith(".py") else app for app in rules.apps)
    return msgspec.structs.replace(rules, apps=apps)
