from __future__ import annotations

from schemas import codec
from schemas.cards import Card, Heartbeat, Offer
from streams.registry import Registry, observe_records
from tests.helpers.routing import NOW, RequestRecord


def test_heartbeats_are_observed_and_the_rest_is_counted():
    registry = Registry()
    card = Card(capability="nlp/intent", side="local", version="1", model="m")
    beat = Heartbeat(worker="w1", offers=(Offer(card=card),))
    records = [
        RequestRecord(codec.encode(beat)),
        RequestRecord(b"\xff\x00"),
        RequestRecord(None),
        RequestRecord(codec.encode(beat, "json")),
    ]
    assert observe_records(registry, records) == 2
    assert registry.live("local", "nlp/intent", NOW) is not None
