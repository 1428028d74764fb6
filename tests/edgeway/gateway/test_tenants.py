"""Tenants: tokens, whose results are whose, how fast and how many."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from edgeway.cli import main
from edgeway.gateway.tenants import Tenants, hash_of
from schemas.messages import Result
from schemas.rules import parse_rules
from tests.edgeway.gateway.test_route import never
from tests.helpers.gateway import RULES, gateway

TOKENS = {
    "tenants": {
        "acme": {"tokens": [hash_of("t-acme"), hash_of("t-new")]},
        "beta": {"tokens": [hash_of("t-beta")]},
    }
}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_token_says_who_calls() -> None:
    async with gateway(rules=TOKENS) as served:
        body = {"task": "summarize", "text": "a"}
        for headers in ({}, bearer("wrong"), bearer(""), {"Authorization": "Basic t-acme"}):
            refused = await served.route(body, headers=headers)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        for token in ("t-acme", "t-new"):
            assert (await served.route(body, headers=bearer(token))).json()["tenant"] == "acme"
        assert {sent.tenant for sent in served.exchange.sent} == {"acme"}
        other = await served.route({**body, "tenant": "beta"}, headers=bearer("t-acme"))
        assert other.status_code == 403
        assert (await served.client.get("/healthz")).status_code == 200, "probes need no token"


async def test_results_are_their_tenants_alone() -> None:
    async with gateway(rules=TOKENS) as served:
        await served.route({"task": "summarize", "id": "r"}, headers=bearer("t-acme"))
        get = served.client.get
        assert (await get("/requests/r", headers=bearer("t-acme"))).status_code == 200
        assert (await get("/requests/r", headers=bearer("t-beta"))).status_code == 404
        assert (await get("/requests/r?tenant=acme", headers=bearer("t-beta"))).status_code == 403
        assert (await get("/requests/r")).status_code == 401
        # The same id of another tenant is another request.
        assert (await served.route({"task": "voice", "id": "r"}, headers=bearer("t-beta"))).status_code == 200


async def test_tokens_follow_the_rules(caplog: pytest.LogCaptureFixture) -> None:
    async with gateway() as served:
        assert (await served.route({"task": "summarize"})).status_code == 200
        served.gateway.adopt(parse_rules(_rules(TOKENS)))
        assert (await served.route({"task": "summarize"})).status_code == 401
        assert (await served.route({"task": "summarize"}, headers=bearer("t-beta"))).status_code == 200
        served.gateway.adopt(parse_rules(_rules({"tenants": {"acme": TOKENS["tenants"]["acme"]}})))
        assert (await served.route({"task": "summarize"}, headers=bearer("t-beta"))).status_code == 401
        assert caplog.text == ""
        served.gateway.adopt(parse_rules(_rules({"tenants": {"acme": {"tokens": []}}})))
        assert (await served.route({"task": "summarize"})).status_code == 200
        assert "no token any more" in caplog.text, "whoever removed the last one must hear what that means"


async def test_how_fast_a_tenant_may_send() -> None:
    now = [1000.0]
    async with gateway(rules={"tenants": {"acme": {"max_qps": 2}}}, now=lambda: now[0]) as served:
        body = {"task": "summarize", "tenant": "acme"}
        assert [(await served.route(body)).status_code for _ in range(3)] == [200, 200, 429]
        refused = await served.route(body)
        assert (refused.json()["code"], int(refused.headers["retry-after"])) == ("overloaded", 1)
        assert (await served.route({"task": "summarize", "tenant": "other"})).status_code == 200
        assert (await served.client.delete("/requests/r?tenant=acme")).status_code == 429
        now[0] += 0.6
        assert (await served.route(body)).status_code == 200


async def test_how_many_of_a_tenant_may_be_open() -> None:
    async with gateway(never, rules={"tenants": {"acme": {"max_open": 2}}}) as served:

        def body(number: int) -> dict[str, Any]:
            return {"task": "summarize", "tenant": "acme", "id": f"r{number}"}

        later = {"Prefer": "respond-async"}
        assert (await served.route(body(1), headers=later)).status_code == 202
        waiting = asyncio.create_task(served.route(body(2)))
        await asyncio.sleep(0.05)
        refused = await served.route(body(3))
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        served.exchange.reply(Result(id="r1", tenant="acme", status="ok"))
        await asyncio.sleep(0.15)
        assert (await served.route(body(3), headers=later)).status_code == 202
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def test_a_pace_keeps_its_place_when_the_rules_change() -> None:
    tenants = Tenants(parse_rules(_rules({"tenants": {"acme": {"max_qps": 1}}})))
    tenants.take("acme", 0)
    tenants.adopt(parse_rules(_rules({"tenants": {"acme": {"max_qps": 1}, "beta": {"max_qps": 1}}})))
    with pytest.raises(Exception, match="requests a second"):
        tenants.take("acme", 1)
    tenants.adopt(parse_rules(_rules({})))
    tenants.take("acme", 2)


def test_the_command_makes_a_token_that_the_rules_know(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert main(["token", "acme", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    rules = parse_rules(_rules({"tenants": {"acme": {"tokens": [made["hash"]]}}}))
    assert Tenants(rules).caller(f"Bearer {made['token']}") == "acme"
    assert len(made["token"]) >= 40
    assert main(["token", "acme"]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() not in shown.err
    assert hash_of(shown.out.strip()) in shown.err
    assert main(["token", "no tenant"]) == 2


def _rules(more: dict[str, Any]) -> bytes:
    import json

    return json.dumps({**RULES, **more}).encode()
