"""A role's metrics, as a scraper sees them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from prometheus_client.parser import text_string_to_metric_families

from tests.helpers.roles import fetch


async def sample(port: int, name: str, **labels: str) -> float | None:
    """The value of one series, None where it is not there."""
    status, text = await asyncio.to_thread(fetch, port, "/metrics")
    if status != 200:
        return None
    for family in text_string_to_metric_families(text):
        for found in family.samples:
            if found.name == name and labels.items() <= found.labels.items():
                return float(found.value)
    return None


class Watch:
    """Samples one series twice a second; `seen` has (seconds since the epoch, value)."""

    def __init__(self, port: int, name: str, **labels: str) -> None:
        self._about = (port, name, labels)
        self.seen: list[tuple[float, float]] = []
        self._task = asyncio.create_task(self._follow(), name=f"watch {name}")

    async def until(self, values: Sequence[float], wait_s: float) -> float | None:
        """When it was one of `values` from now on, None where it is not within `wait_s`."""
        began = time.time()
        while time.time() < began + wait_s:
            for at, value in self.seen:
                if at >= began and value in values:
                    return at
            await asyncio.sleep(0.1)
        return None

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        port, name, labels = self._about
        while True:
            value = await sample(port, name, **labels)
            if value is not None:
                self.seen.append((time.time(), value))
            await asyncio.sleep(0.5)
