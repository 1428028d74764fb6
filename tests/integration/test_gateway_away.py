"""Kafka away under a gateway: who waits is answered when it is back, who comes is told to try again."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import httpx
import pytest

from edgeway.embedded import BrokerSettings, EmbeddedKafka
from tests.helpers.roles import Role, fetch

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

AWAY_S = 15.0
APP = '''
from workers.sdk import capability

@capability("local/test/same")
def same(n: int) -> int:
    """The same number."""
    return n
'''


async def test_callers_over_an_outage(tmp_path: Path) -> None:
    (tmp_path / "away_app.py").write_text(APP, encoding="utf-8")
    rules = tmp_path / "rules.json"
    task = {"capability": "test/same", "side": "local", "deadline_ms": 120_000}
    said = {"tasks": {"same": task}, "apps": [str(tmp_path / "away_app.py")], "builtin": False}
    rules.write_text(json.dumps(said), encoding="utf-8")
    kafka = EmbeddedKafka(BrokerSettings())
    await asyncio.to_thread(kafka.start_sync)
    about = ("--kafka", kafka.bootstrap, "--rules", str(rules), "--log-format", "text")
    up, gateway = Role(tmp_path, "up", *about, "--partitions", "1"), Role(tmp_path, "gateway", *about)
    try:
        await asyncio.to_thread(lambda: up.start().wait_ready())
        await asyncio.to_thread(lambda: gateway.start().wait_ready())
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}", timeout=150) as client:
            assert (await client.post("/route", json={"task": "same", "n": 0})).json()["output"] == 0
            kafka.kill_sync(1)
            waiting = [
                asyncio.create_task(client.post("/route", json={"task": "same", "n": n, "id": f"r{n}"}))
                for n in range(5)
            ]
            await asyncio.sleep(AWAY_S)
            began = time.monotonic()
            refused = await client.post("/route", json={"task": "same", "n": 9})
            assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
            assert time.monotonic() - began < 2.0
            assert fetch(gateway.port, "/readyz")[0] == 503
            await asyncio.to_thread(kafka.restart_sync, 1)
            answers = [(await each).json() for each in waiting]
            assert [answer.get("output") for answer in answers] == list(range(5)), answers
            await asyncio.to_thread(gateway.wait_ready)
            assert (await client.post("/route", json={"task": "same", "n": 8})).json()["output"] == 8
    finally:
        up.kill()
        gateway.kill()
        kafka.stop_sync()
