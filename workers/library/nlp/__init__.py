"""Texts: cleaning, tokens, entities, summaries, intents, embeddings, answers."""

from __future__ import annotations

from workers.backends import Backend
from workers.backends.function import backends_of
from workers.library.text import clean


def offers() -> list[Backend]:
    """What this group has to offer here; what needs a package not installed is left out and logged."""
    return [*backends_of(clean)]
