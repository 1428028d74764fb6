"""What is known of the capabilities: assumed, from files in every form, written and read again."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeway.explain_registry import CardsError, assumed, parse_cards, view_of, written
from schemas.cards import Card, Heartbeat, Live, Offer
from schemas.rules import parse_rules
from tests.schemas.strategies import JSON_VALUES, structs

CARD = {"capability": "nlp/intent", "side": "local", "version": "1", "model": "m", "calibrated": True}
OFFER = {"card": CARD, "live": {"p50_ms": 5.0, "p90_ms": 9.0, "served": 50}}
BEAT = {"type": "heartbeat", "v": 1, "worker": "w1", "offers": [OFFER]}
RULES = parse_rules(b'{"builtin": false, "tasks": {"intent": {"capability": "nlp/intent"}}}')


def view(text: Any) -> Any:
    raw = text if isinstance(text, bytes) else json.dumps(text).encode()
    return view_of(parse_cards(raw), RULES, 1000).targets


def test_everything_of_the_rules_is_assumed_alive_unmeasured_and_free() -> None:
    found = assumed(RULES).targets
    assert set(found) == {("local", "nlp/intent"), ("cloud", "nlp/intent")}
    assert {target.figures.p50_ms for target in found.values()} == {None}
    assert {target.figures.max_cost for target in found.values()} == {0.0}


@pytest.mark.parametrize(
    "form",
    [
        [BEAT],
        BEAT,
        [OFFER],
        {"offers": [OFFER]},
        OFFER,
        [CARD],
        CARD,
        json.dumps(CARD).encode() + b"\n\n" + json.dumps({**CARD, "side": "cloud"}).encode(),
    ],
    ids=["beats", "beat", "offers", "offers in an object", "offer", "cards", "card", "lines"],
)
def test_every_form_of_a_file_is_read(form: Any) -> None:
    assert view(form)["local", "nlp/intent"].figures.calibrated


def test_offers_alike_are_several_workers() -> None:
    assert view([OFFER, OFFER])["local", "nlp/intent"].figures.workers == 2


def test_figures_open_the_breaker() -> None:
    slow = {**OFFER, "live": {"p50_ms": 900.0, "p90_ms": 4000.0, "served": 50}}
    assert view([slow])["local", "nlp/intent"].gate == "slow"
    assert view([OFFER])["local", "nlp/intent"].gate == "closed"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[]", "no card"),
        (b"", "no card"),
        (b"[1]", "entry 1"),
        (b'[{"side": "local"}]', "entry 1"),
        (b'{"a": 1}\n{', "line 2"),
        (b'[{"card": {"capability": "a", "side": "moon", "version": "1", "model": "m"}}]', "side"),
        (b"[" * 100_000, "deep"),
        (b"\xff\xfe", "line 1"),
    ],
)
def test_what_is_no_file_of_cards_says_where(text: bytes, words: str) -> None:
    with pytest.raises(CardsError, match=words):
        parse_cards(text)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(structs(Heartbeat, JSON_VALUES), max_size=5))
def test_what_is_written_is_read_again(beats: list[Heartbeat]) -> None:
    latest = {beat.worker: beat for beat in beats}
    kept = [latest[name] for name in sorted(latest) if latest[name].offers and not latest[name].leaving]
    raw = written(beats)
    if not kept:
        with pytest.raises(CardsError):
            parse_cards(raw)
        return
    assert msgspec.json.encode(parse_cards(raw)) == msgspec.json.encode(kept)


def test_a_worker_is_written_once() -> None:
    card = Card(capability="a", side="local", version="1", model="m")
    beats = [Heartbeat(worker="w", offers=(Offer(card=card, live=Live(served=n)),)) for n in (1, 2)]
    (found,) = parse_cards(written(beats))
    assert found.offers[0].live.served == 2
