"""Capabilities in words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from edgeway.capabilities import Served, summary
from schemas.cards import Card, Live

_HEAD = (
    "capability",
    "version",
    "workers",
    "p50",
    "p90",
    "queue",
    "busy",
    "errors",
    "breaker",
    "cost",
    "qps",
    "provider",
)
_LONG_MS = 1000.0


def table(found: Iterable[Served]) -> list[str]:
    """A head, and a line for each capability; columns that nobody fills are left out."""
    rows = [_HEAD, *(_row(summary(each)) for each in found)]
    kept = [n for n in range(len(_HEAD)) if n == 0 or any(row[n] not in ("-", "") for row in rows[1:])]
    widths = {n: max(len(row[n]) for row in rows) for n in kept}
    return ["  ".join(row[n].ljust(widths[n]) for n in kept).rstrip() for row in rows]


def page(served: Served) -> list[str]:
    """All that is known of one capability."""
    lines = [served.name]
    for card, workers in served.cards:
        lines += ["", *_card(card)]
        lines += [f"  served by {', '.join(sorted(workers))}"] if workers else []
    if served.target is not None:
        lines += ["", f"breaker: {_gate(served.target.gate)}"]
        lines += [f"  {worker}: {_live(offer.live)}" for worker, offer in served.by]
    return lines


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    live = facts["workers"] > 0
    return (
        facts["capability"],
        ",".join(facts["versions"]),
        str(facts["workers"]) if live else "-",
        _ms(facts["p50_ms"]),
        _ms(facts["p90_ms"]),
        str(facts["queue"] + facts["in_flight"]) if live else "-",
        _ms(facts["busy_ms"]) if facts["busy_ms"] >= _LONG_MS else "-",
        f"{facts['error_ratio']:.0%}" if live else "-",
        _gate(facts["breaker"]),
        _cost(facts["cost_per_call"], facts["cost_per_token"], facts["max_cost"]),
        "-" if facts["max_qps"] is None else f"{facts['max_qps']:g}",
        ",".join(facts["providers"] + (["waits"] if facts["waits_for"] else [])),
    )


def _card(card: Card) -> list[str]:
    about = card.description or "no description"
    lines = [f"{card.model} version {card.version} ({card.model_type}): {about}"]
    text = str(card.input_schema.get("description", ""))
    lines += [f"  | {line}" for line in text.splitlines()[1:] if line.strip()]
    facts = {
        "cost": _cost(card.cost_per_call, card.cost_per_token, card.max_cost),
        "calls a second": "no limit" if card.max_qps is None else f"{card.max_qps:g}",
        "batches": f"up to {card.max_batch} rows, waited for {card.max_wait_ms:g} ms while busy",
        "cacheable": "yes" if card.cacheable else "no",
        "confidence": _confidence(card),
        "licence": card.licence or "not said",
        "source": card.source or "not said",
        "quality": card.quality or "not said",
        "input": _schema({k: v for k, v in card.input_schema.items() if k != "description"}),
        "output": _schema(card.output_schema),
    }
    return lines + [f"  {name}: {value}" for name, value in facts.items()]


def _confidence(card: Card) -> str:
    found = card.calibration
    if found is None:
        return "calibrated" if card.calibrated else "not calibrated"
    return (
        f"{found.method} on {found.samples} samples: error {found.ece:.3f}, at {found.threshold:g} it covers "
        f"{found.coverage:.0%} with {found.accuracy:.0%} right"
    )


def _live(live: Live) -> str:
    facts = [
        f"p50 {_ms(live.p50_ms)}, p90 {_ms(live.p90_ms)}",
        f"{live.queue} wait, {live.in_flight} run",
        f"errors {live.error_ratio:.0%}",
        f"served {live.served}",
        f"loaded in {_ms(live.load_ms)}",
    ]
    facts += [f"busy for {_ms(live.busy_ms)}"] if live.busy_ms >= _LONG_MS else []
    facts += [f"on {live.provider}"] if live.provider else []
    facts += [f"waits for {live.waits_for}"] if live.waits_for else []
    facts += ["its service is away"] if live.reachable is False and not live.waits_for else []
    facts += [f"GPU {live.gpu:.0%}"] if live.gpu is not None else []
    return ", ".join(facts)


def _gate(gate: str | None) -> str:
    return "-" if gate is None else gate.replace("_", " ")


def _cost(call: float, token: float, bound: float | None) -> str:
    if not call and not token:
        # As the router prices it: what names no price and no bound costs nothing.
        return f"up to {bound:g}" if bound else "free"
    parts = ([f"{call:g}/call"] if call else []) + ([f"{token:g}/token"] if token else [])
    return "+".join(parts) + (" no bound" if bound is None else f" <={bound:g}")


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1000.0:.1f}s" if value >= 10 * _LONG_MS else f"{value:.3g}ms"


def _schema(schema: dict[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False) if schema else "not described"
