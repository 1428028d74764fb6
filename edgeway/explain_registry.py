"""What the router would know of the capabilities: assumed, from a file of cards, or from heartbeats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from schemas.cards import Card, Heartbeat, Offer
from schemas.rules import Rules
from streams.registry import Figures, Registry, Target, View, slow_limits

_FORMS = "give a list of heartbeats, offers ({card, live}) or cards, or one of them a line"


class CardsError(ValueError):
    """A file of cards that cannot be used; the text says which entry and why."""


def assumed(rules: Rules) -> View:
    """Everything that the rules use is alive, unmeasured and free, but for the prices of the rules."""
    figures = Figures(workers=1, max_cost=0.0)
    return View(targets={pair: Target(figures=figures) for pair in rules.capabilities})


def view_of(beats: Iterable[Heartbeat], rules: Rules, now: int) -> View:
    """What a router knows at `now`, in ms, to which all of `beats` just came."""
    registry = Registry(slow_limits(rules))
    for beat in beats:
        registry.observe(beat, now)
    return registry.view(now)


def parse_cards(raw: bytes) -> list[Heartbeat]:
    """The heartbeats, offers or cards in `raw`, each offer or card as a worker of its own.

    Raises:
        CardsError: some of it is none.
    """
    entries = _entries(raw)
    if not entries:
        raise CardsError(f"it holds no card; {_FORMS}")
    return [_beat(number, entry) for number, entry in enumerate(entries, 1)]


def written(beats: Sequence[Heartbeat]) -> bytes:
    """`beats` as a file that `parse_cards` reads, for people too."""
    latest = {beat.worker: beat for beat in beats}
    kept = [latest[name] for name in sorted(latest) if latest[name].offers and not latest[name].leaving]
    return msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n"


def _entries(raw: bytes) -> list[Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        return _entries_by_line(raw)
    except RecursionError as error:
        raise CardsError("it is nested too deep") from error
    if isinstance(found, dict) and isinstance(found.get("offers"), list) and "worker" not in found:
        return list(found["offers"])
    return found if isinstance(found, list) else [found]


def _entries_by_line(raw: bytes) -> list[Any]:
    entries = []
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entries.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise CardsError(f"line {number} is no JSON; {_FORMS}") from error
    return entries


def _beat(number: int, entry: Any) -> Heartbeat:
    if not isinstance(entry, dict):
        raise CardsError(f"entry {number} is no JSON object; {_FORMS}")
    name = f"given-{number}"
    try:
        if "worker" in entry or entry.get("type") == "heartbeat":
            return msgspec.convert(entry, Heartbeat)
        if "card" in entry:
            return Heartbeat(worker=name, offers=(msgspec.convert(entry, Offer),))
        return Heartbeat(worker=name, offers=(Offer(card=msgspec.convert(entry, Card)),))
    except msgspec.ValidationError as error:
        raise CardsError(f"entry {number}: {error}; {_FORMS}") from error
