"""Models that take a while for a batch, say what they have in hand, and hang where a row asks for it.

Roles of the fault tests run in the folder of their logs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Hashable, Sequence
from pathlib import Path

from schemas.cards import Card
from workers.backends import Answer, Row, kin_of

MOST = 4
TAKES_S = 0.12
LOADS_S = 0.2
LONG_S = 3600.0


class Batches:
    """Answers a batch of MOST at most in TAKES_S; `flight-PID` has how many rows it holds now."""

    def __init__(self, capability: str) -> None:
        self.card = Card(capability=capability, side="local", version="1", model="batches", max_batch=MOST)
        self._place = Path(f"flight-{os.getpid()}")

    async def load(self) -> None:
        await asyncio.sleep(LOADS_S)

    def kin(self, row: Row) -> Hashable:
        return kin_of(Row({}, row.params))

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        self._place.write_text(str(len(rows)))
        wanted = {row.inputs.get("hang") for row in rows}
        if "always" in wanted or ("once" in wanted and not any(Path().glob("hung-*"))):
            Path(f"hung-{time.time():.3f}").touch()
            time.sleep(LONG_S)
        time.sleep(TAKES_S)
        self._place.write_text("0")
        return [Answer({"n": row.inputs["n"]}) for row in rows]

    def close(self) -> None: ...


batch, hang, solo = Batches("fault/batch"), Batches("fault/hang"), Batches("fault/solo")
