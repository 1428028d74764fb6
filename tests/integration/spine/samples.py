"""What the tests ask, and how the demo's models are known to answer."""

from __future__ import annotations

import asyncio
import json
import time
from array import array
from typing import Any

from edgeway.explain import explain
from schemas.codec import decode
from schemas.messages import Result
from tests.helpers.caller import Answer, Caller, new_id
from tests.helpers.spine import DEMO

SURE = "What countries are you currently in?"
SURE_INTENT = "country_support"
"""The edge's model is sure of this one (0.999)."""
UNSURE = "The app won't let me top up my account"
UNSURE_INTENT = "top_up_failed"
"""The edge's model is not (0.53), which the predictor does not foresee (0.56); the cloud's is right."""


def images() -> list[list[float]]:
    said = json.loads((DEMO / "data" / "images_28x28.json").read_text(encoding="utf-8"))
    return [image["pixels"] for image in said["images"]]


def raw(pixels: list[float]) -> bytes:
    """Little-endian float32, as a camera would send them."""
    values = array("f", pixels)
    assert values.itemsize == 4
    return values.tobytes()


def decomposed(name: str) -> dict[str, Any]:
    """The inputs of one of the decomposed samples (`demo-finance-1`, ...)."""
    lines = (DEMO / "data" / "requests_decomposed.jsonl").read_text(encoding="utf-8").splitlines()
    return next(dict(said["inputs"]) for said in map(json.loads, lines) if said["id"] == name)


def explained(answer: Answer) -> str:
    """Why it is as it is, in plain words."""
    return "\n".join(explain(decode(answer.record.value, Result)))


async def escalated(caller: Caller, request: dict[str, Any], limit_s: float = 75.0) -> Answer:
    """The first answer to `request` that came from the cloud.

    On a busy machine the cloud's breaker may be open for slowness when a test begins; then the edge answers
    alone, which is right and not what is to be seen here. It looks back a minute.
    """
    until = time.monotonic() + limit_s
    while True:
        answer = await caller.ask({**request, "id": new_id("escalated")})
        if "cloud" in answer.body["sides"].values() or time.monotonic() > until:
            return answer
        await asyncio.sleep(1.0)
