"""Capabilities whose cloud may be made slow (a file `slow` beside the logs), and one that is paid and counts.

Roles of the fault tests run in the folder of their logs.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from workers.backends.function import capability

SURE, UNSURE = 0.97, 0.5
SLOW = Path("slow")
PAID = Path("paid.log")
PRICE = 0.001


@capability("local/fault/quick", calibrated=True)
@capability("local/fault/patient", calibrated=True)
def at_the_edge(n: int) -> tuple[dict[str, Any], float]:
    """Never sure, so that the cloud is always asked."""
    return {"n": n}, UNSURE


@capability("cloud/fault/quick", calibrated=True)
@capability("cloud/fault/patient", calibrated=True)
async def in_the_cloud(n: int) -> tuple[dict[str, Any], float]:
    """Sure, after 600 ms where the cloud is slow."""
    if SLOW.exists():
        await asyncio.sleep(0.6)
    return {"n": n}, SURE


@capability("local/fault/paid", calibrated=True)
def cheap(n: int) -> tuple[dict[str, Any], float]:
    """Every other answer is not good enough."""
    return {"n": n}, SURE if n % 2 else UNSURE


@capability("cloud/fault/paid", cost=PRICE, calibrated=True)
@capability("cloud/fault/only", cost=PRICE, calibrated=True)
def paid(n: int) -> tuple[dict[str, Any], float]:
    """A paid service with books of its own: one line a call, which survives whatever is killed."""
    book = os.open(PAID, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(book, f"{n}\n".encode())
    finally:
        os.close(book)
    return {"n": n}, SURE
