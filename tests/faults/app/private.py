"""Capabilities of the privacy scenario: an edge that is not sure, a cloud that repeats what it saw, and a
local step that finds personal data."""

from __future__ import annotations

import random
from typing import Any

from tests.faults.harness.plants import KINDS, plant
from workers.backends.function import capability

SURE, UNSURE = 0.97, 0.5


@capability("local/private/answer", calibrated=True)
@capability("local/private/caption", calibrated=True)
def at_the_edge(text: str) -> tuple[dict[str, Any], float]:
    """Not sure, so that the cloud is asked wherever it may be."""
    return {"edge": text}, UNSURE


@capability("cloud/private/answer", calibrated=True)
@capability("cloud/private/only", calibrated=True)
def in_the_cloud(text: str) -> tuple[dict[str, Any], float]:
    """Repeats what it was given."""
    return {"seen": text}, SURE


@capability("local/private/reveal")
def reveal(n: int) -> dict[str, Any]:
    """Finds what the request itself did not say."""
    return {"text": f"the caller is {revealed(n)} as the record shows", "plain": f"record number {n}"}


def revealed(n: int) -> str:
    choose = random.Random(n)
    return plant(choose.choice(KINDS), choose)
