"""The built-in tasks on the library alone: what a user gets who writes no capability."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeway.report import render
from examples.demo.samples import requests
from schemas.messages import Result
from tests.helpers.caller import Caller
from tests.helpers.kafka import Kafka
from tests.helpers.roles import Role, command

pytestmark = pytest.mark.integration

RULES = {"apps": ["workers.library"], "tasks": {"financial_report": {}, "traffic_forecast": {}}}
SAMPLES = {request["id"]: request for request in requests()}


@pytest.fixture
def up(own_kafka: Kafka, tmp_path: Path) -> Iterator[Role]:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(RULES), encoding="utf-8")
    about = ("--kafka", own_kafka.bootstrap, "--rules", str(path), "--log-format", "text")
    done = command("topics", "apply", *about[:4], "--partitions", "1", "--fix")
    assert done.returncode == 0, done.stdout + done.stderr
    role = Role(tmp_path, "up", "--partitions", "1", *about).start()
    try:
        yield role.wait_ready()
    finally:
        role.kill()


async def test_both_built_in_tasks_are_answered_in_both_languages(own_kafka: Kafka, up: Role) -> None:
    async with Caller(own_kafka.bootstrap) as caller:
        for name, currency, organisation in (
            ("demo-finance-1", "CNY", "星河智造"),
            ("demo-finance-2", "USD", "Northwind Valley Instruments"),
        ):
            output = await report(caller, name)
            assert output["ratios"]["gross_margin"] == pytest.approx(0.4)
            assert output["growth"]["net_profit"] == pytest.approx(0.5)
            assert output["revenue"] == pytest.approx(1.26e9)
            assert {row["currency"] for row in output["chart"]["data"]["values"]} == {currency}
            assert organisation in json.dumps(output["entities"], ensure_ascii=False)
            page = render(Result(id=name, status="ok", output=output), "html")
            assert organisation in page
            assert "<svg" in page
        for name in ("demo-traffic-1", "demo-traffic-2"):
            await traffic(caller, name)


async def report(caller: Caller, name: str) -> Any:
    sample = SAMPLES[name]
    answer = await caller.ask({"query": sample["query"], "inputs": sample["inputs"]})
    assert answer.status == "ok", json.dumps(answer.body, default=str)
    sides = {"tokenize": "local", "entities": "local", "indicators": "cloud", "chart": "cloud"}
    assert answer.body["sides"] == sides
    return answer.body["output"]


async def traffic(caller: Caller, name: str) -> None:
    sample = SAMPLES[name]
    answer = await caller.ask({"query": sample["query"], "inputs": sample["inputs"]})
    assert answer.status == "ok", json.dumps(answer.body, default=str)
    assert answer.body["sides"] == {"gps_check": "local", "forecast": "cloud", "congestion": "cloud"}
    output = answer.body["output"]
    assert output["reasons"] == {"duplicate": 2, "jump": 2}
    # The edge says `moderate` of the whole drives; the cloud, whose word goes first, of their last minutes.
    assert (output["level"], output["mean_speed_kmh"] > output["recent_speed_kmh"]) == ("heavy", True)
    ahead = [5, 10] if sample["inputs"].get("horizon_min") == 10 else [5, 15, 30, 60]
    assert [row["minute"] for row in output["forecast"]] == ahead
    assert all(row["low_kmh"] <= row["speed_kmh"] <= row["high_kmh"] for row in output["forecast"])
