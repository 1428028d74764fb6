"""Cards of remote backends that an app names by SIDE/NAME, their fields among the options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from schemas.cards import Card, ModelType
from schemas.errors import UnknownTopic
from schemas.topics import capability_topic
from workers.errors import LoadError

FIELDS = frozenset(
    {
        "version",
        "max_batch",
        "max_wait_ms",
        "max_qps",
        "description",
        "input_schema",
        "output_schema",
        "cacheable",
        "licence",
        "source",
        "quality",
        "cost_per_call",
        "cost_per_token",
        "max_cost",
        "calibrated",
        "calibration",
    }
)
"""The card's fields that may stand among the options beside a name; no backend's option is called so."""


def card_and_options(
    capability: str | Card, options: Mapping[str, Any], kind: ModelType, max_batch: int
) -> tuple[Card, dict[str, Any]]:
    """The card, and the backend's own options. `max_batch` is the usual one.

    Raises:
        LoadError: no SIDE/NAME, or fields that make no card.
    """
    if isinstance(capability, Card):
        return capability, dict(options)
    fields = {key: value for key, value in options.items() if key in FIELDS}
    rest = {key: value for key, value in options.items() if key not in FIELDS}
    side, _, name = capability.partition("/")
    try:
        if side not in ("local", "cloud"):
            raise LoadError(f"capability {capability!r}: give SIDE/NAME, such as cloud/nlp/summarize")
        capability_topic("local" if side == "local" else "cloud", name)
        usual = {"version": "1", "max_batch": max_batch, "model": options.get("model", "")}
        card = {"capability": name, "side": side, "model_type": kind, **usual, **fields}
        return msgspec.convert(card, Card), rest
    except UnknownTopic as error:
        raise LoadError(f"capability {capability!r}: {error}") from error
    except msgspec.ValidationError as error:
        raise LoadError(f"capability {capability!r}: its card is none: {error}") from error
