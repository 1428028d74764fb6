"""What the workers of now can do, by their last heartbeats, or what an app would offer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from edgeway.errors import UsageError
from edgeway.explain_live import Beats, read_beats
from schemas.cards import Card, Heartbeat, Offer
from schemas.messages import Side
from schemas.rules import parse_rules
from streams.registry import Figures, Target, View
from streams.settings import Settings

LOOK_S = 0.5


class Serving(NamedTuple):
    """One worker's offer; `worker` is None of an app that nobody runs."""

    worker: str | None
    offer: Offer


class Served(NamedTuple):
    """A capability on one side, everybody who serves it, and what a router would make of them: None where
    nothing runs."""

    side: Side
    capability: str
    by: tuple[Serving, ...]
    target: Target | None

    @property
    def name(self) -> str:
        return f"{self.side}/{self.capability}"

    @property
    def cards(self) -> list[tuple[Card, list[str]]]:
        """The different cards, each with the workers that beat with it."""
        found: list[tuple[Card, list[str]]] = []
        for worker, offer in self.by:
            names = next((names for card, names in found if card == offer.card), None)
            if names is None:
                names = []
                found.append((offer.card, names))
            names += [worker] if worker is not None else []
        return found


async def alive(settings: Settings, wait_s: float, name: str | None = None) -> list[Served]:
    """What the workers of now serve, of `name` alone where given; waits up to `wait_s` for the first.

    Raises:
        KafkaUnreachable, TopicsWrong: the heartbeats cannot be read.
    """
    until = time.monotonic() + wait_s
    while True:
        found = named(of_beats(await read_beats(settings)), name)
        if found or time.monotonic() >= until:
            return found
        await asyncio.sleep(min(LOOK_S, max(0.0, until - time.monotonic())))


def of_beats(beats: Beats) -> list[Served]:
    """By side and name. The breaker is that of a router which began with these heartbeats."""
    return _served(beats.alive(), beats.view(parse_rules(b"{}")))


def of_app(app: str) -> list[Served]:
    """What an app offers.

    Raises:
        UsageError: it does not load, or offers nothing.
    """
    from workers.catalogue import load_app
    from workers.errors import WorkerError

    try:
        offers = tuple(Offer(card=backend.card) for backend in load_app(app))
    except WorkerError as error:
        raise UsageError(str(error)) from error
    return _served([Heartbeat(worker="", offers=offers)], None)


def named(found: Iterable[Served], name: str | None) -> list[Served]:
    """Those called `name`, with or without their side; all without one."""
    return [each for each in found if name in (None, each.name, each.capability)]


def _served(beats: Iterable[Heartbeat], view: View | None) -> list[Served]:
    by: dict[tuple[Side, str], list[Serving]] = {}
    for beat in beats:
        for offer in beat.offers:
            key = (offer.card.side, offer.card.capability)
            by.setdefault(key, []).append(Serving(beat.worker or None, offer))
    return [
        Served(*key, tuple(by[key]), None if view is None else view.at(*key))
        for key in sorted(by, key=lambda key: (key[1], key[0]))
    ]


def summary(served: Served) -> dict[str, Any]:
    """The figures of all its workers together: times in ms, prices in the currency of the rules."""
    cards, lives = [s.offer.card for s in served.by], [s.offer.live for s in served.by]
    figures = served.target.figures if served.target else Figures(workers=0)
    return {
        "capability": served.name,
        "versions": sorted({card.version for card in cards}),
        "models": sorted({card.model for card in cards}),
        "workers": figures.workers,
        "providers": sorted({live.provider for live in lives if live.provider}),
        "waits_for": sorted({live.waits_for for live in lives if live.waits_for}),
        "p50_ms": figures.p50_ms,
        "p90_ms": figures.p90_ms,
        "queue": sum(live.queue for live in lives),
        "in_flight": sum(live.in_flight for live in lives),
        "busy_ms": max(live.busy_ms for live in lives),
        "error_ratio": figures.error_ratio,
        "served": figures.served,
        "breaker": served.target.gate if served.target else None,
        "cost_per_call": max(card.cost_per_call for card in cards),
        "cost_per_token": max(card.cost_per_token for card in cards),
        "max_cost": _highest([card.max_cost for card in cards]),
        "max_qps": figures.max_qps if served.target else cards[0].max_qps,
        "calibrated": all(card.calibrated for card in cards),
        "description": cards[0].description,
    }


def whole(served: Served) -> dict[str, Any]:
    """Everything: the summary, each card with its workers, and each worker's live figures."""
    return {
        **summary(served),
        "cards": [{"card": msgspec.to_builtins(card), "workers": workers} for card, workers in served.cards],
        "live": {
            worker: msgspec.to_builtins(offer.live) for worker, offer in served.by if worker is not None
        },
    }


def _highest(bounds: list[float | None]) -> float | None:
    """The highest bound; None where one is not known."""
    known = [bound for bound in bounds if bound is not None]
    return max(known) if len(known) == len(bounds) else None
