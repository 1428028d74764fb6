"""What a gateway counts of its calls."""

from __future__ import annotations

import asyncio
from typing import Any

from prometheus_client import REGISTRY

from edgeway.errors import EdgewayError
from streams.settings import Settings
from tests.edgeway.gateway.test_route import never
from tests.edgeway.gateway.test_socket import answer_all, until
from tests.helpers.gateway import gateway

BODY = {"task": "summarize", "text": "a"}


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"edgeway_gateway_{name}", labels) or 0.0


async def test_calls_by_route_and_status_and_how_long_they_took() -> None:
    def told() -> tuple[float, ...]:
        return (
            counted("requests_total", route="route", status="200"),
            counted("requests_total", route="route", status="400"),
            counted("requests_total", route="requests", status="404"),
            counted("requests_total", route="other", status="404"),
            counted("seconds_count", route="route"),
        )

    before = told()
    async with gateway() as served:
        await served.route(BODY)
        await served.client.post("/route", content=b"{")
        await served.client.get("/requests/nobody")
        await served.client.get("/nowhere")
    assert [after - first for after, first in zip(told(), before, strict=True)] == [1, 1, 1, 1, 2]


async def test_what_is_shed_is_counted_by_its_reason() -> None:
    def shed(reason: str) -> float:
        return counted("shed_total", reason=reason)

    reasons = ("open", "bytes", "tenant", "rate", "kafka")
    before = {reason: shed(reason) for reason in reasons}
    rules: dict[str, Any] = {"tenants": {"few": {"max_open": 1}, "slow": {"max_qps": 1}}}
    have = Settings(gateway_open=2, gateway_bytes=200_000)
    async with gateway(never, rules=rules, settings=have) as served:
        assert (await served.route({**BODY, "text": "x" * 300_000})).status_code == 503
        waiting = asyncio.create_task(served.route({**BODY, "tenant": "few"}))
        await until(lambda: len(served.exchange.sent) == 1)
        assert (await served.route({**BODY, "tenant": "few"})).status_code == 429
        other = asyncio.create_task(served.route({**BODY, "tenant": "slow"}))
        await until(lambda: len(served.exchange.sent) == 2)
        assert (await served.route(BODY)).status_code == 503
        answer_all(served)
        await asyncio.gather(waiting, other)
        assert (await served.route({**BODY, "tenant": "slow"})).status_code == 429
    async with gateway() as served:

        async def away(*_: Any, **__: Any) -> Any:
            raise EdgewayError("no broker")

        served.exchange.send = away  # type: ignore[method-assign]
        assert (await served.route(BODY)).status_code == 503
    assert {reason: shed(reason) - before[reason] for reason in reasons} == dict.fromkeys(reasons, 1)
