"""The cards of a file."""

from __future__ import annotations

from pathlib import Path

from edgeway.errors import UsageError
from edgeway.explain_registry import CardsError, parse_cards
from schemas.cards import Heartbeat


def cards_of(file: str) -> list[Heartbeat]:
    """What the file of `--registry` says, as heartbeats.

    Raises:
        UsageError: it cannot be read or used; the text says why.
    """
    try:
        return parse_cards(Path(file).read_bytes())
    except OSError as exc:
        raise UsageError(f"--registry {file}: cannot be read: {exc.strerror or exc}") from exc
    except CardsError as exc:
        raise UsageError(f"--registry {file}: {exc}") from exc
